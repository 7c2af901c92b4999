// One page: what is on it, what changed, the visits, the estimated change rate, and why the next visit is when it is.

import { ask, order, query } from "./api.js";
import { bars, legend, visits } from "./charts.js";
import { forgetButton } from "./forget.js";
import { hunk } from "./hunks.js";
import { lacks, needs } from "./me.js";
import { often } from "./often.js";
import { structured } from "./structured.js";
import { ago, card, el, moment, note, number, percent, show, span, table, trouble, wide } from "./dom.js";
import { watchPanel } from "./watch.js";

const OFTEN = 5000, SOON = 500;

export async function open(place, { query: typed }) {
  const url = typed.get("url") || "";
  if (!url) {
    show(place, el("h1", {}, "Page"), note("Search for a page, or open one from a site's list."));
    return;
  }
  const about = el("div", {}), described = el("div", { class: "grid described" }), changes = el("div", { class: "card" });
  const check = checker(url, () => look());
  let seen = "", newest = null;
  const look = async () => {
    const [page, why] = await Promise.all([ask(`/page${query({ url })}`), ask(`/why${query({ url })}`)]);
    if (seen === `${page.visits} ${why.next_visit}`) return;
    seen = `${page.visits} ${why.next_visit}`;
    check.saw(page, why);
    draw(about, page, why, check.form);
    if (newest !== page.version) await versions(url, changes, Number(typed.get("after")));
    newest = page.version;
    if (page.version) await structured(described, url, page.checked_at, why.now);
  };
  show(place, about, described, changes, textPanel(url), watchPanel(url));
  return often(place, look, OFTEN);
}

// The buttons that have the page visited now, or forgotten, and what came of it: the page is looked at until it was visited once more.
function checker(url, look) {
  const said = el("span", { class: "small soft", role: "status" });
  const button = el("button", { type: "button", class: "quiet", ...needs("control") }, "Check now");
  let visits = null, known = 0;
  const wait = () => setTimeout(() => look().catch(() => {}).finally(() => visits !== null && button.isConnected && wait()), SOON);
  button.addEventListener("click", async () => {
    button.disabled = true;
    said.textContent = "";
    try {
      const told = await order("POST", "/check", { urls: [url] });
      said.textContent = told.crawling ? "The crawl visits it as soon as its site may be asked …" : "Kept: no crawl runs now, and the next one visits it first.";
      if (told.crawling) {
        visits = known;
        wait();
      } else {
        button.disabled = false;
      }
    } catch (error) {
      said.textContent = error.message;
      button.disabled = false;
    }
  });
  const saw = (page, why) => {
    if (visits !== null && page.visits > visits) {
      const last = why.history.at(-1);
      said.textContent = `Checked: ${page.reason || (last ? last.outcome : page.state)}.`;
      visits = null;
      button.disabled = false;
    }
    known = page.visits;
  };
  return { form: el("div", { class: "row" }, button, forgetButton({ urls: [url] }, url, said), lacks("control"), said), saw };
}

function draw(about, page, why, actions) {
  show(about, el("h1", {}, page.title || page.url),
    el("p", { class: "mono" }, el("a", { href: page.url, rel: "noopener noreferrer nofollow", target: "_blank" }, page.url)),
    el("p", {}, why.sentence),
    actions,
    el("div", { class: "grid" },
      card("Visits", why.history.length ? [visits(why.history, why.next_visit, why.now), legend([["s2", "first"], ["starting", "met a change"], ["busy", "met none"]])] : el("p", { class: "soft" }, "Never visited yet."),
        table(["when", "met", "others said"], [...why.history].reverse().map((visit) => [`${ago(visit.at, why.now)}`, visit.outcome, visit.said.join(", ") || "–"]), "None.")),
      card("Estimated change rate", estimate(why)),
      card("Facts", table(["", ""], facts(page, why)))));
}

// The newest version beside the one before it, or the one that a link asks for: if that is no longer kept, the next
// newer one, which holds what it brought.
async function versions(url, changes, asked) {
  const kept = (await ask(`/page/versions${query({ url })}`)).versions;
  const compared = el("div", {}), at = asked ? Math.max(0, kept.findLastIndex((each) => each.version >= asked)) : 0;
  const after = kept[at]?.version, before = (kept[at + 1] || kept[1])?.version;
  show(changes, el("h2", {}, "Versions"), chooser(url, kept, compared, before, after), compared);
  await compare(url, kept, before, after, compared);
}

function estimate(why) {
  if (!why.rates.length) return el("p", { class: "soft" }, "Nothing yet.");
  const most = Math.max(...why.rates.map((rate) => rate.chance));
  return [
    el("p", { class: "small" }, `It changes about ${number(why.rate_per_day, 2)} times a day (between ${number(why.rate_low, 2)} and ${number(why.rate_high, 2)}); the stored copy is current with a chance of ${percent(why.believed_current)}.`),
    bars(why.rates.filter((rate) => rate.chance > 0.005).reverse().map((rate) => ({ name: rate.per_day ? `every ${span(86400 / rate.per_day)}` : "never", value: rate.chance, label: percent(rate.chance, 0) })), { most, words: "How likely each interval between changes is" }),
  ];
}

function facts(page, why) {
  return [
    ["state", page.state + (page.reason ? `: ${page.reason}` : "")],
    ["site", el("a", { href: `#/sites/${encodeURIComponent(page.site)}` }, page.site)],
    ["words", number(page.words)],
    ["found", `${ago(why.found_at, why.now)}, as ${why.how}, depth ${why.depth}`],
    ["stored", page.fetched_at ? moment(page.fetched_at) : "never"],
    ["last checked", page.checked_at ? ago(page.checked_at, why.now) : "never"],
    ["next visit", why.next_visit ? `${ago(why.next_visit, why.now)} (${moment(why.next_visit)})` : "never"],
    ["policy", why.policy],
    ...why.site_notes.map((words) => ["site", words]),
  ];
}

// The newest version's text or Markdown, and what a PDF or another document says of itself. Nothing is asked before it is opened.
function textPanel(url) {
  const inside = el("div", {}), shown = el("div", { class: "page-text mono", tabIndex: 0, role: "region", ariaLabel: "The stored text" });
  const about = el("p", { class: "small soft" });
  const form = el("select", { ariaLabel: "Shown as" }, el("option", { value: "text" }, "Text"), el("option", { value: "markdown" }, "Markdown"));
  const load = async () => {
    try {
      const told = await ask(`/page/${form.value}${query({ url })}`);
      shown.textContent = told[form.value];
      if (told.document) about.textContent = aboutDocument(told.document);
      show(inside, el("div", { class: "row" }, form), about, shown);
    } catch (error) {
      show(inside, trouble(error));
    }
  };
  form.addEventListener("change", load);
  const panel = el("details", { class: "card stored-text" }, el("summary", {}, el("h2", {}, "Text")), inside);
  panel.addEventListener("toggle", () => panel.open && load());
  return panel;
}

const aboutDocument = (said) => [said.author && `by ${said.author}`, said.pages && `${number(said.pages)} ${said.pages === 1 ? "page" : "pages"}`, said.published && `written ${moment(said.published)}`,
  said.modified && `modified ${moment(said.modified)}`, said.left_out && `not in the text: ${said.left_out}`].filter(Boolean).join(", ");

function chooser(url, versions, compared, chosenBefore, chosenAfter) {
  if (versions.length < 2) return el("p", { class: "soft" }, versions.length ? "It has not changed since it was first stored." : "Nothing is stored.");
  const pick = (name, chosen) => el("select", { ariaLabel: name }, versions.map((each) => el("option", { value: each.version, selected: each.version === chosen }, `version ${each.version}, ${moment(each.fetched_at)}`)));
  const before = pick("Before", chosenBefore), after = pick("After", chosenAfter);
  return el("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    compare(url, versions, Number(before.value), Number(after.value), compared);
  } }, before, after, el("button", { class: "quiet" }, "Compare"));
}

async function compare(url, versions, before, after, compared) {
  if (!before || !after) {
    show(compared, after ? await picture(url, after) : "");
    return;
  }
  try {
    const told = await ask(`/page/diff${query({ url, before: Math.min(before, after), after: Math.max(before, after) })}`);
    const pictures = await Promise.all([before, after].sort((one, other) => one - other).map((version) => picture(url, version)));
    show(compared, pictures.some(Boolean) ? el("div", { class: "pictures" }, pictures.map((each) => each || el("p", { class: "soft" }, "No picture was taken."))) : "", el("p", { class: "soft small" }, `${number(told.removed)} ${told.removed === 1 ? "line" : "lines"} went, ${number(told.added)} came`),
      told.hunks.length ? told.hunks.map(hunk) : el("p", {}, "The main text is the same; what changed is around it."));
  } catch (error) {
    show(compared, trouble(error));
  }
}

// What a browser saw, of a page that one rendered.
async function picture(url, version) {
  const told = await ask(`/page/screenshot${query({ url, version })}`);
  return told.jpeg && el("figure", {}, el("img", { src: `data:image/jpeg;base64,${told.jpeg}`, alt: `The page in version ${version}` }), el("figcaption", { class: "small soft" }, `version ${version}`));
}
