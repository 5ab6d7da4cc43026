// What concerns no card that is to be seen: one sentence above the board, until somebody has read it.

const note = document.getElementById("said");

export function tell(sentence) {
  document.getElementById("said-text").textContent = sentence;
  note.hidden = false;
}

document.getElementById("said-close")?.addEventListener("click", () => { note.hidden = true; });
