// Search with snippets, filters, facets, and hits that stand for others.

import { ask, query } from "./api.js";
import { ago, el, moment, note, number, pageLink, show, trouble } from "./dom.js";
import { worldNow } from "./live.js";

const PER_PAGE = 10, WAIT = 200, LEAST = 2, SHOWN_VALUES = 8;
const FIELDS = ["site", "lang", "since", "type", "sort", "one_per"];
const FACETS = { site: ["site", "Site"], language: ["lang", "Language"], type: ["type", "Type"], time: ["since", "Changed"] };
const TIMES = { "1h": "last hour", "24h": "last day", "7d": "last week", "30d": "last month", "365d": "last year" };

export async function open(place, { query: typed }) {
  const words = typed.get("q") || "", offset = Number(typed.get("from")) || 0;
  const given = Object.fromEntries(FIELDS.map((name) => [name, typed.get(name) || ""]));
  const field = el("input", { type: "search", name: "q", value: words, placeholder: 'words, "a phrase", -without, (a OR b)', ariaLabel: "Search", autofocus: true });
  const choice = (name, label, options) => el("select", { name, ariaLabel: label, onchange: () => words && go() },
    options.map(([value, shown]) => el("option", { value, selected: value === given[name] }, shown)));
  const sort = choice("sort", "Order", [["", "best first"], ["changed", "last changed first"], ["checked", "last checked first"]]);
  const onePer = choice("one_per", "One hit for each", [["", "every page"], ["site", "one per site"], ["copies", "without copies"]]);
  const results = el("div", { "aria-live": "polite" });
  const go = (change = {}, from = 0) => {
    const all = { ...given, sort: sort.value, one_per: onePer.value, ...change };
    location.hash = `#/search${query({ q: field.value.trim(), ...all, from: from || "" })}`;
  };
  const quoted = (value) => (/[\s()]/.test(value) ? `"${value}"` : value);
  const filters = ["site", "lang", "since", "type"].filter((name) => given[name]).map((name) => `${name}:${quoted(given[name])}`);
  const asked = (text, more) => query({ q: [...filters, text].join(" "), limit: PER_PAGE, sort: sort.value || "relevance", one_per: onePer.value, ...more });
  let timer = 0, newest = 0;
  const typing = async () => { // what is typed so far, before the search is sent
    const mine = ++newest, text = field.value.trim();
    if (text.length < LEAST) return;
    try {
      const told = await ask(`/search${asked(text, { as_you_type: true })}`);
      const now = await worldNow();
      if (mine === newest && results.isConnected) show(results, told.total ? hits(told, 0, go, now) : note("No page has these words yet."));
    } catch {
      // a query that is not finished: what was shown stays
    }
  };
  const chosen = filters.length
    ? el("p", { class: "chosen" }, ["site", "lang", "since", "type"].filter((name) => given[name]).map((name) =>
      el("button", { type: "button", class: "quiet", title: "Remove this filter", onclick: () => go({ [name]: "" }) }, `${name}: ${shown(name, given[name])} ×`)))
    : null;
  show(place, el("h1", {}, "Search"),
    el("form", { class: "row", role: "search", onsubmit: (event) => { event.preventDefault(); clearTimeout(timer); newest += 1; go(); } }, field, sort, onePer, el("button", {}, "Search")), chosen, results);
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(typing, WAIT); });
  field.focus();
  if (!words && !filters.length) {
    show(results, note("Type words that stand on a page. Phrases go in quotes, -word leaves pages out, title:word looks in titles."));
    return;
  }
  try {
    const told = await ask(`/search${asked(words, { offset: offset || "", facets: "all" })}`);
    const now = await worldNow();
    const meant = told.did_you_mean ? told.did_you_mean.slice(filters.join(" ").length).trim() : "";
    const said = [
      meant ? el("p", {}, "Did you mean ", el("a", { href: `#/search${query({ q: meant, ...given })}` }, meant), "?") : null,
      [...told.notes, ...told.partial].map((each) => el("p", { class: "small soft" }, each)),
    ];
    if (!told.total) {
      show(results, said, note(meant ? "No page has these words as they are typed." : "No page has these words. Fewer words, or another spelling, may find one."));
      return;
    }
    show(results, said, el("div", { class: "found" }, el("div", {}, hits(told, offset, go, now)), facets(told, given, go)));
  } catch (error) {
    show(results, trouble(error));
  }
}

const shown = (name, value) => (name === "since" ? TIMES[value] || value : value);

const pieces = (some) => some.map((piece) => (piece.asked ? el("mark", {}, piece.text) : piece.text));

function hits(told, offset, go, now) {
  return [
    el("p", { class: "soft small" }, `${number(told.total)} ${told.total === 1 ? "page" : "pages"}, shown from ${number(offset + 1)}`),
    el("ul", { class: "plain card" }, told.hits.map((hit) => el("li", { class: "hit" },
      el("h3", {}, pageLink(hit.url, hit.title ? pieces(hit.title_pieces) : hit.url)),
      el("div", { class: "mono soft" }, hit.url),
      el("p", {}, pieces(hit.snippet)),
      el("div", { class: "small soft" }, [hit.site, hit.language || "?", `changed ${ago(hit.changed_at, now)} (${moment(hit.changed_at)})`,
        hit.checked_at ? `checked ${ago(hit.checked_at, now)}` : "", `score ${number(hit.score, 2)}`].filter(Boolean).join(" · ")),
      hit.more ? others(hit, go) : null))),
    el("p", {}, offset > 0 ? el("button", { type: "button", class: "quiet", onclick: () => go({}, Math.max(0, offset - PER_PAGE)) }, "Back") : null, " ",
      told.next_offset !== null ? el("button", { type: "button", class: "quiet", onclick: () => go({}, told.next_offset) }, "More") : null),
  ];
}

// The pages that a hit stands for.
function others(hit, go) {
  const rest = hit.more - hit.others.length;
  return el("details", { class: "small" }, el("summary", {}, `${number(hit.more)} more`),
    el("ul", { class: "plain" }, hit.others.map((each) => el("li", {}, pageLink(each.url, each.title || each.url), " ", el("span", { class: "mono soft" }, each.url)))),
    rest > 0 ? el("p", { class: "soft" }, `and ${number(rest)} beside these`) : null,
    hit.others.every((each) => each.site === hit.site) ? el("button", { type: "button", class: "quiet", onclick: () => go({ site: hit.site, one_per: "" }) }, `All of ${hit.site}`) : null);
}

function facets({ facets: found, total }, given, go) {
  const groups = Object.entries(FACETS).map(([name, [filter, head]]) => {
    const telling = (each) => each.count && (each.count < total || given[filter] === each.value);
    const values = found[name].filter(telling).slice(0, SHOWN_VALUES);
    if (!values.length) return null;
    return el("section", {}, el("h2", {}, head), el("ul", { class: "plain facet" }, values.map((each) => {
      const on = given[filter] === each.value;
      return el("li", {}, el("button", { type: "button", class: "quiet", ariaPressed: String(on), onclick: () => go({ [filter]: on ? "" : each.value }) },
        el("span", {}, shown(filter, each.value)), el("span", { class: "num" }, number(each.count))));
    })));
  }).filter(Boolean);
  return groups.length ? el("aside", { class: "card facets", ariaLabel: "Narrow the search" }, groups) : null;
}
