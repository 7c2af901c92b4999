// Where do pages lie, what does that cost, and which key would cost less?

import { ask } from "./api.js";
import { bars } from "./charts.js";
import { card, el, note, number, percent, show, size, table, trouble, wide } from "./dom.js";

export async function open(place) {
  const inside = el("div", {});
  show(place, el("h1", {}, "Shards"), el("p", { class: "soft" }, "A page lives on one shard, chosen by a key. A question that names the key's first field asks one shard; any other asks them all."), inside);
  try {
    const told = await ask("/shards");
    show(inside, el("div", { class: "grid" }, map(told.shards), shards(told.shards), advice(told)));
  } catch (error) {
    show(inside, error.code === "not-found" ? note("Nothing is stored yet. Start a crawl:", "levada crawl https://example.org") : trouble(error));
  }
}

function map(told) {
  const ranges = el("div", { class: "range", role: "img", ariaLabel: "Which range of keys is on which shard" });
  for (const [share, shard] of told.ranges) {
    const piece = el("span", { class: `shard-${shard % 4}`, title: `${percent(share)} of the keys: shard ${shard}` }, share > 0.04 ? String(shard) : "");
    piece.style.flexGrow = String(Math.max(share, 0.001));
    ranges.append(piece);
  }
  return wide("Map of ranges", el("p", { class: "small soft" }, `Key: ${told.key}${told.moving ? "; pages are moving to it just now" : ""}`), ranges);
}

function shards(told) {
  const most = Math.max(...told.shards.map((shard) => shard.pages), 1);
  return card("Pages on each", bars(told.shards.map((shard) => ({ name: `shard ${shard.number}`, value: shard.pages, colour: `s${(shard.number % 4) + 1}` })), { most, words: "Pages on each shard" }),
    table(["shard", "where", { name: "pages", num: true }, { name: "bytes", num: true }], told.shards.map((shard) => [String(shard.number), shard.trouble ? el("span", { class: "bad" }, shard.trouble) : shard.where, number(shard.pages), size(shard.bytes)])));
}

function advice(told) {
  if (!told.advice) {
    return card("The key that suits", told.capturing
      ? el("p", {}, `Ask at least ${number(told.asked_for_advice)} things (searches, pages) and look again: a key is advised from what is really asked.`)
      : note("What is asked here is not written down. To have a key advised from it, start the server with:", "levada serve --capture"));
  }
  const { present, advised, ...about } = told.advice;
  const row = (name, key, figures) => [name, key, number(figures.shards_per_query, 2), percent(figures.single_shard, 0), number(figures.load_max_mean, 2), number(figures.capacity, 2)];
  return wide("The key that suits", table(
    ["", "key", { name: "shards per question", num: true }, { name: "asks one shard", num: true }, { name: "busiest / mean", num: true }, { name: "capacity", num: true }],
    [row(told.shards.shards.length > 1 ? "now" : "spread by address", about.present_key, present), row("advised", about.advised_key, advised)]),
  el("ul", {}, about.why.map((words) => el("li", {}, words))),
  el("p", { class: "small soft" }, `From ${number(about.questions)} questions, for ${number(about.shards)} shards; one unsharded store has a capacity of 1. To move pages there while the crawl runs: levada shard apply --advised`));
}
