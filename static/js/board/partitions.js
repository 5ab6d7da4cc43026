// Partitions from the board: create, rename, retire, each by the operation that their own pages use.

import { announce } from "../page.js";
import { columnOf, live, mayAct, refresh, turnTo } from "./live.js";
import { ask } from "./moves.js";
import { phrase } from "../words.js";

const create = document.getElementById("new-dialog");
const act = document.getElementById("act-dialog");
const renaming = document.getElementById("rename-form");
const retiring = document.getElementById("retire-form");
let key = "";    // of the partition that the second dialog is about

/** Send a dialog's form; close it when the server did it, else say why not. */
async function send(dialog, error, address, form) {
  const said = await ask(address, new FormData(form));
  if (said.isRefused) { error.textContent = said.sentence; error.hidden = false; return null; }
  dialog.close();
  announce(said.sentence);
  refresh();
  return said;
}

function openAct(column) {
  key = column.dataset.key;
  const isEmpty = !column.querySelector(".card");
  document.getElementById("act-title").textContent = column.dataset.name;
  document.getElementById("act-error").hidden = true;
  document.getElementById("act-name").value = column.dataset.name;
  document.getElementById("act-reason").value = "";
  document.getElementById("act-hint").textContent = isEmpty
    ? phrase("An empty partition takes no members any more; its name stays in the trail and its P_Key cools down.")
    : phrase("Only an empty partition can be retired. This stages that all members leave; you can undo it.");
  document.querySelector("#act-retire span").textContent = isEmpty ? phrase("Retire it") : phrase("Stage that everybody leaves");
  act.showModal();
}

if (mayAct) {
  document.getElementById("new-partition").addEventListener("click", () => {
    document.getElementById("new-error").hidden = true;
    create.showModal();
  });
  document.getElementById("new-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const isTiled = Boolean(live.querySelector(".tile"));
    const said = await send(create, document.getElementById("new-error"), live.dataset.create, event.target);
    if (!said?.key || !isTiled) return;
    const opened = [...live.querySelectorAll(".cards")].map((list) => list.dataset.key);
    turnTo((query) => query.set("open", [...opened, said.key].join(",")), { push: true });
  });
  document.getElementById("new-fields").addEventListener("htmx:after:swap", () => document.getElementById("new-name").focus());
  const error = document.getElementById("act-error");
  for (const [form, name] of [[renaming, "rename"], [retiring, "retire"]]) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(act, error, live.dataset[name].replace("KEY", key), form);
    });
  }
  for (const dialog of [create, act]) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("[data-leave]")) dialog.close();
    });
  }
  live.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (button) openAct(columnOf(button.dataset.act));
  });
}
