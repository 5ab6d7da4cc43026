/* Arrow keys in the heat map: one tab stop for the whole table, as the grid pattern of ARIA asks. */

const table = document.getElementById("heat");

function cellsOf(row) {
  return [...row.querySelectorAll("td")];
}

function focus(rows, at, across) {
  const cells = cellsOf(rows[at] ?? rows[0]);
  const link = cells[across]?.querySelector("a");
  if (!link) return false;
  table.querySelectorAll('td a[tabindex="0"]').forEach((other) => other.setAttribute("tabindex", "-1"));
  link.setAttribute("tabindex", "0");
  link.focus();
  return true;
}

if (table) {
  table.querySelector("td a")?.setAttribute("tabindex", "0");
  table.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const cell = event.target.closest("td");
    if (!step || !cell || event.altKey || event.ctrlKey || event.metaKey) return;
    const rows = [...table.tBodies[0].rows];
    let at = rows.indexOf(cell.parentElement);
    let across = cellsOf(rows[at]).indexOf(cell);
    event.preventDefault();
    // The diagonal has no link: step over it.
    for (let tries = 0; tries < 2; tries += 1) {
      at += step[0];
      across += step[1];
      if (at < 0 || across < 0 || at >= rows.length) return;
      if (focus(rows, at, across)) return;
    }
  });
}
