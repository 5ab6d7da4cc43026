// Undo: what this person staged last, by the button or by Ctrl+Z, until a rollout has made it true.

import { announce } from "../page.js";
import { live, mayAct, refresh } from "./live.js";
import { ask } from "./moves.js";
import { tell } from "./said.js";

let isUnderWay = false;

async function undo() {
  if (isUnderWay) return;
  isUnderWay = true;
  const said = await ask(live.dataset.undo, {});
  isUnderWay = false;
  if (said.isRefused) tell(said.sentence);
  announce(said.sentence);
  refresh();
}

if (mayAct) {
  live.addEventListener("submit", (event) => {
    if (event.target.id !== "undo-form") return;
    event.preventDefault();
    undo();
  });
  document.addEventListener("keydown", (event) => {
    const isUndo = event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
    if (!isUndo || event.target.matches("input, textarea, select") || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    undo();
  });
}
