// Moves: the cards go at once, the server decides, and what it refuses goes back alone with its sentence.

import { announce, post } from "../page.js";
import { cardOf, isTile, live, moving, outdate, refresh, servers, UNASSIGNED } from "./live.js";
import { forget, refuse } from "./refusals.js";
import { tell } from "./said.js";
import * as selection from "./selection.js";
import { phrase } from "../words.js";

const MOST = 200;    // servers a request; more go in parts, each a transaction of its own

/** What a card is to a move: its server, the column it is taken from, its name. */
export function itemOf(card) {
  return { server: card.dataset.server, source: card.closest(".drop").dataset.key, name: card.dataset.name };
}

/** What tenants share is joined beside their own partitions; the server that is asked says the same. */
export function staysBehind(source, target) {
  return "shared" in target.dataset && !(source && "shared" in source.dataset) && source?.dataset.key !== UNASSIGNED;
}

/** Ask the server; gives what it says with {sentence, isRefused, refused: Map of server → sentence}.
 *  It goes out at once: a poll that is on its way is given up before, and one that began meanwhile after. */
export async function ask(address, fields) {
  outdate();
  try {
    const answer = await post(address, fields);
    if (answer.redirected || answer.status === 403) { location.reload(); return new Promise(() => {}); }
    if (!answer.headers.get("Content-Type")?.startsWith("application/json")) {
      const sentence = phrase("The server answered {status}. Nothing was staged; load the page again.", { status: answer.status });
      return { sentence, isRefused: true, refused: new Map() };
    }
    const said = await answer.json();
    const refused = new Map((said.refused ?? []).map((one) => [one.server, one.sentence]));
    return { ...said, isRefused: !answer.ok, refused };
  } catch {
    const sentence = phrase("The server did not answer, so nothing was staged as far as this page knows. Try again.");
    return { sentence, isRefused: true, refused: new Map() };
  } finally {
    outdate();
  }
}

/** Move `items` into the column `target` (with `keep`: add them to it) by one request for up to MOST of them. */
export async function move(items, target, { keep = false } = {}) {
  const key = target.dataset.key;
  const going = new Map();    // a server once, wherever else it is selected
  for (const item of items) if (item.source !== key && !moving.has(item.server)) going.set(item.server, item);
  const all = [...going.values()];
  for (let at = 0; at < all.length; at += MOST) await moveSome(all.slice(at, at + MOST), target, keep);
}

async function moveSome(going, target, keep) {
  const key = target.dataset.key;
  const shown = going.map((item) => take(item, target, keep));
  recount();
  const fields = [["target", key], ...(keep ? [["keep", "1"]] : [])];
  for (const { server, source } of going) fields.push(["server", server], ["source", source]);
  const said = await ask(live.dataset.move, fields);
  for (const one of shown) settle(one, said, going.length);
  selection.drop(going);
  recount();
  const { sentence } = said;
  announce(said.isRefused || said.refused.size === going.length ? phrase("Not moved: {sentence}", { sentence }) : sentence);
  refresh();
}

/** Let the card go where it is dropped; gives what is needed to put it back. */
function take(item, target, keep) {
  const card = cardOf(item.source, item.server);
  const source = card?.closest(".drop");
  const twin = cardOf(target.dataset.key, item.server);
  const stays = keep || !card || staysBehind(source, target);
  moving.add(item.server);
  if (card) {
    forget(card);
    card.classList.add("card-moving");
    if (!stays) {
      if (twin) twin.hidden = true;
      if (isTile(target)) card.hidden = true;
      else {
        insertByName(card, target);
        card.id = `card-${target.dataset.key}-${item.server}`;
      }
    }
  }
  return { item, card, source, twin, id: card && `card-${item.source}-${item.server}` };
}

function settle({ item, card, source, twin, id }, said, count) {
  moving.delete(item.server);
  const sentence = said.refused.get(item.server) ?? (said.isRefused && (count === 1 || !said.refused.size) ? said.sentence : "");
  if (!card) { if (sentence) tell(sentence); return; }
  card.classList.remove("card-moving");
  if (!sentence) { card.classList.add("card-staged"); return; }
  if (twin && twin !== card) twin.hidden = false;
  card.hidden = false;
  card.id = id;
  insertByName(card, source);
  refuse(card, sentence);
}

/** Make a server a full, or a limited, member of the partition its card is in. */
export async function changeKind(card) {
  const { server, source } = itemOf(card);
  const membership = card.dataset.kind === "full" ? "limited" : "full";
  forget(card);
  const said = await ask(live.dataset.membership, { server, partition: source, membership });
  if (said.isRefused) refuse(card, said.sentence);
  announce(said.isRefused ? phrase("Not changed: {sentence}", { sentence: said.sentence }) : said.sentence);
  refresh();
}

export function insertByName(card, list) {
  const next = [...list.querySelectorAll(".card")].find((other) => other !== card && other.dataset.name > card.dataset.name);
  list.insertBefore(card, next ?? null);
}

/** How many are to be seen in each open column, until the server says it better. */
function recount() {
  for (const column of live.querySelectorAll(".column")) {
    column.querySelector("[data-count]").textContent = column.querySelectorAll(".card:not([hidden])").length;
  }
}

/** Names of `items` for a sentence: “srv-001”, or “3 servers”. */
export const named = (items) => (items.length === 1 ? items[0].name : servers(items.length));
