// What every page does: menus, dismissable messages, copy and print buttons, a server that does not answer.

import { phrase } from "./words.js";

const announcer = document.getElementById("announcer");

/** Say `text` to a screen reader without moving the focus. */
export function announce(text) {
  announcer.textContent = "";
  requestAnimationFrame(() => { announcer.textContent = text; });
}

const ANSWER_MS = 30000;    // some hundred servers take seconds; a longer silence is a network that has lost the answer

/** POST `fields` as a form with the CSRF token; resolves to the Response, and throws after ANSWER_MS without one. */
export function post(address, fields) {
  const silence = new AbortController();
  const waits = setTimeout(() => silence.abort(), ANSWER_MS);
  return fetch(address, {
    signal: silence.signal,
    method: "POST",
    headers: { "Accept": "application/json", "X-CSRFToken": document.querySelector('meta[name="csrf-token"]').content },
    body: new URLSearchParams(fields),
    credentials: "same-origin",
  }).finally(() => clearTimeout(waits));
}

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details[data-menu][open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
  const dismiss = event.target.closest("[data-dismiss]");
  if (dismiss) dismiss.closest(".note").remove();
  if (event.target.closest("[data-print]")) print();
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    navigator.clipboard.writeText(copy.dataset.copy).then(() => announce(phrase("{text} copied", { text: copy.dataset.copy })));
    copy.classList.add("copied");
    setTimeout(() => copy.classList.remove("copied"), 1200);
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details[data-menu][open]");
  if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
});

// What somebody has unfolded, or folded, stays so when the page is refreshed under them.
let folds = [];
document.addEventListener("htmx:before:swap", () => { folds = [...document.querySelectorAll("main details")].map((one) => [one, one.open]); });
document.addEventListener("htmx:after:swap", () => {
  for (const [one, isOpen] of folds) if (one.isConnected) one.open = isOpen;
  folds = [];
});

const connection = document.getElementById("connection");
document.addEventListener("htmx:error", () => { connection.hidden = false; });
document.addEventListener("htmx:after:request", (event) => {
  const status = event.detail.ctx?.response?.status ?? 200;
  connection.hidden = status < 500;
  // What is refused to a fragment is refused to its page: say so as a page, not inside of one.
  if (status >= 400 && status < 500 && status !== 429) location.assign(location.href);
});

// On a narrow screen the navigation scrolls sideways: show where we are.
const here = document.querySelector('.topnav [aria-current="page"]');
const tab = document.querySelector('.inventory-tabs [aria-current="page"]');
const showWhereWeAre = () => {
  if (here) here.parentElement.closest(".topnav").scrollLeft = here.offsetLeft - 16;
  if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 16;
};
showWhereWeAre();
addEventListener("resize", showWhereWeAre);
