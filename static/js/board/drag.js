// Dragging, by SortableJS: one list a column or tile. A selected card takes the other selected ones along.

import { columns, hand, letGo, mayAct, onSwap, refresh, servers } from "./live.js";
import { insertByName, itemOf, move } from "./moves.js";
import * as selection from "./selection.js";

const count = document.getElementById("drag-count");

function makeSortable(list) {
  if (window.Sortable.get(list)) return;
  window.Sortable.create(list, {
    group: "board",
    sort: false,
    draggable: ".card",
    filter: ".card-move, .card-refusal",
    preventOnFilter: false,
    animation: list.classList.contains("tile") ? 0 : 120,
    delay: 180,
    delayOnTouchOnly: true,
    ghostClass: "card-ghost",
    chosenClass: "card-chosen",
    setData(transfer, card) {
      transfer.setData("text/plain", card.dataset.name);
      if (!selection.has(card) || selection.size() < 2) return;
      count.textContent = servers(selection.size());
      transfer.setDragImage(count, 16, 16);
    },
    onChoose() { hand.isFull = true; },    // a swap between press and first movement would take the card out of the hand
    onUnchoose() { if (!document.body.classList.contains("is-dragging")) letGo(); },
    onStart() { document.body.classList.add("is-dragging"); },
    onEnd(event) {
      hand.isFull = false;
      document.body.classList.remove("is-dragging");
      const { item: card, from, to } = event;
      if (from === to) { refresh(); return; }
      insertByName(card, from);    // from here on it is a move like any other
      move(selection.has(card) ? selection.items() : [itemOf(card)], to);
    },
  });
}

if (mayAct) onSwap(() => columns().forEach(makeSortable));
