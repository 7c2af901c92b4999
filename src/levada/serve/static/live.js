// The status every second, for whichever view looks; what came in the last minutes is remembered here.

import { API, ask } from "./api.js";

const KEPT = 240, AGAIN = 2000;
export const past = { pace: [], estimated: [], due: [] };
export let latest = null;
let changes = [];
const watchers = new Set(), reaching = new Set();
let lost = false;

// Told at once and whenever it changes: whether the server is out of reach.
export function reach(look) {
  reaching.add(look);
  look(lost);
  return () => reaching.delete(look);
}

function told(isLost) {
  if (lost === isLost) return;
  lost = isLost;
  for (const look of reaching) look(lost);
}

export function watch(look) {
  watchers.add(look);
  if (latest) look(latest, changes);
  return () => watchers.delete(look);
}

// The crawled world's own now; a link to a view may be opened before the first event has come.
export const worldNow = async () => (latest || await ask("/status")).now;

function remember(list, value) {
  if (value === null || value === undefined) return;
  list.push(value);
  if (list.length > KEPT) list.shift();
}

export function connect(say) {
  const source = new EventSource(`${API}/live/stream`);
  source.addEventListener("message", (event) => {
    ({ status: latest, changes } = JSON.parse(event.data));
    told(false);
    if (latest.live) {
      remember(past.pace, latest.live.pages_per_second);
      remember(past.estimated, latest.live.believed_current);
      remember(past.due, latest.live.due);
    }
    say(latest.crawling ? (latest.live?.paused ? "paused" : latest.live?.offline ? "network down" : "crawling") : "no crawl runs", latest.crawling ? "on" : "");
    for (const look of watchers) look(latest, changes);
  });
  source.addEventListener("error", () => {
    say("line lost, trying again", "lost");
    told(true);
    if (source.readyState === EventSource.CLOSED) setTimeout(() => again(say), AGAIN); // refused: the browser gives up
  });
}

// A server that was started anew knows no session: that is found out by asking, which leads to the login.
const again = (say) => ask("/status").catch(() => {}).then(() => connect(say));
