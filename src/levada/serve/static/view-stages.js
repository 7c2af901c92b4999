// How many workers has each stage, how many should it have, and why?

import { lines, legend } from "./charts.js";
import { card, command, el, note, number, show } from "./dom.js";
import { watch } from "./live.js";

const MOST_CELLS = 240;

export function open(place) {
  const stages = el("div", {});
  show(place, el("h1", {}, "Stages"),
    el("p", { class: "soft" }, "A controller looks at every queue and gives each stage as many workers as it needs, and no more. Each cell is a worker."),
    legend([["busy", "busy"], ["idle", "idle"], ["starting", "starting"], ["off", "off"]]), stages);
  return watch((status) => draw(status, stages));
}

function draw(status, place) {
  const live = status.live;
  if (!live || !live.stages.length) {
    show(place, note("No crawl runs here now. Start one and look again:", command("crawl", status)));
    return;
  }
  show(place, live.held ? el("p", { class: "note warn" }, "A queue is full: nothing more is leased until it has drained.") : null,
    el("div", { class: "grid" }, live.stages.map((stage) => one(stage, live.history[stage.name] || []))));
}

function one(stage, history) {
  const series = (field, name, colour) => ({ name, colour, values: history.map((moment) => moment[field]) });
  return card(stage.name,
    el("p", {}, el("strong", {}, `${number(stage.on)} of ${number(stage.wanted)} wanted`), ` · ${number(stage.busy)} busy · ${number(stage.queue)} waiting`),
    el("p", { class: "small soft" }, stage.why || "as set"),
    cells(stage, Math.max(stage.wanted, ...history.map((moment) => moment[2]))),
    history.length > 1 ? lines([series(2, "workers", "s1"), series(3, "wanted", "s3"), series(0, "queue", "s2")], { words: `Workers and queue of ${stage.name} over the last minute`, height: 140 }) : null,
    el("p", { class: "small soft" }, `Cost in the last minute: ${number(history.reduce((sum, moment) => sum + moment[2], 0) / 60, 2)} worker minutes.`));
}

function cells(stage, most) {
  const ready = Math.max(0, stage.on - stage.starting), busy = Math.min(stage.busy, ready);
  const kinds = [...Array(busy).fill("busy"), ...Array(Math.max(0, ready - busy)).fill("idle"), ...Array(stage.starting).fill("starting"), ...Array(Math.max(0, most - stage.on)).fill("off")];
  const shown = kinds.slice(0, MOST_CELLS);
  return el("div", { class: "cells", role: "img", ariaLabel: `${busy} busy, ${ready - busy} idle, ${stage.starting} starting` }, shown.map((kind) => el("i", { class: kind })), kinds.length > shown.length ? `and ${kinds.length - shown.length} more` : null);
}
