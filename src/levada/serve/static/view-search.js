// Search with snippets and filters.

import { ask, query } from "./api.js";
import { ago, el, moment, note, number, pageLink, show, trouble } from "./dom.js";
import { worldNow } from "./live.js";

const PER_PAGE = 10, WAIT = 200, LEAST = 2;

export async function open(place, { query: typed }) {
  const words = typed.get("q") || "", offset = Number(typed.get("from")) || 0;
  const field = el("input", { type: "search", name: "q", value: words, placeholder: 'words, "a phrase", -without', ariaLabel: "Search", autofocus: true });
  const site = el("input", { name: "site", value: typed.get("site") || "", placeholder: "site", ariaLabel: "Only this site", size: 16 });
  const lang = el("input", { name: "lang", value: typed.get("lang") || "", placeholder: "language", ariaLabel: "Only this language", size: 8 });
  const since = el("select", { name: "since", ariaLabel: "Changed since" },
    [["", "any time"], ["1h", "last hour"], ["24h", "last day"], ["7d", "last week"]].map(([value, name]) => el("option", { value, selected: value === (typed.get("since") || "") }, name)));
  const results = el("div", { "aria-live": "polite" });
  const go = (from = 0) => {
    location.hash = `#/search${query({ q: field.value.trim(), site: site.value.trim(), lang: lang.value.trim(), since: since.value, from: from || "" })}`;
  };
  const filters = () => [site.value.trim() && `site:${site.value.trim()}`, lang.value.trim() && `lang:${lang.value.trim()}`, since.value && `since:${since.value}`];
  let timer = 0, newest = 0;
  const typing = async () => { // what is typed so far, before the search is sent
    const mine = ++newest, typed = field.value.trim();
    if (typed.length < LEAST) return;
    try {
      const told = await ask(`/search${query({ q: [...filters(), typed].filter(Boolean).join(" "), limit: PER_PAGE, as_you_type: true })}`);
      const now = await worldNow();
      if (mine === newest && results.isConnected) show(results, told.total ? hits(told, 0, go, now) : note("No page has these words yet."));
    } catch {
      // a query that is not finished: what was shown stays
    }
  };
  show(place, el("h1", {}, "Search"),
    el("form", { class: "row", role: "search", onsubmit: (event) => { event.preventDefault(); clearTimeout(timer); newest += 1; go(); } }, field, site, lang, since, el("button", {}, "Search")), results);
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(typing, WAIT); });
  field.focus();
  if (!words) {
    show(results, note("Type words that stand on a page. Phrases go in quotes, and -word leaves pages out."));
    return;
  }
  const whole = [words, ...filters()].filter(Boolean).join(" ");
  try {
    const told = await ask(`/search${query({ q: whole, limit: PER_PAGE, offset: offset || "" })}`);
    show(results, told.total ? hits(told, offset, go, await worldNow()) : note("No page has these words. Fewer words, or another spelling, may find one."));
  } catch (error) {
    show(results, trouble(error));
  }
}

function hits(told, offset, go, now) {
  return [
    el("p", { class: "soft small" }, `${number(told.total)} ${told.total === 1 ? "page" : "pages"}, shown from ${number(offset + 1)}`),
    el("ul", { class: "plain card" }, told.hits.map((hit) => el("li", { class: "hit" },
      el("h3", {}, pageLink(hit.url, hit.title || hit.url)),
      el("div", { class: "mono soft" }, hit.url),
      el("p", {}, hit.snippet.map((piece) => (piece.asked ? el("mark", {}, piece.text) : piece.text))),
      el("div", { class: "small soft" }, `${hit.site} · ${hit.language || "?"} · changed ${ago(hit.changed_at, now)} (${moment(hit.changed_at)}) · score ${number(hit.score, 2)}`)))),
    el("p", {}, offset > 0 ? el("button", { type: "button", class: "quiet", onclick: () => go(Math.max(0, offset - PER_PAGE)) }, "Back") : null, " ",
      told.next_offset !== null ? el("button", { type: "button", class: "quiet", onclick: () => go(told.next_offset) }, "More") : null),
  ];
}
