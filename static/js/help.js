// Keys that every page has, and the dialog that lists them. Nothing happens while somebody types, and keys of one letter
// can be switched off (WCAG 2.1.4): then no script of ours hears them.

const dialog = document.getElementById("help-dialog");
const isOn = document.getElementById("keys-on");
const OFF = "fabricui.keys";
const TOGETHER_MS = 1500;  // “g” and the letter after it
let goingSince = 0;

function areOff() {
  try { return localStorage.getItem(OFF) === "off"; } catch { return false; }
}

const isTyping = (element) =>
  element instanceof Element && (element.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null);

// Before any other script: what is switched off is heard by none.
document.addEventListener("keydown", (event) => {
  const isOneLetter = event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (isOneLetter && areOff() && !isTyping(event.target)) event.stopImmediatePropagation();
}, { capture: true });

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "?") { event.preventDefault(); open(); return; }
  const isGoing = Date.now() - goingSince < TOGETHER_MS;
  goingSince = 0;
  if (isGoing) {
    const target = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    if (target) { event.preventDefault(); event.stopImmediatePropagation(); target.click(); }
  } else if (event.key === "g") {
    goingSince = Date.now();
  }
});

function open() {
  for (const row of dialog.querySelectorAll("[data-keys-when]")) {
    row.hidden = !document.querySelector(row.dataset.keysWhen);
  }
  isOn.checked = !areOff();
  dialog.showModal();
}

if (dialog) {
  isOn.addEventListener("change", () => {
    try { localStorage.setItem(OFF, isOn.checked ? "on" : "off"); } catch { /* then they stay as they are */ }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.addEventListener("click", (event) => { if (event.target.closest("[data-help]")) open(); });
}
