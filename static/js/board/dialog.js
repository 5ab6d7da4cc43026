// The Move dialog: any partition of the board by a few letters, for one card or for all that are selected.

import { columnOf, columns, hand, live, mayAct, refresh, servers, UNASSIGNED } from "./live.js";
import { changeKind, itemOf, move, staysBehind } from "./moves.js";
import * as selection from "./selection.js";
import { counted, phrase } from "../words.js";

const dialog = document.getElementById("move-dialog");
const input = document.getElementById("move-input");
const list = document.getElementById("move-list");
const keep = document.getElementById("move-keep");
const keepLabel = document.getElementById("move-keep-label");
const kind = document.getElementById("move-kind");
let held = null;   // { items, card } while the dialog is open; `card` is where the focus goes back to
let chosen = 0;

export const isOpen = () => Boolean(dialog?.open);

/** Open it for a card; a selected card stands for the whole selection. */
export function openFor(card) {
  open(selection.has(card) ? selection.items() : [itemOf(card)], card);
}

function open(items, card) {
  held = { items, card };
  const sources = [...new Set(items.map((item) => item.source))];
  const source = sources.length === 1 ? columnOf(sources[0]) : null;
  const isUnassigned = sources.length === 1 && sources[0] === UNASSIGNED;
  const isOne = items.length === 1;
  document.getElementById("move-server").textContent = isOne ? items[0].name : servers(items.length);
  document.getElementById("move-source").textContent = sourceSentence(source, sources, isOne, isUnassigned);
  document.getElementById("move-keep-source").textContent = source ? source.dataset.name : phrase("its partition");
  keep.checked = false;
  keepLabel.hidden = isUnassigned;
  kind.hidden = !isOne || isUnassigned || !card;
  if (card) kind.textContent = kindSentence(card, source?.dataset.name);
  input.value = "";
  offer();
  dialog.showModal();
  input.focus();
}

function sourceSentence(source, sources, isOne, isUnassigned) {
  if (isUnassigned) return isOne ? phrase("It is in no partition.") : phrase("They are in no partition.");
  const { name, pkey } = source?.dataset ?? {};
  if (source) return isOne ? phrase("It is in {name} ({pkey}).", { name, pkey }) : phrase("They are in {name} ({pkey}).", { name, pkey });
  return counted("They are in {n} column.", "They are in {n} columns.", sources.length);
}

function kindSentence(card, name) {
  return card.dataset.kind === "full" ? phrase("Make limited in {name}", { name }) : phrase("Make full in {name}", { name });
}

/** Fill the list with the columns that match what was typed. */
function offer() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const sources = new Set(held.items.map((item) => item.source));
  const source = sources.size === 1 ? columnOf([...sources][0]) : null;
  const found = columns().filter((column) => {
    if (column === source) return false;
    const text = `${column.dataset.name} ${column.dataset.tenant} ${column.dataset.pkey}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  list.replaceChildren(...found.map((column, index) => {
    const option = document.createElement("li");
    option.id = `move-option-${index}`;
    option.role = "option";
    option.className = "move-option";
    option.dataset.key = column.dataset.key;
    const name = document.createElement("strong");
    name.textContent = column.dataset.name;
    const about = document.createElement("span");
    const shares = source && staysBehind(source, column) ? phrase("joins as limited, keeps its own") : "";
    const facts = [column.dataset.tenant, column.dataset.pkey, shares].filter(Boolean).join(" · ");
    about.textContent = facts || phrase("out of every partition it is shown in");
    option.append(name, about);
    return option;
  }));
  document.getElementById("move-none").hidden = found.length > 0;
  choose(0);
}

function choose(index) {
  const options = [...list.children];
  chosen = options.length ? Math.max(0, Math.min(index, options.length - 1)) : 0;
  options.forEach((option, at) => option.setAttribute("aria-selected", String(at === chosen)));
  if (options.length) {
    input.setAttribute("aria-activedescendant", options[chosen].id);
    options[chosen].scrollIntoView({ block: "nearest" });
  } else input.removeAttribute("aria-activedescendant");
}

function confirm() {
  const option = list.children[chosen];
  if (!option) return;
  const { items, card } = held;
  const target = columnOf(option.dataset.key);
  const isKept = keep.checked && option.dataset.key !== UNASSIGNED;
  dialog.close();
  if (!target) { refresh(); return; }
  move(items, target, { keep: isKept });
  card?.focus();
}

if (mayAct) {
  input.addEventListener("input", offer);
  kind.addEventListener("click", () => { const { card } = held; dialog.close(); changeKind(card); });
  dialog.addEventListener("keydown", (event) => {
    if (event.target !== input) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step) { event.preventDefault(); choose(chosen + step); }
    if (event.key === "Enter") { event.preventDefault(); confirm(); }
  });
  list.addEventListener("click", (event) => {
    const option = event.target.closest(".move-option");
    if (option) { choose([...list.children].indexOf(option)); confirm(); }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { held?.card?.focus(); held = null; });
  live.addEventListener("click", (event) => {
    const button = event.target.closest(".card-move");
    if (button && !hand.isFull) openFor(button.closest(".card"));
  });
  document.getElementById("picked-move").addEventListener("click", () => open(selection.items(), null));
}
