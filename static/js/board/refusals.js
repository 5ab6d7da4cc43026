// Refused moves: the sentence stays on the card until somebody has read it, whatever is swapped in meanwhile.

import { live, onSwap } from "./live.js";
import { phrase } from "../words.js";

const refusals = new Map();    // card id → sentence

export function refuse(card, sentence) {
  refusals.set(card.id, sentence);
  show(card, sentence);
}

export function forget(card) {
  refusals.delete(card.id);
  card.classList.remove("card-refused");
  card.querySelector(".card-refusal")?.remove();
}

function show(card, sentence) {
  if (card.querySelector(".card-refusal")) return;
  card.classList.add("card-refused");
  const note = document.createElement("p");
  note.className = "card-refusal";
  note.textContent = sentence;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn btn-small";
  close.textContent = phrase("Got it");
  note.append(" ", close);
  card.append(note);
}

onSwap(() => {
  for (const [id, sentence] of refusals) {
    const card = document.getElementById(id);
    if (card) show(card, sentence); else refusals.delete(id);
  }
});
live.addEventListener("click", (event) => {
  const gotIt = event.target.closest(".card-refusal .btn");
  if (gotIt) forget(gotIt.closest(".card"));
});
