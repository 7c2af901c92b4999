// One hunk of a difference: what went at the left, what came at the right.

import { el } from "./dom.js";

export function hunk(told) {
  const rows = [];
  for (let at = 0; at < told.lines.length;) {
    if (told.lines[at].sign === " ") {
      rows.push(el("div", {}, pieces(told.lines[at])), el("div", { class: "same-right" }, pieces(told.lines[at])));
      at += 1;
      continue;
    }
    const gone = [], come = [];
    while (told.lines[at]?.sign === "-") gone.push(told.lines[at++]);
    while (told.lines[at]?.sign === "+") come.push(told.lines[at++]);
    for (let row = 0; row < Math.max(gone.length, come.length); row += 1) {
      rows.push(el("div", { class: gone[row] ? "del" : "" }, gone[row] ? pieces(gone[row]) : ""), el("div", { class: come[row] ? "add" : "" }, come[row] ? pieces(come[row]) : ""));
    }
  }
  return el("div", { class: "diff hunk" }, el("div", { class: "pair" }, rows));
}

const pieces = (line) => line.pieces.map(([text, differs]) => (differs ? el("b", {}, text) : text));
