// Which cards are selected: by click, with Ctrl one more, with Shift a range, all of a column, all that a search found.
// The selection is kept by server and column, so that it stands through every swap and reaches into closed columns.

import { announce } from "../page.js";
import { cardOf, live, mayAct, onSwap } from "./live.js";
import { counted, phrase } from "../words.js";

const selected = new Map();    // "column/server" → {server, source, name}
const bar = document.getElementById("picked");
let anchor = null;             // where a range begins: a card's id

const keyOf = (item) => `${item.source}/${item.server}`;
const itemOf = (card) => ({ server: card.dataset.server, source: card.closest(".drop").dataset.key, name: card.dataset.name });

export const size = () => selected.size;
export const items = () => [...selected.values()];
export const has = (card) => selected.has(keyOf(itemOf(card)));
export const clear = () => { selected.clear(); show(); };

/** How many are selected, for whoever does not see it. */
export const sentence = () =>
  (selected.size ? counted("{n} server selected", "{n} servers selected", selected.size) : phrase("Nothing selected"));

export function add(more) {
  for (const item of more) selected.set(keyOf(item), item);
  show();
}

export function drop(some) {
  for (const item of some) selected.delete(keyOf(item));
  show();
}

export function toggle(card) {
  const item = itemOf(card);
  if (!selected.delete(keyOf(item))) selected.set(keyOf(item), item);
  anchor = card.id;
  show();
}

/** Select from where the last one was selected to `card`, in the same column. */
export function extend(card) {
  const cards = cardsOf(card.closest(".drop"));
  const from = cards.findIndex((other) => other.id === anchor);
  const to = cards.indexOf(card);
  if (from < 0) { toggle(card); return; }
  add(cards.slice(Math.min(from, to), Math.max(from, to) + 1).map(itemOf));
}

export function all(column) { add(cardsOf(column).map(itemOf)); }

export const cardsOf = (column) => [...column.querySelectorAll(".card:not([hidden])")];

/** What the cards and the bar say of it. */
function show() {
  for (const card of live.querySelectorAll(".card-selected")) card.classList.toggle("card-selected", has(card));
  for (const { source, server } of selected.values()) cardOf(source, server)?.classList.add("card-selected");
  if (!bar) return;
  bar.hidden = selected.size === 0;
  document.getElementById("picked-count").textContent = sentence();
}

function click(event) {
  const card = event.target.closest(".card");
  if (!card || event.target.closest("a, button, .card-refusal")) return;
  if (event.shiftKey) { window.getSelection().removeAllRanges(); extend(card); }
  else if (event.ctrlKey || event.metaKey) toggle(card);
  else {
    const isOnlyOne = selected.size === 1 && has(card);
    selected.clear();
    if (!isOnlyOne) toggle(card); else show();
  }
  announce(sentence());
}

/** Select what the server names: all of a column, or all that the search found, in closed columns too. */
async function addMatching(column) {
  const address = new URL(live.dataset.matching, location.href);
  const sought = new URL(location.href).searchParams.get("q");
  if (sought) address.searchParams.set("q", sought);
  if (column) address.searchParams.set("column", column);
  const answer = await fetch(address, { headers: { Accept: "application/json" }, credentials: "same-origin" });
  if (answer.redirected || !answer.ok) { location.reload(); return; }
  add((await answer.json()).cards);
  announce(sentence());
}

if (mayAct) {
  document.getElementById("select-found").addEventListener("click", () => addMatching(""));
  live.addEventListener("click", (event) => {
    const button = event.target.closest("[data-all]");
    if (button) addMatching(button.dataset.all);
  });
  live.addEventListener("click", click);
  document.getElementById("picked-clear").addEventListener("click", clear);
  onSwap(show);
}
