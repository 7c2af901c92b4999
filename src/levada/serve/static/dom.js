// Everything from outside becomes text: no string is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.setAttribute("class", value);
    else if (name in node && !(node instanceof SVGElement) && name !== "list") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const el = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const svg = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

export function show(place, ...children) {
  place.replaceChildren(...children.flat(Infinity).filter(Boolean));
}

export const number = (value, digits = 0) =>
  value === null || value === undefined ? "–" : Number(value).toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
export const percent = (share, digits = 1) => (share === null || share === undefined ? "–" : `${number(100 * share, digits)}%`);

export function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let place = 0;
  while (bytes >= 1000 && place < units.length - 1) { bytes /= 1000; place += 1; }
  return `${number(bytes, place && bytes < 100 ? 1 : 0)} ${units[place]}`;
}

export function span(seconds) {
  const left = Math.abs(seconds);
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (left >= length) return `${number(left / length, left / length < 10 ? 1 : 0)} ${unit}`;
  }
  return `${number(left, left < 10 ? 1 : 0)} s`;
}

// Times are those of the crawled world, which may run faster than ours: they are compared with its own now.
export function ago(iso, now) {
  if (!iso) return "never";
  const seconds = (Date.parse(now || new Date().toISOString()) - Date.parse(iso)) / 1000;
  return seconds >= 0 ? `${span(seconds)} ago` : `in ${span(seconds)}`;
}

export const moment = (iso) => (iso ? iso.replace("T", " ").replace(/\.\d+Z$/, " UTC") : "–");
export const pageLink = (url, words) => el("a", { href: `#/page?url=${encodeURIComponent(url)}` }, words || url);
export const figure = (big, of, props) => el("div", { class: "figure", ...props }, el("div", { class: "big" }, big), el("div", { class: "of" }, of));
export const card = (title, ...inside) => el("section", { class: "card" }, el("h2", {}, title), ...inside);
export const wide = (title, ...inside) => el("section", { class: "card wide-card" }, el("h2", {}, title), ...inside);

export function table(heads, rows, empty) {
  if (!rows.length) return el("p", { class: "soft" }, empty || "Nothing yet.");
  const cell = (tag) => (inside, place) => {
    const head = heads[place];
    const numeric = typeof head === "object" && head.num;
    return el(tag, { class: numeric ? "num" : tag === "td" ? "wrap" : null, scope: tag === "th" ? "col" : null }, inside);
  };
  const name = (head) => (typeof head === "object" ? head.name : head);
  return el("div", { class: "scroll", tabIndex: 0, role: "region", ariaLabel: "Table" },
    el("table", {}, el("thead", {}, el("tr", {}, heads.map((head, place) => cell("th")(name(head), place)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell("td")))))));
}

export function note(words, code) {
  return el("p", { class: "note" }, words, code ? [" ", el("code", {}, code)] : null);
}

const inShell = (word) => (/^[\w./:-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
export const command = (words, status) => `levada ${words} --data ${inShell(status.data)}`;

export function trouble(error) {
  return el("div", { class: "note error", role: "alert" }, error.message || String(error));
}
