// The board: drag, the Move dialog, refused moves, the search box. The server decides; this page only hastens.
// Nothing is ever swapped in while a card is in the hand or a move is on its way, and an answer that was asked for
// before a move is thrown away: otherwise a stale board would put cards back.

import { announce, post } from "./page.js";

const live = document.getElementById("live");
const mayAct = "move" in live.dataset;
const UNASSIGNED = "unassigned";

let inHand = false;
let epoch = 0;
const moving = new Set();      // keys of servers whose move is on its way
const refusals = new Map();    // card id → sentence; stays until dismissed or moved

// ---- polling ---------------------------------------------------------------------------------------------------
const isBusy = () => inHand || moving.size > 0;
const refresh = () => { if (!isBusy()) live.dispatchEvent(new CustomEvent("refresh")); };

live.addEventListener("htmx:before:request", (event) => {
  if (isBusy()) event.preventDefault();
  else event.detail.ctx.boardEpoch = epoch;
});
live.addEventListener("htmx:before:swap", (event) => {
  const { ctx } = event.detail;
  if (ctx.response?.status !== 200 || isBusy() || ctx.boardEpoch !== epoch) event.preventDefault();
});
live.addEventListener("htmx:after:swap", dress);

/** Bring what only this page knows back onto freshly swapped cards. */
function dress() {
  if (mayAct) live.querySelectorAll(".cards").forEach(makeSortable);
  for (const [id, sentence] of refusals) {
    const card = document.getElementById(id);
    if (card) showRefusal(card, sentence); else refusals.delete(id);
  }
  filter();
}

// ---- drag --------------------------------------------------------------------------------------------------------
function makeSortable(list) {
  if (window.Sortable.get(list)) return;
  window.Sortable.create(list, {
    group: "board",
    sort: false,
    draggable: ".card",
    filter: ".card-move, .card-refusal",
    preventOnFilter: false,
    animation: 120,
    delay: 180,
    delayOnTouchOnly: true,
    ghostClass: "card-ghost",
    chosenClass: "card-chosen",
    onStart() { inHand = true; document.body.classList.add("is-dragging"); },
    onEnd(event) {
      inHand = false;
      document.body.classList.remove("is-dragging");
      if (event.from === event.to) { refresh(); return; }
      move(event.item, event.from, event.to, false);
    },
  });
}

// ---- one move ----------------------------------------------------------------------------------------------------
async function move(card, source, target, keep) {
  const server = card.dataset.server;
  if (!keep && staysBehind(source, target)) {
    keep = true;
    if (card.parentElement !== source) putBack(card, source);
  }
  const id = card.id;
  const twin = document.getElementById(`card-${target.dataset.key}-${server}`);
  if (moving.has(server)) { putBack(card, source); return; }
  epoch += 1;
  moving.add(server);
  dropRefusal(card);
  card.classList.add("card-moving");
  if (!keep) {
    if (twin && twin !== card) twin.hidden = true;
    insertByName(card, target);
    card.id = `card-${target.dataset.key}-${server}`;
  }
  recount();
  let sentence;
  let isRefused = true;
  try {
    const fields = { server, source: source.dataset.key, target: target.dataset.key };
    if (keep) fields.keep = "1";
    const answer = await post(live.dataset.move, fields);
    if (answer.redirected || answer.status === 403) { location.reload(); return; }
    const isJSON = answer.headers.get("Content-Type")?.startsWith("application/json");
    sentence = isJSON ? (await answer.json()).sentence : `The server answered ${answer.status}. Nothing was staged; load the page again.`;
    isRefused = !answer.ok;
  } catch {
    sentence = "The server did not answer, so nothing was staged as far as this page knows. Try again.";
  }
  moving.delete(server);
  card.classList.remove("card-moving");
  if (isRefused) {
    if (twin && twin !== card) twin.hidden = false;
    card.id = id;
    putBack(card, source);
    refusals.set(id, sentence);
    showRefusal(card, sentence);
    announce(`Not moved: ${sentence}`);
  } else {
    card.classList.add("card-staged");
    announce(sentence);
  }
  refresh();
}

/** What tenants share is joined beside their own partitions; the server that is asked says the same. */
function staysBehind(source, target) {
  return "shared" in target.dataset && !("shared" in source.dataset) && source.dataset.key !== UNASSIGNED;
}

/** Make the held server a full, or a limited, member of the partition it is shown in. */
async function changeKind() {
  const { card, source } = held;
  const membership = card.dataset.kind === "full" ? "limited" : "full";
  dialog.close();
  dropRefusal(card);
  let sentence = "The server did not answer, so nothing was staged as far as this page knows. Try again.";
  let isRefused = true;
  try {
    const answer = await post(live.dataset.membership, { server: card.dataset.server, partition: source.dataset.key, membership });
    if (answer.redirected || answer.status === 403) { location.reload(); return; }
    const isJSON = answer.headers.get("Content-Type")?.startsWith("application/json");
    sentence = isJSON ? (await answer.json()).sentence : `The server answered ${answer.status}. Nothing was staged; load the page again.`;
    isRefused = !answer.ok;
  } catch { /* the sentence says it */ }
  if (isRefused) { refusals.set(card.id, sentence); showRefusal(card, sentence); }
  announce(isRefused ? `Not changed: ${sentence}` : sentence);
  refresh();
}

function insertByName(card, list) {
  const next = [...list.querySelectorAll(".card")].find((other) => other !== card && other.dataset.name > card.dataset.name);
  list.insertBefore(card, next ?? null);
}

function putBack(card, source) {
  insertByName(card, source);
  recount();
}

function recount() {
  for (const column of live.querySelectorAll(".column")) {
    column.querySelector("[data-count]").textContent = column.querySelectorAll(".card").length;
  }
}

function showRefusal(card, sentence) {
  if (card.querySelector(".card-refusal")) return;
  card.classList.add("card-refused");
  const note = document.createElement("p");
  note.className = "card-refusal";
  note.textContent = sentence;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn btn-small";
  close.textContent = "Got it";
  note.append(" ", close);
  card.append(note);
}

function dropRefusal(card) {
  refusals.delete(card.id);
  card.classList.remove("card-refused");
  card.querySelector(".card-refusal")?.remove();
}

// ---- the Move dialog ------------------------------------------------------------------------------------------------
const dialog = document.getElementById("move-dialog");
const input = document.getElementById("move-input");
const list = document.getElementById("move-list");
let held = null;   // { card, source } while the dialog is open
let chosen = 0;

function openDialog(card) {
  const source = card.closest(".cards");
  held = { card, source };
  document.getElementById("move-server").textContent = card.dataset.name;
  document.getElementById("move-source").textContent =
    source.dataset.key === UNASSIGNED ? "It is in no partition." : `It is in ${source.dataset.name} (${source.dataset.pkey}).`;
  document.getElementById("move-keep-source").textContent = source.dataset.name;
  document.getElementById("move-keep").checked = false;
  document.getElementById("move-keep-label").hidden = source.dataset.key === UNASSIGNED;
  const kind = document.getElementById("move-kind");
  kind.hidden = source.dataset.key === UNASSIGNED;
  kind.textContent = `Make ${card.dataset.kind === "full" ? "limited" : "full"} in ${source.dataset.name}`;
  input.value = "";
  offer();
  dialog.showModal();
  input.focus();
}

/** Fill the list with the columns that match what was typed. */
function offer() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const columns = [...live.querySelectorAll(".cards")].filter((cards) => {
    if (cards === held.source) return false;
    const text = `${cards.dataset.name} ${cards.dataset.tenant} ${cards.dataset.pkey}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  list.replaceChildren(...columns.map((cards, index) => {
    const option = document.createElement("li");
    option.id = `move-option-${index}`;
    option.role = "option";
    option.className = "move-option";
    option.dataset.key = cards.dataset.key;
    const name = document.createElement("strong");
    name.textContent = cards.dataset.name;
    const about = document.createElement("span");
    const shares = staysBehind(held.source, cards) ? "joins as limited, keeps its own" : "";
    about.textContent = [cards.dataset.tenant, cards.dataset.pkey, shares].filter(Boolean).join(" · ") || "out of every partition it is shown in";
    option.append(name, about);
    return option;
  }));
  document.getElementById("move-none").hidden = columns.length > 0;
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

function confirmMove() {
  const option = list.children[chosen];
  if (!option) return;
  const { card, source } = held;
  const target = document.getElementById(`cards-${option.dataset.key}`);
  const keep = document.getElementById("move-keep").checked && option.dataset.key !== UNASSIGNED;
  dialog.close();
  if (!card.isConnected || !target) { refresh(); return; }
  move(card, source, target, keep);
  card.querySelector(".card-move").focus();
}

if (mayAct) {
  input.addEventListener("input", offer);
  document.getElementById("move-kind").addEventListener("click", changeKind);
  dialog.addEventListener("keydown", (event) => {
    if (event.target !== input) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step) { event.preventDefault(); choose(chosen + step); }
    if (event.key === "Enter") { event.preventDefault(); confirmMove(); }
  });
  list.addEventListener("click", (event) => {
    const option = event.target.closest(".move-option");
    if (option) { choose([...list.children].indexOf(option)); confirmMove(); }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { held?.card.querySelector(".card-move")?.focus(); held = null; });
  live.addEventListener("click", (event) => {
    const button = event.target.closest(".card-move");
    if (button) openDialog(button.closest(".card"));
    const gotIt = event.target.closest(".card-refusal .btn");
    if (gotIt) dropRefusal(gotIt.closest(".card"));
  });
}

// ---- search and keys --------------------------------------------------------------------------------------------------
const search = document.getElementById("search");
const count = document.getElementById("search-count");

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = new Set();
  const all = new Set();
  for (const card of live.querySelectorAll(".card")) {
    const isShown = words.every((word) => card.dataset.search.includes(word));
    card.classList.toggle("card-hidden", !isShown);
    all.add(card.dataset.server);
    if (isShown) shown.add(card.dataset.server);
  }
  const servers = (number) => `${number} server${number === 1 ? "" : "s"}`;
  count.textContent = words.length ? `${shown.size} of ${servers(all.size)}` : servers(all.size);
}

search.addEventListener("input", () => {
  filter();
  const address = new URL(location.href);
  if (search.value) address.searchParams.set("q", search.value); else address.searchParams.delete("q");
  history.replaceState(null, "", address);
});

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input, textarea, select") || dialog?.open;
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) {
    if (event.key === "Escape" && event.target === search && search.value) { search.value = ""; filter(); }
    return;
  }
  if (event.key === "/") { event.preventDefault(); search.focus(); search.select(); }
  const card = event.target.closest?.(".card");
  if (event.key === "m" && card && mayAct) { event.preventDefault(); openDialog(card); }
});

dress();
