// What a page says in structured data: its prices over time, and the things that it describes.

import { ask, query } from "./api.js";
import { legend, steps } from "./charts.js";
import { ago, card, el, moment, note, show, table } from "./dom.js";

const HAD = ["", "InStock", "LimitedAvailability", "OnlineOnly", "InStoreOnly"];
const SHOWN = 20, DEEPEST = 4;

export async function structured(place, url, checked, now) {
  const told = await ask(`/page/data${query({ url })}`);
  show(place, told.prices.length ? prices(told, checked, now) : null, told.items.length || told.notes.length ? things(told) : null);
}

function prices(told, checked, now) {
  const offer = told.offers[0], latest = told.prices.at(-1);
  const priced = told.prices.filter((point) => point.price);
  const points = told.prices.map((point) => ({
    at: point.at, value: point.price ? Number(point.price) : null, away: !HAD.includes(point.availability), name: `${said(point)} from ${moment(point.at)}`,
  }));
  const words = `The price over time, from ${said(told.prices[0])} to ${said(latest)}`;
  return card("Price over time",
    el("p", {}, el("strong", {}, said(latest)), ` ${offer?.name ? `for ${offer.name} ` : ""}since ${ago(latest.at, now)}`),
    priced.length ? [steps(points, checked || latest.at, { words }), legend([["s1", "price; dashed: not to be had"]])] : null,
    table(["since", "price", "availability"], [...told.prices].reverse().slice(0, SHOWN).map((point) => [moment(point.at), amount(point), point.availability || "–"])));
}

const amount = (point) => [point.price, point.currency].filter(Boolean).join(" ") || "no price";
const said = (point) => [amount(point), point.availability].filter(Boolean).join(", ");

function things(told) {
  const more = told.items.length - SHOWN;
  return card("Structured data",
    told.items.slice(0, SHOWN).map((item) => el("details", {}, el("summary", {}, heading(item), " ", el("span", { class: "soft small" }, item.source)), lines(item, 0))),
    more > 0 ? note(`${more} more are left out here.`) : null,
    told.notes.map((words) => note(words)));
}

function heading(item) {
  const name = (item.properties?.name || item.properties?.headline || [])[0];
  const types = (item.type || []).join(", ") || "a thing";
  return typeof name === "string" ? `${types}: ${name}` : types;
}

function lines(item, depth) {
  return el("dl", { class: "options" }, Object.entries(item.properties || {}).map(([name, values]) => [
    el("dt", { class: "soft" }, name),
    el("dd", {}, values.slice(0, SHOWN).map((value, place) => (typeof value === "string"
      ? `${place ? ", " : ""}${value}`
      : el("div", {}, heading(value), depth < DEEPEST ? lines(value, depth + 1) : null)))),
  ]));
}
