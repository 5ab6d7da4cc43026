// What the board's parts share: the live element, when it may be asked for again, and what stands in the address.
// Nothing is ever swapped in while a card is in the hand or a move is on its way, and an answer that was asked for
// before a move is thrown away: otherwise a stale board would put cards back. A question that hangs on a bad network is
// given up at the move: else the next one would wait for its end.

import { counted } from "../words.js";

export const live = document.getElementById("live");
export const mayAct = "move" in live.dataset;
export const UNASSIGNED = "unassigned";

export const hand = { isFull: false };   // a card under a pressed button, in a drag, or picked up by keyboard
export const moving = new Set();         // keys of servers whose move is on its way
let epoch = 0;
let tag = live.dataset.tag;              // the fingerprint of what is shown: the server answers 304 while it holds
let isOwed = false;                      // something was to be asked for meanwhile
const dressers = [];

const isBusy = () => hand.isFull || moving.size > 0;

/** Ask for the board again, soon: not while something is in the hand or on its way. */
export function refresh() { if (!isBusy()) live.dispatchEvent(new CustomEvent("refresh")); }

/** The hand is empty again: ask for what was not asked for meanwhile. */
export function letGo() {
  hand.isFull = false;
  if (isOwed) refresh();
}

/** From now on answers that were asked for earlier are stale, and nobody waits for one that is still on its way. */
export function outdate() {
  epoch += 1;
  live.dispatchEvent(new CustomEvent("htmx:abort"));
}

/** Run `dresser` after each swap, and once now: it brings back what only this page knows. */
export function onSwap(dresser) { dressers.push(dresser); }

export function dress() { for (const dresser of dressers) dresser(); }

/** The element that takes the cards of a column, open or a tile. */
export const columnOf = (key) => live.querySelector(`.drop[data-key="${CSS.escape(key)}"]`);
export const columns = () => [...live.querySelectorAll(".drop")];
export const isTile = (column) => column.classList.contains("tile");
export const cardOf = (column, server) => document.getElementById(`card-${column}-${server}`);
export const servers = (number) => counted("{n} server", "{n} servers", number);

/** Change the address: `push` makes a step that the back button takes back. */
export function turnTo(change, { push }) {
  const address = new URL(location.href);
  change(address.searchParams);
  if (address.href === location.href) return;
  if (push) history.pushState(null, "", address); else history.replaceState(null, "", address);
  outdate();
  refresh();
}

live.addEventListener("htmx:before:request", (event) => {
  // A page that nobody looks at asks nothing: a browser has six connections to a host, and a poll that hangs holds one.
  if (isBusy() || document.hidden) { isOwed = true; event.preventDefault(); return; }
  isOwed = false;
  const { ctx } = event.detail;
  ctx.boardEpoch = epoch;
  ctx.request.action = live.dataset.address + location.search;
  ctx.request.headers["If-None-Match"] = tag;
});
live.addEventListener("htmx:before:swap", (event) => {
  const { ctx } = event.detail;
  if (ctx.response?.status !== 200 || isBusy() || ctx.boardEpoch !== epoch) { event.preventDefault(); return; }
  tag = ctx.response.headers.get("ETag") ?? "";
});
live.addEventListener("htmx:after:swap", dress);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
