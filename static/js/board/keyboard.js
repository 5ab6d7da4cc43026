// The board by keyboard alone. One card a column takes the Tab key; arrows go from card to card, Space or Enter picks
// up, arrows choose the partition, Enter drops, Escape lets go.

import { announce } from "../page.js";
import { columns, hand, isTile, live, mayAct, onSwap, refresh } from "./live.js";
import * as dialog from "./dialog.js";
import { itemOf, move, named } from "./moves.js";
import * as selection from "./selection.js";
import { phrase } from "../words.js";

let carried = null;    // { items, card, at: index of the column it would land in }
const search = document.getElementById("search");

/** One stop of the Tab key a column: where one was last, else its first card. */
function dressColumn(list) {
  const cards = selection.cardsOf(list);
  const stop = cards.find((card) => card === document.activeElement) ?? cards.find((card) => card.tabIndex === 0) ?? cards[0];
  for (const card of cards) card.tabIndex = card === stop ? 0 : -1;
}

function goTo(card) {
  if (!card) return;
  for (const other of selection.cardsOf(card.closest(".drop"))) other.tabIndex = -1;
  card.tabIndex = 0;
  card.focus();
  card.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** The card that an arrow leads to. */
function next(card, key) {
  const list = card.closest(".drop");
  const cards = selection.cardsOf(list);
  const at = cards.indexOf(card);
  if (key === "ArrowDown") return cards[at + 1];
  if (key === "ArrowUp") return cards[at - 1];
  if (key === "Home") return cards[0];
  if (key === "End") return cards.at(-1);
  const filled = columns().filter((one) => !isTile(one) && selection.cardsOf(one).length);
  const beside = filled[filled.indexOf(list) + (key === "ArrowRight" ? 1 : -1)];
  return beside && (selection.cardsOf(beside)[at] ?? selection.cardsOf(beside).at(-1));
}

// ---- pick up and drop ---------------------------------------------------------------------------------------------------
function pickUp(card) {
  const items = selection.has(card) ? selection.items() : [itemOf(card)];
  carried = { items, card, at: columns().indexOf(card.closest(".drop")) };
  hand.isFull = true;
  document.body.classList.add("is-carrying");
  for (const { source, server } of items) document.getElementById(`card-${source}-${server}`)?.classList.add("card-carried");
  announce(phrase("{names} picked up. Choose a partition with the arrow keys, drop with Enter, let go with Escape.", { names: named(items) }));
}

function point(step) {
  const all = columns();
  carried.at = Math.max(0, Math.min(all.length - 1, carried.at + step));
  for (const column of all) column.classList.toggle("drop-target", column === all[carried.at]);
  all[carried.at].scrollIntoView({ block: "nearest", inline: "nearest" });
  const { name, tenant } = all[carried.at].dataset;
  announce(tenant ? phrase("Over {name}, {tenant}.", { name, tenant }) : phrase("Over {name}.", { name }));
}

function letGo(isDropped) {
  const { items, card, at } = carried;
  carried = null;
  hand.isFull = false;
  document.body.classList.remove("is-carrying");
  for (const one of live.querySelectorAll(".card-carried, .drop-target")) one.classList.remove("card-carried", "drop-target");
  const target = columns()[at];
  if (isDropped && items.some((item) => item.source !== target.dataset.key)) {
    const rest = next(card, "ArrowDown") ?? next(card, "ArrowUp");
    move(items, target);
    goTo(card.hidden ? rest : card);
  } else {
    announce(isDropped ? phrase("Dropped where it was.") : phrase("Let go. Nothing was moved."));
    refresh();
  }
}

function carry(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
  if (step) point(step);
  else if (event.key === "Enter" || event.key === " ") letGo(true);
  else if (event.key === "Escape") letGo(false);
  else if (event.key === "Tab") { announce(phrase("Drop it with Enter first, or let go with Escape.")); }
  else return;
  event.preventDefault();
}

// ---- keys ------------------------------------------------------------------------------------------------------------------
const ARROWS = new Set(["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home", "End"]);

function onCard(event, card) {
  if (ARROWS.has(event.key)) {
    const to = next(card, event.key);
    if (to && event.shiftKey && mayAct) { if (!selection.has(card)) selection.toggle(card); selection.add([itemOf(to)]); }
    goTo(to);
  } else if (!mayAct) return;
  else if (event.key === "Enter" || event.key === " ") pickUp(card);
  else if (event.key === "m") dialog.openFor(card);
  else if (event.key === "x") { selection.toggle(card); announce(selection.sentence()); }
  else return;
  event.preventDefault();
}

document.addEventListener("keydown", (event) => {
  if (carried) { carry(event); return; }
  if (event.target.matches("input, textarea, select") || document.querySelector("dialog[open]")) return;
  const card = event.target.closest?.(".card");
  if (event.ctrlKey || event.metaKey || event.altKey) {
    if (event.key === "a" && card && mayAct && !event.altKey) { event.preventDefault(); selection.all(card.closest(".drop")); announce(selection.sentence()); }
    return;
  }
  if (event.key === "/") { event.preventDefault(); search.focus(); search.select(); }
  else if (event.key === "Escape" && selection.size()) { selection.clear(); announce(selection.sentence()); }
  else if (card && event.target === card) onCard(event, card);
  else if (card && event.key === "m" && mayAct) { event.preventDefault(); dialog.openFor(card); }
});
search.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown") return;
  event.preventDefault();
  goTo(live.querySelector(".cards .card:not([hidden])"));    // from what was typed straight to what it found
});
document.addEventListener("pointerdown", () => { if (carried) letGo(false); }, { capture: true });
live.addEventListener("focusin", (event) => {
  const card = event.target.closest(".card");
  if (card && !isTile(card.closest(".drop"))) dressColumn(card.closest(".drop"));
});
onSwap(() => live.querySelectorAll(".cards").forEach(dressColumn));
