// The tenant's board: a drag is the same form as the menu of a card. What is refused goes back and says why.

import { announce, post } from "./page.js";
import { phrase } from "./words.js";

const live = document.getElementById("live");
let inHand = false;

/** Say `sentence` on the page and to a screen reader. */
function say(sentence, isRefused) {
  let note = document.getElementById("said");
  if (!note) {
    note = document.createElement("div");
    note.id = "said";
    live.before(note);
  }
  note.className = isRefused ? "note note-error" : "note note-success";
  note.setAttribute("role", isRefused ? "alert" : "status");
  const text = document.createElement("p");
  text.textContent = sentence;
  note.replaceChildren(text);
  announce(sentence);
}

function refresh() {
  live.dispatchEvent(new CustomEvent("refresh"));
}

async function move(card, from, to) {
  card.classList.add("card-moving");
  let answer;
  try {
    answer = await post(live.dataset.move, { server: card.dataset.server, source: from.dataset.key, target: to.dataset.key });
  } catch {
    answer = null;
  }
  const told = answer && answer.headers.get("Content-Type")?.includes("json") ? await answer.json() : null;
  say(told?.sentence ?? phrase("The server does not answer. Nothing was changed; try again."), !answer?.ok);
  card.classList.remove("card-moving");
  refresh();
}

function makeSortable(list) {
  if (window.Sortable.get(list)) return;
  window.Sortable.create(list, {
    group: "own",
    sort: false,
    draggable: ".card",
    filter: ".own-menu, [data-shared] .card",
    preventOnFilter: false,
    animation: 120,
    delay: 180,
    delayOnTouchOnly: true,
    ghostClass: "card-ghost",
    onChoose() { inHand = true; live.dispatchEvent(new CustomEvent("htmx:abort")); },  // a poll on its way, too
    onUnchoose() { if (!document.body.classList.contains("is-dragging")) inHand = false; },
    onStart() { inHand = true; document.body.classList.add("is-dragging"); },
    onEnd({ item, from, to }) {
      inHand = false;
      document.body.classList.remove("is-dragging");
      if (from === to) return;
      from.append(item);    // where it is until the server says otherwise
      move(item, from, to);
    },
  });
}

function ready() {
  document.querySelectorAll("#columns .cards").forEach(makeSortable);
}

// A card in the hand, or an open menu, is not swapped away.
for (const moment of ["htmx:before:request", "htmx:before:swap"]) {
  live.addEventListener(moment, (event) => {
    if (inHand || live.querySelector(".own-menu[open]")) event.preventDefault();
  });
}
document.addEventListener("htmx:after:swap", ready);

document.addEventListener("keydown", (event) => {
  const menu = live.querySelector(".own-menu[open]");
  if (event.key === "Escape" && menu) { menu.open = false; menu.querySelector("summary").focus(); }
});

ready();
