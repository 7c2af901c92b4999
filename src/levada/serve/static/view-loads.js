// How does a whole table get into a map: which tasks are done, who does them, and when will it be whole?

import { ask } from "./api.js";
import { legend } from "./charts.js";
import { ago, card, el, note, number, percent, show, span, table, trouble } from "./dom.js";

const OFTEN = 1000, SELDOM = 5000, MOST_CELLS = 240;
const STATES = { published: "whole: everybody reads it", running: "being filled", failed: "broken off", cancelled: "given up", unknown: "not known" };

export async function open(place) {
  const loads = el("div", {});
  let timer = null, left = false;
  show(place, el("h1", {}, "Loads"),
    el("p", { class: "soft" }, "A table is cut into tasks, and every instance takes the next one that is free. Readers see the old map until the new one is whole. Each cell is a task."),
    legend([["busy", "done"], ["starting", "at work"], ["idle", "its instance is silent"], ["off", "waiting"]]), loads);
  const look = async () => {
    clearTimeout(timer);
    let wait = SELDOM;
    try {
      const told = await ask("/loads");
      draw(told, loads);
      if (told.loads.some((load) => load.state === "running")) wait = OFTEN;
    } catch (error) {
      show(loads, trouble(error));
    }
    if (!left) timer = setTimeout(look, wait);
  };
  await look();
  return () => { left = true; clearTimeout(timer); };
}

function draw(told, place) {
  if (!told.loads.length) {
    show(place, note("No load is known here. To answer for pages from a map in this folder:", "levada warm"),
      note("To load a table of yours:", "levada load --from postgresql://me@db/shop --table prices --key sku --value price"),
      el("p", { class: "small soft" }, `Loads are looked for in ${told.folders.join(" and ")}.`));
    return;
  }
  show(place, el("div", { class: "grid" }, told.loads.map(one)));
}

function one(load) {
  const running = load.state === "running";
  return card(load.name,
    el("p", {}, el("strong", { class: load.state === "failed" ? "bad" : null }, STATES[load.state] || load.state),
      load.generation ? ` · generation ${load.generation}` : null, running && load.share !== null ? ` · ${percent(load.share, 0)}` : null),
    load.trouble ? el("p", { class: "note error" }, load.trouble) : null,
    running && load.share !== null ? el("meter", { min: 0, max: 1, value: load.share, ariaLabel: "Share of the tasks that are done" }) : null,
    load.generation && el("p", {}, `${number(load.rows)} rows, ${number(load.rows_per_second)} per second`, running && load.seconds_left !== null ? `, about ${span(load.seconds_left)} left` : null),
    cells(load.tasks),
    el("p", { class: "small soft" }, `${load.table} in ${load.source} → ${load.target}`),
    load.published ? el("p", { class: "small soft" }, `Published: generation ${load.published.generation}, ${number(load.published.keys)} keys${load.published.layers > 1 ? ` over ${load.published.layers - 1} before` : ""}, ${ago(load.published.at)}.`) : el("p", { class: "small soft" }, "Nothing is published yet."),
    load.instances.length ? table(["instance", { name: "at work", num: true }, { name: "done", num: true }, { name: "rows", num: true }],
      load.instances.map((each) => [each.name, number(each.leased), number(each.done), number(each.rows)])) : null,
    advice(load));
}

function advice(load) {
  if (load.state === "failed" || (load.state === "running" && !load.tasks.leased)) {
    return note("To go on with it:", load.source.startsWith("levada://") ? "levada warm" : `levada load resume ${load.name}`);
  }
  return null;
}

function cells(tasks) {
  const kinds = [["busy", tasks.done], ["starting", tasks.leased], ["idle", tasks.expired], ["off", tasks.waiting]];
  const all = kinds.reduce((sum, [, count]) => sum + count, 0);
  if (!all) return null;
  const scale = Math.min(1, MOST_CELLS / all);
  const shown = kinds.flatMap(([kind, count]) => Array(count ? Math.max(1, Math.round(count * scale)) : 0).fill(kind));
  return el("div", { class: "cells", role: "img", ariaLabel: `${tasks.done} tasks done, ${tasks.leased} at work, ${tasks.expired} silent, ${tasks.waiting} waiting` },
    shown.map((kind) => el("i", { class: kind })), scale < 1 ? `${number(all)} tasks` : null);
}
