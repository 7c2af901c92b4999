// The rules of one site: what holds, what it keeps out, and a form that tries and changes them.

import { ask, order, query } from "./api.js";
import { card, el, moment, number, pageLink, show, table, trouble } from "./dom.js";
import { lacks, needs } from "./me.js";

// What each key means, by groups. A key that is not named here is shown under its own name.
const GROUPS = [
  ["Which pages", [
    ["include", "Only these addresses", "/docs/*"], ["exclude", "Not these addresses", "*.pdf"], ["folders", "Only these folders", "/docs/"],
    ["depth", "Links away from a start at most", "2"], ["keep_query", "Only parameters that count", "id"], ["drop_query", "Parameters that do not count", "utm_*"],
    ["max_pages", "Addresses at most", "500"]]],
  ["How fast and when", [
    ["delay", "Seconds between two requests", "10"], ["per_hour", "Fetches per hour at most", "60"], ["hours", "Active hours", "weekdays 8-18 Europe/Istanbul"],
    ["floor", "Seconds between two visits of a page, at least", "3600"], ["ceiling", "and at most", "86400"]]],
  ["How it is asked", [["agent", "User-Agent", "levada"], ["accept_language", "Accept-Language", "tr, en;q=0.5"], ["cookies", "Keep the cookies that it sets"], ["plain_http", "Credentials go over http too"]]],
  ["Pages that need JavaScript", [["render", "A browser renders its pages"], ["wait_for", "A page is read once this is there", "main .price"], ["screenshot", "A picture of each version"], ["render_media", "Load pictures, fonts, sound and video"]]],
  ["What counts on a page", [["select", "What counts", "main"], ["remove", "What is left out", ".advertisement"], ["ignore", "What is ignored in comparisons", "dates"], ["trigger", "Told only when", "price below 100"]]],
];
const NAMED = new Set(GROUPS.flatMap(([, keys]) => keys.map(([key]) => key)));
const plain = (value) => (Array.isArray(value) ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : String(value));

export async function ruleCards(site) {
  const place = el("div", { class: "rule-cards wide-card" });
  await look(place, site);
  return place;
}

async function look(place, site, said = "") {
  try {
    const [told, all] = await Promise.all([ask(`/site/rules${query({ site })}`), ask("/rules")]);
    show(place, el("div", { class: "grid" }, card("Rules", holding(told), el("p", { class: "small soft", role: "status" }, said), changing(place, site, told, all)), told.out_of_scope ? outside(told) : null));
  } catch (error) {
    show(place, trouble(error));
  }
}

function holding(told) {
  const lines = told.rules.map((rule) => [el("dt", { class: "mono" }, rule.match), el("dd", {}, Object.entries(rule.keys).map(([key, value]) => el("div", {}, `${key}: `, el("span", { class: "mono" }, plain(value)))),
    rule.no_match ? el("div", { class: "warn" }, `select finds nothing on ${number(rule.no_match)} of ${number(rule.selected_on)} pages, such as `, pageLink(rule.no_match_example)) : null)]);
  return [
    lines.length ? el("dl", { class: "options" }, lines) : el("p", { class: "soft" }, "No rule: the settings of all sites hold."),
    told.opens_at ? el("p", { class: "warn" }, `Outside its hours: nothing is asked for until ${moment(told.opens_at)}.`) : null,
    told.note ? el("p", { class: "warn" }, `It has ${told.note}.`) : null,
    told.links_kept_out ? el("p", { class: "soft" }, `${number(told.links_kept_out)} links kept out so far.`) : null,
  ];
}

function outside(told) {
  return card(`Out of scope: ${number(told.out_of_scope)} ${told.out_of_scope === 1 ? "page" : "pages"}`,
    el("p", { class: "soft" }, "Known, but kept out by a rule now. They are not visited any more; what is stored of them stays. To delete them: ", el("code", {}, `levada forget --out-of-scope --site ${told.site}`)),
    kept(told.pages));
}

const kept = (pages) => table(["address", "key", "stored"], pages.map((page) => [pageLink(page.url), page.key, page.stored ? "yes" : "no"]), "None.");

function changing(place, site, told, all) {
  const kinds = new Map(all.keys.map((each) => [each.key, each]));
  const others = all.keys.filter((each) => !NAMED.has(each.key)).map((each) => [each.key, each.key, ""]);
  const known = el("datalist", { id: "known-matches" }, [...new Set([site, ...told.rules.map((rule) => rule.match)])].map((each) => el("option", { value: each })));
  const match = el("input", { name: "match", value: site, list: known.id, required: true, maxLength: 2000, autocomplete: "off", spellcheck: false, "aria-describedby": "about-rule-match" });
  const fields = el("div", {}), answer = el("div", { role: "status" });
  let inputs = new Map();
  const draw = () => {
    const held = told.rules.find((rule) => rule.match === match.value.trim())?.keys || {};
    inputs = new Map();
    show(fields, [...GROUPS, ["More", others]].map(([title, keys]) => {
      const shown = keys.filter(([key]) => kinds.has(key)).map(([key, words, example]) => field(key, words, example, kinds.get(key), held[key], inputs));
      return shown.length ? el("details", { open: keys.some(([key]) => key in held) || title === GROUPS[0][0] }, el("summary", {}, title), el("div", { class: "fields" }, shown)) : null;
    }));
    show(answer);
  };
  const changed = () => Object.fromEntries([...inputs].filter(([, each]) => each.value() !== each.before).map(([key, each]) => [key, each.parsed()]));
  const act = (words, how, quiet = true) => el("button", { type: "button", class: quiet ? "quiet" : null, onclick: async () => {
    show(answer);
    try {
      await how();
    } catch (error) {
      show(answer, trouble(error));
    }
  } }, words);
  const nothing = () => show(answer, el("p", { class: "soft" }, "Nothing is changed in the form yet."));
  const trying = act("What would it keep out?", async () => {
    const keys = changed();
    if (!Object.keys(keys).length) return nothing();
    const trial = await order("POST", "/rules/try", { match: match.value.trim(), keys });
    const least = trial.is_least ? "at least " : "";
    show(answer, el("p", {}, `It would keep out ${least}${number(trial.pages)} of ${number(trial.looked_at)} known pages that are visited now.`), trial.pages ? kept(trial.examples) : null);
  });
  const saving = act("Save", async () => {
    const keys = changed();
    if (!Object.keys(keys).length) return nothing();
    const done = await order("PUT", "/rules", { match: match.value.trim(), keys });
    await look(place, site, done.crawling ? "Saved: the crawl that runs takes it up within a second." : "Saved: the next crawl goes by it.");
  }, false);
  const ending = act("End this rule", async () => {
    await order("DELETE", `/rules${query({ match: match.value.trim() })}`);
    await look(place, site, "The rule has ended.");
  });
  match.addEventListener("change", draw);
  draw();
  return [lacks("control"), el("details", { ...needs("control") }, el("summary", {}, "Change the rules"), el("form", { class: "rule-form", onsubmit: (event) => { event.preventDefault(); saving.click(); } },
    el("div", { class: "field" }, el("label", {}, el("span", {}, "Rule for"), match, known), el("small", { class: "soft", id: "about-rule-match" }, `the site, or the beginning of a path: ${site}/news/`)), fields, el("div", { class: "row" }, saving, trying, ending), answer))];
}

function field(key, words, example, { kind, closed, choices }, held, inputs) {
  const hint = `about-rule-${key}`, shown = held === undefined ? "" : kind === "list" ? [held].flat().join("\n") : plain(held);
  if (closed || kind === "table") {
    return el("div", { class: "field" }, el("span", {}, words), el("span", { class: "mono" }, shown || "–"), el("small", { class: "soft" }, "set on the machine: levada sites set"));
  }
  const input = kind === "list" ? el("textarea", { name: key, rows: 2, value: shown, placeholder: example, ariaLabel: words, spellcheck: false })
    : kind === "flag" || kind === "choice" ? el("select", { name: key, ariaLabel: words }, [["", "not set"], ...(kind === "flag" ? [["true", "yes"], ["false", "no"]] : choices.map((each) => [each, each]))].map(([value, name]) => el("option", { value, selected: value === shown }, name)))
      : el("input", { name: key, value: shown, placeholder: example, ariaLabel: words, autocomplete: "off", inputMode: kind === "number" || kind === "count" ? "decimal" : "text" });
  inputs.set(key, { before: shown, value: () => input.value, parsed: () => parsed(input.value.trim(), kind) });
  input.setAttribute("aria-describedby", hint);
  return el("div", { class: "field" }, el("span", {}, words), input, el("small", { class: "soft", id: hint }, kind === "list" ? `${key}; one in a line` : key));
}

// What the API takes; a number that is none goes as it is, and the API says what is wrong.
function parsed(text, kind) {
  if (text === "") return null;
  if (kind === "list") return text.split("\n").map((each) => each.trim()).filter(Boolean);
  if (kind === "flag") return text === "true";
  if (kind === "number" || kind === "count") return Number.isFinite(Number(text)) ? Number(text) : text;
  return text;
}
