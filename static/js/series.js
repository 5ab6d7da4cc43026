/* Draws the charts of a pair from the table beside them, so that chart and table cannot differ. */

import { phrase } from "./words.js";

const table = document.getElementById("points");
const zone = document.documentElement.dataset.zone || "UTC";
const clockOf = (timeZone) => new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
const local = clockOf(zone);
const utc = clockOf("UTC");

/* "2026-12-02 14:00:00" in the reader's zone (`local`) or in UTC, for seconds since 1970. */
const at = (clock, seconds) => clock.format(new Date(seconds * 1000));

function read() {
  const rows = [...table.tBodies[0].rows].reverse(); // oldest first
  const number = (text) => (text === "" || text === undefined ? null : Number(text));
  return {
    at: rows.map((row) => Number(row.dataset.at)),
    gbps: rows.map((row) => number(row.dataset.gbps)),
    p50: rows.map((row) => scaled(number(row.dataset.p50))),
    p99: rows.map((row) => scaled(number(row.dataset.p99))),
    low: rows.map((row) => number(row.dataset.low)),
    high: rows.map((row) => number(row.dataset.high)),
  };
}

function scaled(nanoseconds) {
  return nanoseconds === null ? null : nanoseconds / 1000;
}

/* 24 hours and ISO dates, as on every other page; the day stands where it changes, seconds where ticks are closer than a minute. */
function times(_, ticks, __, ___, step) {
  let day = "";
  return ticks.map((tick) => {
    const text = at(local, tick);
    const clock = text.slice(11, step < 60 ? 19 : 16);
    const isNew = text.slice(0, 10) !== day;
    day = text.slice(0, 10);
    if (step >= 86400) return day;
    return isNew ? `${clock}\n${day}` : clock;
  });
}

/* What the legend says of a point's time: the reader's, and UTC beside it. */
function when(seconds) {
  if (!seconds) return "–";
  return zone === "UTC" ? at(utc, seconds) : `${at(local, seconds)} · ${at(utc, seconds)} UTC`;
}

function draw(holder, data) {
  const style = getComputedStyle(holder);
  const probe = document.createElement("span");
  holder.append(probe);
  const colour = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const columns = holder.dataset.column.split(",");
  const unit = holder.dataset.unit;
  const names = { gbps: phrase("rate"), p50: "p50", p99: "p99" };
  const series = [{ label: zone, value: (_, seconds) => when(seconds) }];
  const values = [data.at];
  const show = (plot, value) => (value === null || value === undefined ? "–" : `${value.toPrecision(4)} ${unit}`);
  columns.forEach((column, index) => {
    const stroke = colour(index ? "--two" : "--one");
    series.push({ label: names[column], stroke, width: 2, value: show, points: { show: true, size: 5, fill: stroke } });
    values.push(data[column]);
  });
  const bands = [];
  if (holder.dataset.band && data.low.some((value) => value !== null)) {
    const inLatency = columns[0] === "p50";
    const first = series.length;
    for (const side of ["high", "low"]) {
      series.push({ label: side === "high" ? phrase("usual, up to") : phrase("usual, from"), stroke: colour("--band"), width: 1, value: show, points: { show: false } });
      values.push(inLatency ? data[side].map(scaled) : data[side]);
    }
    bands.push({ series: [first, first + 1], fill: colour("--band") });
  }
  const axis = { stroke: colour("--ink-soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  probe.remove();
  const height = parseFloat(style.minHeight) || 240;
  const plot = new uPlot(
    {
      width: Math.max(260, holder.clientWidth),
      height,
      series,
      bands,
      axes: [{ ...axis, values: times, space: 72 }, { ...axis, size: 76 }],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone),
      scales: { x: { range: (_, low, high) => (low === high ? [low - 43200, high + 43200] : [low, high]) }, y: { range: (_, low, high) => (low === null ? [0, 1] : [Math.min(0, low), high * 1.08 || 1]) } },
    },
    values,
    holder,
  );
  holder.querySelector("canvas").setAttribute("role", "img");
  const lines = columns.map((column) => names[column]).join(", ");
  holder.querySelector("canvas").setAttribute("aria-label", phrase("Chart of {lines} in {unit}; the table of runs has the same values.", { lines, unit }));
  return plot;
}

function drawAll() {
  const data = read();
  return [...document.querySelectorAll(".chart")].map((holder) => {
    holder.replaceChildren();
    return [holder, draw(holder, data)];
  });
}

if (table && window.uPlot) {
  let plots = drawAll();
  new ResizeObserver(() => {
    plots.forEach(([holder, plot]) => plot.setSize({ width: Math.max(260, holder.clientWidth), height: plot.height }));
  }).observe(document.querySelector(".chart"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    plots = drawAll();
  });
}
