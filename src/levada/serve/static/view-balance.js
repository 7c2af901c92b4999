// How evenly is the skewed stream of terms shared out, and what would others have made of it?

import { ask, query } from "./api.js";
import { bars } from "./charts.js";
import { card, el, note, number, show, table, trouble, wide } from "./dom.js";

const NAMES = { levelled: "ours", key: "by key", partial: "partial key", shuffle: "shuffle" };

export async function open(place) {
  const about = el("p", { class: "soft" }, "Pages are cut into terms, and each term goes to a worker that counts it. A few terms are everywhere: by key alone, one worker has them all.");
  const balance = el("div", {}), trends = el("div", {});
  show(place, el("h1", {}, "Balance"), about, balance, trends);
  await Promise.all([load(balance), trending(trends)]);
}

async function load(place) {
  try {
    const told = await ask("/balance");
    draw(place, told);
    // What the others would have made of it takes a moment: it is shown when it is there.
    ask(`/balance${query({ beside: true })}`).then((beside) => place.isConnected && draw(place, beside)).catch(() => {});
  } catch (error) {
    show(place, error.code === "not-found" ? note("Nothing is counted yet. Start a crawl:", "levada crawl https://example.org") : trouble(error));
  }
}

function draw(place, told) {
  if (!told.records) {
    show(place, note("Nothing is counted yet."));
    return;
  }
  const [ours] = told.balance;
  const most = Math.max(...told.balance.flatMap((each) => each.loads));
  show(place, el("div", { class: "grid" },
    ...told.balance.map((each, at) => card(`Load per worker, ${NAMES[each.method] || each.method}`,
      bars(each.loads.map((load, worker) => ({ name: `worker ${worker + 1}`, value: load, colour: `s${(at % 4) + 1}` })), { most, words: "Records per worker" }))),
    wide("Beside each other", table(
      ["grouping", { name: "deviation %", num: true }, { name: "fullest / mean", num: true }, { name: "workers per term", num: true }],
      told.balance.map((each) => [NAMES[each.method] || each.method, number(each.deviation_percent, 3), number(each.max_over_mean, 3), number(each.distribution_cost, 3)])),
      el("p", { class: "soft small" }, `${number(told.records)} records of ${number(told.changes)} changed documents. Lower is better in every column.`)),
    card("Hot terms", table(["term", { name: "records", num: true }, { name: "workers", num: true }], ours.hot.slice(0, 15).map((term) => [term.term, number(term.records), number(term.workers)])))));
}

async function trending(place) {
  try {
    const told = await ask(`/trends${query({ limit: 15 })}`);
    show(place, el("div", { class: "card" }, el("h2", {}, "Trending terms"), table(
      ["term", "language", { name: "changes", num: true }, { name: "sites", num: true }, { name: "score", num: true }],
      told.trends.map((trend) => [trend.term, trend.language || "?", `${number(trend.now)} of ${number(trend.changes)}`, number(trend.sites), number(trend.score, 1)]), "No term grew more than chance would have it.")));
  } catch (error) {
    show(place);
  }
}
