// What is looked at: the search and the columns that are open, both in the address, so that the back button works.

import { live, onSwap, outdate, refresh, servers, turnTo } from "./live.js";
import { counted } from "../words.js";

const search = document.getElementById("search");
const count = document.getElementById("search-count");
const mistake = document.getElementById("search-mistake");
const openAll = document.getElementById("open-all");
const selectFound = document.getElementById("select-found");
const closeAll = document.getElementById("close-all");
const PAUSE_MS = 150;          // after a key, so that a word is asked for and not its letters
let typing = 0;

function sought() {
  const board = document.getElementById("board");
  if (!board) return;
  const { found, mistake: sentence } = board.dataset;
  const all = Number(board.dataset.servers);
  const isSought = new URL(location.href).searchParams.has("q");
  count.textContent = isSought ? counted("{found} of {n} server", "{found} of {n} servers", all, { found }) : servers(all);
  mistake.textContent = sentence;
  if (selectFound) selectFound.hidden = !isSought || found === "0";
  openAll.hidden = !live.querySelector(".tile");
  closeAll.hidden = !live.querySelector(".column");
}

search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(find, PAUSE_MS);
});
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter") { clearTimeout(typing); find(); }
  if (event.key === "Escape" && search.value) { search.value = ""; find(); }
});

function find() {
  const text = search.value.trim();
  const isFirst = !new URL(location.href).searchParams.has("q");
  turnTo((query) => { if (text) query.set("q", text); else query.delete("q"); }, { push: isFirst });
}

const opened = () => [...live.querySelectorAll(".cards")].map((list) => list.dataset.key);

function open(keys) { turnTo((query) => query.set("open", keys.join(",")), { push: true }); }

openAll.addEventListener("click", () => open(["all"]));
closeAll.addEventListener("click", () => open([]));
live.addEventListener("click", (event) => {
  const opens = event.target.closest("[data-open]");
  if (opens) open([...opened(), opens.dataset.open]);
  const closes = event.target.closest("[data-close]");
  if (closes) open(opened().filter((key) => key !== closes.dataset.close));
});

// What the lamps of a card say, for whoever points at it.
live.addEventListener("pointerover", (event) => {
  const facts = event.target.closest(".card-facts");
  if (facts) facts.title = document.getElementById(facts.closest(".card").getAttribute("aria-describedby"))?.textContent ?? "";
});

window.addEventListener("popstate", () => {
  search.value = new URL(location.href).searchParams.get("q") ?? "";
  outdate();
  refresh();
});
onSwap(sought);
