// Small pictures as SVG: lines over time, bars, a line of visits.

import { el, number, svg } from "./dom.js";

const WIDE = 400, HIGH = 150, LEFT = 40, BELOW = 20;

export function lines(series, { top, words = "", height = HIGH } = {}) {
  const most = Math.max(top || 0, ...series.flatMap((each) => each.values), 1e-9);
  const longest = Math.max(2, ...series.map((each) => each.values.length));
  const x = (place, count) => LEFT + (WIDE - LEFT - 6) * (1 - (count - 1 - place) / (longest - 1));
  const y = (value) => height - BELOW - (height - BELOW - 10) * (value / most);
  const ticks = [0, 0.5, 1].map((share) => share * most);
  const picture = svg("svg", { class: "chart", viewBox: `0 0 ${WIDE} ${height}`, role: "img", "aria-label": words },
    ticks.map((tick) => [
      svg("line", { class: "axis", x1: LEFT, x2: WIDE - 6, y1: y(tick), y2: y(tick) }),
      svg("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, tickName(tick, most)),
    ]),
    series.map((each, place) => each.values.length > 1 && svg("path", {
      class: each.colour || `s${place + 1}`,
      d: each.values.map((value, at) => `${at ? "L" : "M"}${x(at, each.values.length).toFixed(1)} ${y(value).toFixed(1)}`).join(""),
    })));
  return el("div", {}, picture, series.length > 1 || series[0]?.name ? legend(series.map((each, place) => [each.colour || `s${place + 1}`, each.name])) : null);
}

const tickName = (tick, most) => number(tick, most < 3 ? (most < 0.2 ? 2 : 1) : 0);

export const legend = (entries) => el("div", { class: "legend" }, entries.map(([colour, name]) => el("span", {}, el("i", { class: colour }), name)));

export function bars(rows, { most, digits = 0, words = "" } = {}) {
  const largest = most || Math.max(...rows.map((row) => row.value), 1e-9);
  const high = rows.length * 26 + 4;
  return svg("svg", { class: "chart", viewBox: `0 0 ${WIDE} ${high}`, role: "img", "aria-label": words },
    rows.map((row, place) => [
      svg("text", { x: 104, y: place * 26 + 18, "text-anchor": "end" }, row.name),
      svg("rect", { class: "off", x: 112, y: place * 26 + 6, width: 220, height: 16, rx: 4 }),
      svg("rect", { class: row.colour || "s1", x: 112, y: place * 26 + 6, width: Math.max(1, (220 * row.value) / largest), height: 16, rx: 4 }),
      svg("text", { x: 338, y: place * 26 + 18 }, row.label || number(row.value, digits)),
    ]));
}

export function visits(history, next, now) {
  const times = history.map((visit) => Date.parse(visit.at));
  const present = Date.parse(now), ahead = next ? Date.parse(next) : present;
  const start = Math.min(...times, present), end = Math.max(ahead, present);
  const x = (at) => 12 + (WIDE - 24) * ((at - start) / Math.max(1, end - start));
  return svg("svg", { class: "chart", viewBox: `0 0 ${WIDE} 54`, role: "img", "aria-label": "The visits on a line of time" },
    svg("line", { class: "axis", x1: 12, x2: WIDE - 12, y1: 22, y2: 22 }),
    svg("line", { class: "axis", x1: x(present), x2: x(present), y1: 8, y2: 36 }),
    svg("text", { x: Math.min(x(present), WIDE - 30), y: 50, "text-anchor": "middle" }, "now"),
    history.map((visit, place) => svg("circle", {
      class: ["changed", "unchanged", "first"].includes(visit.outcome) ? visit.outcome : "other", cx: x(times[place]), cy: 22, r: 6,
    }, svg("title", {}, `${visit.outcome} at ${visit.at}`))),
    next && svg("circle", { class: "next", cx: x(ahead), cy: 22, r: 6 }, svg("title", {}, `next visit at ${next}`)));
}

// A price over time: a step at each change, until `end`. While the thing could not be had the line is dashed; without a price there is none.
export function steps(points, end, { words = "" } = {}) {
  const known = points.filter((point) => point.value !== null);
  const lowest = Math.min(...known.map((point) => point.value)), highest = Math.max(...known.map((point) => point.value));
  const room = (highest - lowest) * 0.08 || Math.abs(highest) * 0.05 || 1;
  const floor = lowest - room, top = highest + room;
  const begin = Date.parse(points[0].at), until = Math.max(Date.parse(end), Date.parse(points.at(-1).at), begin + 1);
  const x = (at) => WIDER + (WIDE - WIDER - 6) * ((at - begin) / (until - begin));
  const y = (value) => HIGH - BELOW - (HIGH - BELOW - 10) * ((value - floor) / (top - floor));
  const ticks = lowest === highest ? [lowest] : [lowest, highest];
  return svg("svg", { class: "chart", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": words },
    ticks.map((tick) => [
      svg("line", { class: "axis", x1: WIDER, x2: WIDE - 6, y1: y(tick), y2: y(tick) }),
      svg("text", { x: WIDER - 6, y: y(tick) + 4, "text-anchor": "end" }, exact(tick)),
    ]),
    svg("text", { x: WIDER, y: HIGH - 4 }, day(points[0].at)),
    svg("text", { x: WIDE - 6, y: HIGH - 4, "text-anchor": "end" }, day(new Date(until).toISOString())),
    points.map((point, place) => {
      if (point.value === null) return null;
      const next = points[place + 1], from = x(Date.parse(point.at)), to = next ? x(Date.parse(next.at)) : x(until);
      const rise = next && next.value !== null ? `V${y(next.value).toFixed(1)}` : "";
      const path = svg("path", { class: "s1", d: `M${from.toFixed(1)} ${y(point.value).toFixed(1)}H${to.toFixed(1)}${rise}` }, svg("title", {}, point.name));
      if (point.away) path.setAttribute("stroke-dasharray", "3 4");
      return path;
    }));
}

const WIDER = 66;
const exact = (value) => number(value, Number.isInteger(value) ? 0 : 2);
const day = (iso) => iso.slice(0, 10);
