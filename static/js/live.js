// Live: elements that say what they depend on are refreshed when it changed.
//
//   <div data-live="staged rollout:abc123" hx-get="…" hx-trigger="every 30s, refresh">
//
// One stream of hints a page (server-sent events), and only while somebody looks at it. A hint names a kind of thing and
// perhaps its public id, never data: the element asks the server again. Without a stream, for whatever reason, each
// element is refreshed every five seconds; its own slow `every` stays as the last resort.

const ADDRESS = document.querySelector('meta[name="live-stream"]')?.content;
const POLL_MS = 5000;       // without a stream
const GATHER_MS = 120;      // hints that come together make one request
const APART_MS = 1000;      // two requests of one element are at least so far apart
const SILENCE_MS = 40000;   // the server says something every 15 s
const BACK_OFF_MS = [500, 1000, 2000, 5000, 10000, 20000];

let stream = null;
let isHere = false;         // every hint comes
let isOver = false;         // the session may no longer listen
let isBack = false;         // the next stream is one after a failure
let sureAt = performance.timeOrigin + (performance.getEntriesByType("navigation")[0]?.requestStart ?? 0);
let heardAt = 0;
let failures = 0;
let retry = null;
let polledAt = Date.now();
const due = new Set();
const refreshedAt = new WeakMap();
let gathering = null;

// The board's element (templates/console/board.html) is what nearly everything changes.
const board = document.getElementById("live");
if (board) board.dataset.live ??= "staged partition rollout server subnet drift look";

/** The elements on the page that depend on something, now. */
const elements = () => [...document.querySelectorAll("[data-live]")];

function dependsOn(element, { kind, id }) {
  return element.dataset.live.split(/\s+/).some((word) => {
    const [wanted, wantedId] = word.split(":");
    return wanted === kind && (!wantedId || !id || wantedId === id);
  });
}

/** Whether `element` asks often enough by itself: asking twice would only disturb who works on it. */
function polls(element) {
  const every = element.getAttribute("hx-trigger")?.match(/every (\d+)s/);
  return Boolean(every) && Number(every[1]) * 1000 <= POLL_MS;
}

/** Have `some` elements ask the server soon, each once. */
function refresh(some) {
  for (const element of some) due.add(element);
  if (!due.size || gathering) return;
  gathering = setTimeout(() => {
    gathering = null;
    const now = Date.now();
    const later = [];
    for (const element of due) {
      if (!element.isConnected) continue;
      if (now - (refreshedAt.get(element) ?? 0) < APART_MS) { later.push(element); continue; }
      refreshedAt.set(element, now);
      element.dispatchEvent(new CustomEvent("refresh"));
    }
    due.clear();
    if (later.length) refresh(later);
  }, GATHER_MS);
}

function say() {
  document.documentElement.dataset.stream = isHere ? "live" : "polling";
}

function open() {
  if (!ADDRESS || stream || isOver || document.hidden || !elements().length) return;
  const unsure = Math.max(0, Math.round(Date.now() - sureAt));
  stream = new EventSource(`${ADDRESS}?unsure=${unsure}`);
  heardAt = Date.now();
  const on = (name, act) => stream.addEventListener(name, (event) => { heardAt = Date.now(); act(event); });
  on("here", () => {
    isHere = true;
    failures = 0;
    if (isBack) { isBack = false; refresh(elements()); }
    say();
  });
  on("away", () => { wasHere(); say(); });
  on("hints", (event) => {
    const hints = JSON.parse(event.data);
    refresh(elements().filter((element) => hints.some((hint) => dependsOn(element, hint))));
  });
  on("all", () => refresh(elements()));
  on("still", () => {});
  on("again", () => fail());
  on("gone", () => {  // asking is what leads to the login page, or to what the person may see now
    isOver = true;
    close();
    refresh(elements());
  });
  stream.onerror = fail;
  say();
}

/** Since we last heard something, we do not know whether anything changes. */
function wasHere() {
  if (isHere) sureAt = heardAt;
  isHere = false;
}

function close() {
  clearTimeout(retry);
  retry = null;
  stream?.close();
  stream = null;
  wasHere();
  say();
}

function fail() {
  isBack = true;
  close();
  if (isOver) return;
  const wait = BACK_OFF_MS[Math.min(failures++, BACK_OFF_MS.length - 1)];
  retry = setTimeout(open, wait * (0.5 + Math.random()));  // not all pages at the same moment
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) close();
  else open();
});
addEventListener("pagehide", close);
addEventListener("pageshow", (event) => { if (event.persisted) open(); });

setInterval(() => {
  if (document.hidden) return;
  if (stream && Date.now() - heardAt > SILENCE_MS) fail();
  if (!stream && !retry) open();  // elements may have come with a fragment
  if (isHere) return;
  if (Date.now() - polledAt < POLL_MS) return;
  polledAt = Date.now();
  refresh(elements().filter((element) => !polls(element)));
}, 1000);

open();
say();
