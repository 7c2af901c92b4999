// How does it go, right now?

import { lines } from "./charts.js";
import { card, command, el, figure, note, number, pageLink, percent, show, size, table, trouble, wide } from "./dom.js";
import { past, watch } from "./live.js";

export function open(place) {
  const top = el("div", {}), charts = el("div", { class: "grid" }), below = el("div", { class: "grid" });
  const list = el("ul", { class: "plain" });
  show(place, el("h1", {}, "Now"), top, charts, below, wide("Latest changes", list));
  return watch((status, changes) => {
    draw(status, top, charts, below);
    show(list, changes.length ? changes.map(line) : el("li", { class: "soft" }, "None yet."));
  });
}

const line = (change) => el("li", {}, el("span", { class: `tag ${change.what}` }, change.what), " ", pageLink(change.url, change.title || change.url),
  el("span", { class: "soft small" }, ` ${change.site}${change.what === "changed" ? `, ${percent(change.changed, 0)} of the words` : ""}`));

function draw(status, top, charts, below) {
  const { standing, live } = status;
  if (!standing) {
    show(top, status.trouble
      ? [trouble({ message: `The collection cannot be read: ${status.trouble}` }), note("This says more:", command("doctor", status))]
      : note("Nothing is stored yet. Start a crawl:", command("crawl https://example.org", status)));
    show(charts);
    show(below);
    return;
  }
  show(top, el("div", { class: "card" }, el("div", { class: "figures" },
    figure(live ? number(live.pages_per_second, 1) : "–", "pages per second"),
    figure(percent(live?.believed_current), "estimated to be current"),
    figure(number(standing.stored), `pages stored, ${number(standing.versions)} versions`),
    figure(number(standing.due), `due, ${number(standing.unvisited)} never visited`),
    figure(percent(live?.budget_used, 0), budget(live)),
    figure(size(standing.bytes), `${number(standing.sites)} sites, ${number(standing.known)} addresses`))),
    live?.offline ? el("p", { class: "note warn" }, "Nothing answers: the network seems to be down. The crawl tries it again and again, goes on by itself, and charges no page for it.") : null,
    live ? null : note("No crawl runs in this folder; this is how it was left. Go on with:", command("crawl", status)));
  show(charts,
    card("Pages per second", past.pace.length > 1 ? lines([{ values: past.pace }], { words: "Pages per second over the last minutes" }) : waiting(live)),
    card("Estimated to be current", past.estimated.length > 1 ? lines([{ values: past.estimated.map((share) => 100 * share) }], { top: 100, words: "Share of pages estimated to be current, in percent" }) : waiting(live)));
  const failed = Object.entries(live?.failed || {}), refused = Object.entries(standing.refused);
  const states = Object.entries(standing.states).sort((a, b) => b[1] - a[1]);
  show(below,
    card("Visits that failed", table(["reason", { name: "visits", num: true }], failed.map(([why, count]) => [why, number(count)]), "None since this crawl began.")),
    card("Refused, and why", table(["reason", { name: "addresses", num: true }], refused.sort((a, b) => b[1] - a[1]).map(([why, count]) => [why, number(count)]), "Nothing was refused.")),
    card("Pages by state", table(["state", { name: "pages", num: true }], states.map(([state, count]) => [state, number(count)]))));
}

// Without a limit per hour there may still be one per page and day.
function budget(live) {
  if (!live) return "of the budget";
  return live.per_hour ? `of ${number(live.per_hour)} fetches per hour` : "no limit per hour";
}

const waiting = (live) => el("p", { class: "soft" }, live ? "Gathering…" : "Shown while a crawl runs.");
