// Watch one part of a page: what a rule would keep of it, while the rule is being typed, with the page's text at its side.

import { order } from "./api.js";
import { el, number, show, trouble } from "./dom.js";
import { hunk } from "./hunks.js";
import { needs } from "./me.js";

const SOON = 500, SHOWN = 2000;
const NOTHING = { select: [], remove: [], ignore: [], trigger: [] };
const FIELDS = [
  ["select", "What counts", "main .price", "a CSS selector, xpath:… or json:… on each line; empty: the main text"],
  ["remove", "What is taken away", ".advertisement", "selectors too, before anything is read"],
  ["ignore", "What is not compared", "dates", "dates, numbers, order, repeats, a text of a line, or re:…"],
  ["trigger", "Told only when", "price below 100", "appears: …, disappears: …, price below …, number above … near …"],
];
const VERBS = { select: "keeps", remove: "takes away", ignore: "leaves out" };

// Nothing is asked before it is opened.
export function watchPanel(url) {
  const inside = el("div", {});
  const panel = el("details", { class: "card watch" }, el("summary", {}, el("h2", {}, "Watch one part")), inside);
  panel.addEventListener("toggle", () => panel.open && !inside.firstChild && fill(url, inside));
  return el("div", needs("control"), panel);
}

function fill(url, inside) {
  const areas = Object.fromEntries(FIELDS.map(([name, , example]) => [name, el("textarea", { rows: 2, name, placeholder: example, spellcheck: false, "aria-describedby": `watch-${name}` })]));
  const match = el("input", { name: "match", spellcheck: false, autocomplete: "off", maxLength: 2000 });
  const result = el("div", {}), difference = el("div", {}), text = el("div", { class: "page-text mono", tabIndex: 0, role: "region", ariaLabel: "The page's text" }), said = el("p", { class: "small", role: "status" });
  const save = el("button", { disabled: true }, "Save as the rule"), anew = el("button", { type: "button", class: "quiet" }, "Fetch the page again");
  let timer = null, asked = 0, whole = [], inForce = {};
  const lines = (name) => areas[name].value.split("\n").map((each) => each.trim()).filter(Boolean);
  // An empty field that the rules in force say nothing of either is left to them.
  const typed = () => Object.fromEntries(FIELDS.map(([name]) => [name, lines(name)]).filter(([name, entries]) => entries.length || inForce[name]));

  // Of several answers that are on their way only the last one counts.
  const look = async (more = {}) => {
    const mine = ++asked;
    result.setAttribute("aria-busy", "true");
    try {
      const told = await order("POST", "/page/try", { url, ...typed(), ...more });
      if (mine !== asked) return null;
      show(result, findings(told));
      show(difference, told.hunks.length ? [el("h3", {}, "From the stored to the live text"), told.hunks.map(hunk)] : null);
      drawText(text, whole, told.live || told.stored);
      save.disabled = ![told.live, told.stored].some((each) => each && !each.reason);
      return told;
    } catch (error) {
      if (mine !== asked) return null;
      show(result, trouble(error));
      show(difference);
      save.disabled = true;
      return null;
    } finally {
      if (mine === asked) result.removeAttribute("aria-busy");
    }
  };
  const begin = async (more = {}) => {
    show(said);
    try {
      const plain = await order("POST", "/page/try", { url, ...NOTHING, ...more });
      whole = (plain.live || plain.stored).text.split("\n").slice(0, SHOWN);
    } catch (error) {
      show(result, trouble(error));
      return;
    }
    await look();
  };
  const start = async () => {
    try {
      const told = await order("POST", "/page/try", { url, live: false });
      inForce = told.rule;
      for (const area of Object.values(areas)) area.value ||= (inForce[area.name] || []).join("\n"); // not over what is typed meanwhile
      match.value = match.value || told.match;
    } catch {
      // Nothing is stored of it: the live page says more.
    }
    await begin();
  };
  const form = el("form", { onsubmit: async (event) => {
    event.preventDefault();
    clearTimeout(timer);
    const keys = typed();
    if (!Object.keys(keys).length) {
      show(said, "Nothing is typed yet.");
      return;
    }
    save.disabled = true;
    try {
      const done = await order("PUT", "/rules", { match: match.value.trim(), keys });
      show(said, done.changed ? `Saved as the rule of ${done.rule.match}. It holds from the next visit on; that visit is no change yet.` : "Nothing changed: the rule says so already.");
    } catch (error) {
      show(said, error.message);
    }
    save.disabled = false;
  }, oninput: (event) => {
    if (event.target === match) return;
    show(said);
    clearTimeout(timer);
    timer = setTimeout(look, SOON);
  } },
  FIELDS.map(([name, words, , hint]) => el("div", { class: "field" }, el("label", {}, el("span", {}, words), areas[name]), el("small", { class: "soft", id: `watch-${name}` }, hint))),
  el("div", { class: "field" }, el("label", {}, el("span", {}, "For this site, or the beginning of a path"), match)),
  el("div", { class: "spread" }, save, anew), said, result);
  anew.addEventListener("click", () => begin({ anew: true }));
  show(inside, el("p", { class: "soft small" }, "What you type is tried at once on the page as it is stored and as it is now. Nothing is stored before you save."),
    el("div", { class: "beside" }, form, el("div", {}, el("h3", {}, "The page's text"), el("p", { class: "legend" }, el("span", {}, el("mark", {}, "kept")), el("span", {}, "the rest does not count")), text)), difference);
  start();
}

// The whole text, with the lines that are kept; and those that are kept although they are not in the main text.
function drawText(place, whole, reading) {
  const kept = new Set((reading?.text || "").split("\n").filter(Boolean)), there = new Set(whole);
  const beyond = [...kept].filter((line) => !there.has(line)).slice(0, SHOWN);
  const row = (line) => el("div", kept.has(line) ? {} : { class: "soft" }, kept.has(line) ? el("mark", {}, line) : line);
  show(place, beyond.map(row), beyond.length && whole.length ? el("hr", {}) : null, whole.map(row));
}

function findings(told) {
  const reading = told.live || told.stored;
  return [
    el("p", { class: told.changed && told.told ? "note" : "soft" }, verdict(told)),
    told.why_not_live ? el("p", { class: "small warn" }, `Not tried on the live page: ${told.why_not_live}.`) : null,
    told.why_not_stored ? el("p", { class: "small warn" }, `Not tried on a stored page: ${told.why_not_stored}.`) : null,
    el("ul", { class: "plain small" }, reading.entries.map(entry)),
  ];
}

function verdict(told) {
  const reading = told.live || told.stored;
  if (reading.reason) return `The rule finds nothing on the ${told.live ? "live" : "stored"} page (${reading.reason}): nothing would be stored of it.`;
  if (told.changed === null) return "There are no two texts to compare.";
  if (!told.changed) return told.hunks.length ? "What differs does not count: the page has not changed." : "The live page is the same as the stored one.";
  return told.told ? "The live page is a new version, and it is told." : "The live page is a new version, and nobody is told: no trigger is met.";
}

function entry(each) {
  const name = [el("span", { class: "tag" }, each.key), " ", el("code", {}, each.entry), " "];
  if (each.key === "trigger") return el("li", {}, name, each.found ? "holds" : "does not hold");
  if (!each.found) return el("li", {}, name, el("span", { class: "warn" }, `finds nothing${each.note ? `: ${each.note}` : ""}`));
  const what = each.key === "ignore" ? "piece" : "line";
  return el("li", {}, name, `${VERBS[each.key]} ${number(each.found)} ${each.found === 1 ? what : `${what}s`}: ${each.examples.slice(0, 3).map((line) => `“${line.slice(0, 80)}”`).join(", ")}`);
}
