// Each site: how many pages, how it is asked, what was refused and why.

import { ask, order, query } from "./api.js";
import { ago, card, el, moment, note, number, pageLink, show, span, table, trouble } from "./dom.js";
import { forgetButton } from "./forget.js";
import { worldNow } from "./live.js";
import { lacks, needs } from "./me.js";
import { often } from "./often.js";
import { ruleCards } from "./site-rule.js";

const SELDOM = 10_000, AT_ONCE = 50;

export async function open(place, { rest }) {
  if (rest[0]) return one(place, rest[0]);
  return list(place);
}

async function list(place) {
  const rows = el("div", {}), more = el("button", { type: "button", class: "quiet" }, "More");
  const found = [];
  let next = "";
  async function load() {
    const told = await ask(`/sites${query({ after: next, limit: AT_ONCE })}`);
    found.push(...told.sites);
    next = told.next;
    more.hidden = !next;
    show(rows, table(["site", { name: "pages", num: true }, { name: "delay", num: true }, "robots.txt", "rule", "state", "refused"],
      found.map((site) => [el("a", { href: `#/sites/${encodeURIComponent(site.site)}` }, site.site), number(site.pages), span(site.delay), site.robots, site.rules.join(", ") || "–", state(site), refusals(site)])));
  }
  more.addEventListener("click", () => load().catch((error) => show(rows, trouble(error))));
  show(place, el("h1", {}, "Sites"), adding(), el("div", { class: "card" }, rows, more));
  const look = async () => {
    try {
      if (found.length > AT_ONCE) return; // somebody reads on: what is shown stays
      [next, found.length] = ["", 0];
      await load();
    } catch (error) {
      more.hidden = true;
      show(rows, error.code === "not-found" ? note("No site is known yet. Start a crawl:", "levada crawl https://example.org") : trouble(error));
    }
  };
  return often(rows, look, SELDOM);
}

// What of its site belongs to the collection: as in levada add.
const LIMITS = [["include", "Only these addresses", "/docs/*"], ["exclude", "Not these addresses", "*.pdf"], ["depth", "Links away from this address at most", "0: just this page"]];
const lines = (text) => text.split("\n").map((each) => each.trim()).filter(Boolean);

function adding() {
  const field = el("input", { class: "wide", name: "url", placeholder: "https://example.org", ariaLabel: "Address to crawl", required: true });
  const said = el("p", { class: "small soft", role: "status" });
  const limits = new Map(LIMITS.map(([key, words, example]) => [key, el(key === "depth" ? "input" : "textarea", { name: key, rows: 2, placeholder: example, ariaLabel: words, autocomplete: "off", spellcheck: false })]));
  const folder = el("select", { name: "folders", ariaLabel: "How much of the site" }, el("option", { value: "" }, "the whole site"), el("option", { value: "folder" }, "this folder and below"));
  const keys = () => Object.fromEntries([...limits].map(([key, input]) => [key, input.value.trim()]).filter(([, text]) => text)
    .map(([key, text]) => [key, key === "depth" ? Number(text) : lines(text)]).concat(folder.value ? [["folders", [folder.value]]] : []));
  return el("form", { ...needs("control"), onsubmit: async (event) => {
    event.preventDefault();
    try {
      const told = await order("POST", "/seeds", { urls: [field.value.trim()], keys: keys() });
      said.textContent = told.crawling ? "Taken: the crawl that runs will visit it." : "Kept: the next crawl will visit it.";
      for (const input of [field, folder, ...limits.values()]) input.value = "";
    } catch (error) {
      said.textContent = error.message;
    }
  } }, el("div", { class: "row" }, field, el("button", {}, "Add a site")),
    el("details", {}, el("summary", {}, "Only a part of it"), el("div", { class: "fields" }, LIMITS.map(([key, words]) => el("div", { class: "field" }, el("span", {}, words), limits.get(key), key === "depth" ? null : el("small", { class: "soft" }, "one in a line"))),
      el("div", { class: "field" }, el("span", {}, "How much of the site"), folder))), said);
}

const DROPPED = "dropped: add it again to take it up";
const state = (site) => (site.dropped ? el("span", { class: "warn" }, DROPPED) : site.opens_at ? el("span", { class: "warn" }, `outside its hours until ${moment(site.opens_at)}`) : site.rests_until ? el("span", { class: "warn" }, `rests until ${moment(site.rests_until)}`) : site.failures ? `${site.failures} failures in a row` : site.admitted ? "asked for" : "linked");
const refusals = (site) => site.refused.map((each) => `${each.reason} ${number(each.count)}`).join(", ") || "–";

async function one(place, name) {
  const told = await ask(`/site${query({ site: name })}`);
  const site = told.site, now = await worldNow();
  const said = el("p", { class: "small soft", role: "status" });
  const drop = el("button", { type: "button", class: "quiet", ...needs("control"), onclick: async () => {
    try {
      await order("DELETE", `/sites${query({ site: site.site })}`);
      said.textContent = "It is visited no more; what is stored of it stays.";
    } catch (error) {
      said.textContent = error.message;
    }
  } }, "Visit it no more");
  const check = el("button", { type: "button", class: "quiet", ...needs("control"), onclick: async () => {
    try {
      const receipt = await order("POST", "/check", { site: site.site });
      said.textContent = receipt.crawling ? `The crawl visits the ${number(site.pages)} pages first; what changed appears under Changes.` : "Kept: no crawl runs now, and the next one visits these pages first.";
    } catch (error) {
      said.textContent = error.message;
    }
  } }, "Check all pages now");
  const rules = await ruleCards(site.site);
  show(place, el("p", {}, el("a", { href: "#/sites" }, "← Sites")), el("h1", {}, site.site),
    el("p", { class: "soft" }, `${number(site.pages)} pages; ${span(site.delay)} between two requests; robots.txt: ${site.robots}; a page changes ${told.changes_per_day === null ? "at a rate that is not known yet" : `about ${number(told.changes_per_day, 2)} times a day`}`), site.dropped ? el("p", { class: "warn" }, DROPPED) : null,
    el("div", { class: "row" }, site.dropped ? null : [check, drop], forgetButton({ site: site.site }, site.site, said), lacks("control")), said,
    el("div", { class: "grid" }, rules,
      card("Refused, and why", table(["reason", { name: "how many", num: true }, "an example"], site.refused.map((each) => [each.reason, number(each.count), el("span", { class: "mono" }, each.example)]), "Nothing was refused here."))),
    el("div", { class: "card" }, el("h2", {}, "Pages"), table(
      ["page", "state", { name: "visits", num: true }, { name: "changes met", num: true }, "every", "next visit"],
      told.pages.map((page) => [pageLink(page.url), page.state, number(page.visits), number(page.changes), page.interval ? span(page.interval) : "–", page.next_visit ? ago(page.next_visit, now) : "never"]))));
}
