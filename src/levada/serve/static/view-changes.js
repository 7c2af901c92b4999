// What changed? A timeline by day, the newest first, with what came and went, and marks at what was not read yet.

import { API, ask, query } from "./api.js";
import { command, el, moment, note, number, percent, show, trouble } from "./dom.js";
import { reach, watch, worldNow } from "./live.js";
import { ReadMarks } from "./read-marks.js";

const AT_ONCE = 30, MOST_NEW = 100, MOST_COUNTED = 1000, PAUSE = 1500, FOLDED = "diffs-folded";
const KINDS = ["new", "changed", "gone", "back"];
const SINCE = [["", "any time"], ["1h", "last hour"], ["24h", "last day"], ["7d", "last week"], ["30d", "last month"]];
const KEYS = "Keys: j next, k previous, o opens or closes what came and went, n shows new changes.";

export async function open(place, { query: typed }) {
  const filters = Object.fromEntries(["site", "words", "kind", "least", "since"].map((name) => [name, typed.get(name) || ""]));
  const timeline = new Timeline(filters);
  show(place, el("h1", {}, "Changes"), filterForm(filters), timeline.top, timeline.bar, timeline.days, timeline.end);
  await timeline.start();
  const away = [watch((status, changes) => timeline.look(status, changes)), reach((lost) => timeline.lost(lost)), keys(timeline)];
  return () => { timeline.left = true; for (const each of away) each(); };
}

function filterForm(filters) {
  const field = (name, placeholder, label, more) => el("input", { name, value: filters[name], placeholder, ariaLabel: label, ...more });
  const chosen = filters.kind.split(",").map((each) => each.trim());
  const kinds = KINDS.map((kind) => el("input", { type: "checkbox", name: "kind", value: kind, checked: chosen.includes(kind), onchange: () => go() }));
  const site = field("site", "site", "Only this site", { size: 16 }), words = field("words", "words on the page", "Only pages with these words", { type: "search" });
  const least = el("input", { name: "least", type: "number", min: 0, max: 100, step: "any", value: filters.least ? String(100 * filters.least) : "", placeholder: "least %", ariaLabel: "Least share of the words that changed, in percent", class: "short" });
  const since = el("select", { name: "since", ariaLabel: "Since", onchange: () => go() }, SINCE.map(([value, name]) => el("option", { value, selected: value === filters.since }, name)));
  const asked = () => ({ site: site.value.trim(), words: words.value.trim(), kind: kinds.filter((each) => each.checked).map((each) => each.value).join(","), least: least.value ? String(Number(least.value) / 100) : "", since: since.value });
  const go = () => { location.hash = `#/changes${query(asked())}`; };
  const { since: _, words: q, ...rest } = filters;
  return el("form", { class: "row", role: "search", ariaLabel: "Which changes", onsubmit: (event) => { event.preventDefault(); go(); } },
    words, site, least, since,
    el("fieldset", { class: "kinds" }, el("legend", { class: "unseen" }, "Kinds"), kinds.map((box) => el("label", {}, box, ` ${box.value}`))),
    el("button", {}, "Filter"),
    el("span", { class: "links small" }, Object.values(filters).some(Boolean) ? el("a", { href: "#/changes" }, "Show all") : null,
      el("a", { href: `#/notifications${query({ ...rest, words: q })}` }, "Be told of these"), el("a", { href: `${API}/changes.atom${query({ ...rest, q })}` }, "Atom feed")));
}

class Timeline {
  constructor(filters) {
    const { since, ...wanted } = filters;
    [this.filters, this.wanted] = [filters, wanted];
    this.top = el("div", { class: "row spread small" });
    this.bar = el("div", { class: "arrivals", role: "status" });
    this.days = el("div", { class: "timeline" });
    this.end = el("div", {});
    this.sections = new Map();
    this.newest = "";
    this.waiting = [];
    this.tooMany = false;
    this.unread = 0;
    this.left = false;
    this.again = false;
    this.folded = localStorage.getItem(FOLDED) === "yes";
  }

  async start() {
    this.waiting = [];
    this.tooMany = false;
    this.sections.clear();
    show(this.bar);
    show(this.top);
    show(this.days, el("p", { class: "soft", role: "status" }, "Loading…"));
    show(this.end);
    try {
      const [status, told] = await Promise.all([ask("/status"), this.page("")]);
      if (this.left) return;
      [this.now, this.newest, this.shown, this.loaded] = [status.now, told.next, told.next, new Date()];
      this.marks = new ReadMarks(status.data);
      this.marks.begin(told.next);
      show(this.days);
      this.add(told.changes, false);
      this.more(told);
      await this.count();
    } catch (error) {
      this.newest = "";
      this.again = !error.code || error.code === "not-found"; // by itself once there is something, not after a wrong filter
      show(this.days, await failed(error, () => this.start()));
    }
  }

  page(before) {
    return ask(`/changes/latest${query({ ...this.filters, before, limit: AT_ONCE })}`);
  }

  // How many in all were not read, whatever the filters leave out.
  async count() {
    if (!this.marks) return;
    const since = await ask(`/changes${query({ after: this.marks.place, limit: MOST_COUNTED, diff: false })}`);
    this.unread = since.changes.filter((each) => this.marks.isUnread(each)).length;
    this.counted = since.more ? `more than ${number(this.unread)}` : number(this.unread);
    this.head();
  }

  head() {
    const words = this.unread ? `${this.counted} unread${this.marks.at ? ` since ${moment(this.marks.at)}` : ""}` : "Nothing is unread.";
    show(this.top, el("span", { class: this.unread ? "" : "soft", role: "status", id: "unread" }, words),
      this.unread ? el("button", { type: "button", class: "quiet", onclick: () => this.readAll() }, "Mark all as read") : null,
      this.sections.size ? el("button", { type: "button", class: "quiet", ariaPressed: String(this.folded), onclick: () => this.fold() }, this.folded ? "Show what came and went" : "Only the titles") : null);
  }

  readAll() {
    this.marks.readAll(this.shown);
    for (const each of this.days.querySelectorAll(".unread")) this.unmark(each);
    this.unread = 0;
    this.head();
    if (this.waiting.length || this.tooMany) this.count().catch(() => {});
  }

  readOne(change, item) {
    if (!this.marks.read(change)) return;
    this.unmark(item);
    this.unread = Math.max(0, this.unread - 1);
    this.counted = number(this.unread);
    this.head();
  }

  unmark(item) {
    item.classList.remove("unread");
    item.querySelector(".mark")?.remove();
  }

  fold() {
    this.folded = !this.folded;
    localStorage.setItem(FOLDED, this.folded ? "yes" : "no");
    for (const each of this.days.querySelectorAll("details.came")) each.open = !this.folded;
    this.head();
  }

  // Above what is shown (the newest last), or below it.
  add(changes, above) {
    for (const change of changes) {
      const list = this.section(dayOf(change.at)), item = this.item(change);
      if (above) list.prepend(item);
      else list.append(item);
    }
  }

  section(day) {
    const known = this.sections.get(day);
    if (known) return known;
    const list = el("ol", { class: "plain card changes" });
    const made = el("section", { "data-day": day }, el("h2", { class: "day" }, dayName(day, this.now)), list);
    this.days.insertBefore(made, [...this.days.children].find((each) => each.dataset.day < day) || null);
    this.sections.set(day, list);
    return list;
  }

  item(change) {
    const at = new Date(change.at), unread = this.marks.isUnread(change);
    const item = el("li", { class: unread ? "change unread" : "change", tabIndex: -1, "data-id": change.id },
      el("div", { class: "line-of" }, unread ? el("span", { class: "mark" }, el("span", { class: "unseen" }, "unread")) : null,
        el("time", { datetime: change.at, title: moment(change.at), class: "soft" }, at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })),
        el("span", { class: `tag ${change.what}` }, change.what),
        el("a", { class: "of-page", href: pageAt(change), onclick: () => this.readOne(change, item) }, change.title || change.url)),
      el("div", { class: "soft small" }, el("a", { href: `#/sites/${encodeURIComponent(change.site)}` }, change.site), about(change)),
      change.lines.length ? el("details", { class: "came", open: !this.folded, ontoggle: (event) => event.target.open && this.folded && this.readOne(change, item) },
        el("summary", { class: "small soft" }, counts(change)),
        el("div", { class: "diff" }, change.lines.map(changedLine)),
        change.note ? el("p", { class: "soft small" }, change.note) : null)
        : change.note ? el("p", { class: "soft small" }, change.note) : null);
    return item;
  }

  more(told) {
    if (!told.older) {
      const empty = !this.sections.size;
      show(this.end, empty ? this.nothing() : el("p", { class: "soft small" }, this.filters.since ? "That is all since then." : "That is all that the change log holds."), empty ? null : el("p", { class: "soft small keys" }, KEYS));
      return;
    }
    const button = el("button", { type: "button", class: "quiet" }, told.changes.length ? "Load more" : "Look further back");
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        const next = await this.page(told.older), first = this.days.querySelectorAll(".change").length;
        if (this.left) return;
        this.add(next.changes, false);
        this.more(next);
        this.head();
        this.days.querySelectorAll(".change")[first]?.focus({ preventScroll: true });
      } catch (error) {
        show(this.end, trouble(error), button);
        button.disabled = false;
      }
    });
    show(this.end, told.changes.length ? null : el("p", { class: "soft", role: "status" }, "Nothing found so far."), button, el("p", { class: "soft small keys" }, KEYS));
  }

  nothing() {
    if (Object.values(this.filters).some(Boolean)) return note("No change fits. Fewer words, a smaller share or a longer time may find one.");
    return note("Nothing was stored or changed yet. It appears here as soon as a crawl meets it.");
  }

  // The line to the server brings the latest changes every second: only if one is new, the feed is read on.
  async look(status, changes) {
    if (!this.newest) {
      if (status.standing && this.again && !this.starting) {
        this.starting = true;
        await this.start();
        this.starting = false;
      }
      return;
    }
    const known = this.newest.split(".").map(Number);
    const isNew = changes.some(({ id }) => { const [shard, step] = id.split("-").map(Number); return step > (known[shard] || 0); });
    if (!isNew || this.asking || this.tooMany) return;
    this.asking = true;
    try {
      const told = await ask(`/changes${query({ ...this.wanted, after: this.newest, limit: MOST_NEW })}`);
      this.newest = told.next;
      this.waiting.push(...told.changes);
      this.tooMany = told.more || this.waiting.length > MOST_NEW;
      this.arrived();
      await this.count();
    } catch {
      // It is asked again in a moment; that the server is away is said above.
    } finally {
      setTimeout(() => { this.asking = false; }, PAUSE);
    }
  }

  arrived() {
    const some = this.waiting.length;
    if (!some && !this.tooMany) return;
    const words = this.tooMany ? `More than ${MOST_NEW} new changes` : `${some} new ${some === 1 ? "change" : "changes"}`;
    const button = this.bar.querySelector("button");
    if (button) button.textContent = words;
    else show(this.bar, el("button", { type: "button", onclick: () => this.showNew() }, words));
  }

  async showNew() {
    const came = this.waiting;
    if (!came.length && !this.tooMany) return;
    if (this.tooMany) await this.start();
    else {
      [this.waiting, this.shown, this.now] = [[], this.newest, await worldNow().catch(() => this.now)];
      show(this.bar);
      if (!this.sections.size) this.more({ older: "", changes: came });
      this.add(came.sort((a, b) => (a.at < b.at ? -1 : 1)), true);
      if (this.sections.size) show(this.end, ...[...this.end.children].filter((each) => !each.classList.contains("note")));
      this.head();
    }
    scrollTo({ top: 0 });
    this.days.querySelector(".change")?.focus({ preventScroll: true });
  }

  lost(isLost) {
    const shown = this.days.parentNode?.querySelector(".lost-line");
    if (!isLost) shown?.remove();
    else if (!shown && this.loaded) {
      this.top.before(el("p", { class: "note warn lost-line", role: "status" }, `The server does not answer. What you see is from ${this.loaded.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}; it goes on as soon as it answers.`));
    }
  }

  step(way) {
    const all = [...this.days.querySelectorAll(".change")], at = all.indexOf(document.activeElement?.closest(".change"));
    const next = all[at < 0 ? 0 : at + way];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  }

  toggle() {
    const held = document.activeElement?.closest(".change")?.querySelector("details");
    if (held) held.open = !held.open;
  }
}

async function failed(error, again) {
  const status = await ask("/status").catch(() => null);
  if (error.code === "not-found" && status) return note("Nothing is stored yet. Start a crawl:", command("crawl https://example.org", status));
  return [trouble(error), status?.trouble ? note("This says more:", command("doctor", status)) : null,
    el("p", {}, el("button", { type: "button", class: "quiet", onclick: again }, "Try again"))];
}

function keys(timeline) {
  const doing = { j: () => timeline.step(1), k: () => timeline.step(-1), o: () => timeline.toggle(), n: () => timeline.showNew() };
  const pressed = (event) => {
    const at = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || at.isContentEditable || ["INPUT", "SELECT", "TEXTAREA"].includes(at.tagName)) return;
    doing[event.key]?.();
  };
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}

const pageAt = (change) => `#/page?url=${encodeURIComponent(change.url)}&after=${change.version}`;
const about = (change) => (change.what === "changed" ? ` · ${percent(change.changed, 0)} of the words` : "");

function counts(change) {
  const came = change.added ?? 0, went = change.removed ?? 0;
  return `${number(came)} ${came === 1 ? "line" : "lines"} came, ${number(went)} went`;
}

// Words are marked where others stayed: of a line that is new as a whole, none.
function changedLine(line) {
  const came = line.sign === "+", whole = line.pieces.every(([, differs]) => differs);
  return el("div", { class: came ? "add" : "del" }, el("span", { class: "sign", role: "img", ariaLabel: came ? "came" : "went" }, came ? "+" : "−"),
    el(came ? "ins" : "del", {}, line.pieces.map(([text, differs]) => (differs && !whole ? el("b", {}, text) : text))));
}

const two = (value) => String(value).padStart(2, "0");
const keyOf = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
const dayOf = (iso) => keyOf(new Date(iso));

function dayName(day, now) {
  const today = new Date(now || Date.now()), before = new Date(today);
  before.setDate(today.getDate() - 1);
  const [year, month, date] = day.split("-").map(Number);
  const part = (name) => new Date(year, month - 1, date).toLocaleDateString("en-GB", { [name]: "long" });
  const words = `${part("weekday")} ${date} ${part("month")} ${year}`;
  return day === keyOf(today) ? `Today, ${words}` : day === keyOf(before) ? `Yesterday, ${words}` : words;
}
