// Who is told of changes: set up, tested, paused, and the log of the messages.

import { ask, order, query } from "./api.js";
import { ago, card, el, moment, note, number, show, table, trouble, wide } from "./dom.js";
import { lacks, needs } from "./me.js";
import { often } from "./often.js";

const OFTEN = 5000, IN_LOG = 20, MOST_IN_LOG = 1000;
const KINDS = ["new", "changed", "gone", "back"], KINDS_EDITED = ["mail", "apprise", "webhook"];
const TARGETS = [
  ["mailto://mail.example.org/?to=me@example.org", "mail"],
  ["mailtos://USER:PASSWORD@mail.example.org/?to=me@example.org", "mail, only over TLS"],
  ["https://example.org/told", "changes posted as JSON"],
  ["ntfy://ntfy.sh/my-topic", "and a hundred other services, as Apprise writes them"],
];
const TITLE_FIELDS = "{name} {count} {title} {url} {site} {what}";
const BODY_FIELDS = "{name} {title} {url} {site} {what} {when} {changed} {came} {went} {diff} {link}";

export async function open(place, { query: typed }) {
  const list = el("div", { class: "grid" }), log = el("div", {}), editor = el("div", {}), said = new Map();
  const add = () => show(editor, form(new Map(typed), look));
  const edit = (told) => { // below the list, which is drawn anew every few seconds
    show(editor, form(optionsOf(told), look, told, add));
    editor.scrollIntoView({ block: "start" });
  };
  let limit = IN_LOG;
  const look = async () => {
    try {
      const [told, sent] = await Promise.all([ask("/notifications"), ask(`/notifications/log${query({ limit })}`)]);
      show(list, told.notifications.length ? told.notifications.map((each) => one(each, said, look, edit))
        : note("Nobody is told of changes yet. Add a target below, or type:", "levada notify add 'mailto://mail.example.org/?to=me@example.org'"));
      show(log, messages(sent.messages), sent.messages.length === limit && limit < MOST_IN_LOG
        ? el("button", { type: "button", class: "quiet", onclick: () => { limit = MOST_IN_LOG; look(); } }, "More") : null);
    } catch (error) {
      show(list, trouble(error), error.code === "not-found" ? null : el("p", {}, el("button", { type: "button", class: "quiet", onclick: look }, "Try again")));
      show(log);
    }
  };
  show(place, el("h1", {}, "Notifications"), el("p", { class: "soft" }, "Told of changes by mail, by a message to one of a hundred services, or by a request to an address of yours. Passwords in targets are not shown again."), lacks("control"),
    list, editor, el("div", { class: "grid" }, wide("Messages", log)));
  add();
  return often(list, look, OFTEN);
}

function one(told, said, look, edit) {
  const status = el("p", { class: "small", role: "status" }, said.get(told.name) || "");
  const act = (words, how, { quiet = true, waiting = "…" } = {}) => el("button", { type: "button", class: quiet ? "quiet" : null, onclick: async (event) => {
    event.target.disabled = true;
    status.textContent = waiting;
    try {
      said.set(told.name, await how());
    } catch (error) {
      said.set(told.name, error.message);
    }
    status.textContent = said.get(told.name) || "";
    event.target.disabled = false;
    event.target.blur();
    await look();
  } }, words);
  const to = (path, more) => () => order("POST", `/notifications/${path}`, { name: told.name, ...more });
  const remove = el("button", { type: "button", class: "quiet", onclick: () => {
    remove.replaceWith(act("Really remove it", async () => { await order("DELETE", `/notifications${query({ name: told.name })}`); return ""; }, { quiet: false }),
      el("button", { type: "button", class: "quiet", onclick: look }, "Keep it"));
  } }, "Remove");
  const skip = act("Skip what waits", async () => { await to("resume", { skip: true })(); return "Goes on with what changes from now on."; });
  const options = Object.entries(told.options);
  return el("section", { class: "card" },
    el("h2", {}, told.name, " ", el("span", { class: "tag changed" }, told.kind), " ", state(told)),
    el("p", { class: "mono" }, told.target), el("p", {}, `Told of ${told.about}.`),
    el("p", { class: "soft" }, `${number(told.told)} told, ${number(told.waiting)} waiting`, told.lost ? el("span", { class: "bad" }, `; up to ${number(told.lost)} had left the change log before`) : null),
    told.trouble ? el("p", { class: "note error" }, `Failed ${number(told.failures)} ${told.failures === 1 ? "time" : "times"}: ${told.trouble}`, retry(told)) : null,
    options.length ? el("details", {}, el("summary", { class: "small soft" }, "Its options"), el("dl", { class: "options small" }, options.map(([name, value]) => [el("dt", {}, name), el("dd", {}, [value].flat().join(", "))]))) : null,
    el("div", { class: "spread", ...needs("control") },
      act("Send a test", async () => `Taken: ${(await to("test")()).answer}`, { waiting: "Sending a test…" }),
      told.paused ? act("Resume", async () => { await to("resume")(); return ""; }) : act("Pause", async () => { await to("pause")(); return ""; }),
      told.failures && !told.paused ? act("Try now", async () => { await to("resume")(); return "Tried again within a second, while a crawl or this server sends."; }) : null,
      told.waiting && (told.paused || told.failures) ? skip : null,
      KINDS_EDITED.includes(told.kind) ? el("button", { type: "button", class: "quiet", onclick: () => edit(told) }, "Edit") : null, remove),
    status);
}

const state = (told) => (told.paused ? el("span", { class: "tag" }, "paused") : told.failures ? el("span", { class: "tag gone" }, "failing") : null);
const retry = (told) => (told.retry_at && !told.paused ? ` Tried again ${ago(new Date(1000 * told.retry_at).toISOString())}.` : null);

function messages(sent) {
  return table(["composed", "to", "state", { name: "changes", num: true }, "title"], sent.map((each) => [
    moment(each.created), each.subscription,
    [each.sent ? `sent ${moment(each.sent)}` : el("strong", {}, "on its way"), each.attempts ? el("span", { class: "small bad" }, ` failed ${number(each.attempts)} ${each.attempts === 1 ? "time" : "times"}: ${each.trouble}`) : null],
    number(each.changes), each.title]), "No message was composed yet.");
}

// The options of a notification as the fields of the form hold them.
function optionsOf({ options }) {
  const { came = [], went = [], gather = 0, digest = "", quiet = "" } = options;
  const [quiet_from = "", quiet_to = ""] = quiet.split("-");
  return new Map(Object.entries({ ...options, came: came.join("\n"), went: went.join("\n"), when: digest || (gather ? "gather" : ""), gather: gather ? gather / 60 : "", quiet_from, quiet_to }));
}

// Adds a notification, or edits `told` and calls `close` then.
function form(typed, look, told, close) {
  const fields = {};
  const labelled = (name, words, input, hint) => {
    fields[name] = input;
    if (hint) input.setAttribute("aria-describedby", `about-${name}`);
    return el("div", { class: "field" }, el("label", {}, el("span", {}, words), input), hint ? el("small", { class: "soft", id: `about-${name}` }, hint) : null);
  };
  const text = (name, words, props = {}, hint = "") => labelled(name, words, el("input", { name, autocomplete: "off", ...props, value: typed.get(name) || props.value || "" }), hint);
  const area = (name, words, props, hint) => labelled(name, words, el("textarea", { ...props, value: typed.get(name) || "" }), hint);
  const chosen = (typed.get("kind") || "").split(",");
  const kinds = KINDS.map((kind) => el("input", { type: "checkbox", value: kind, checked: chosen.includes(kind) }));
  const when = el("select", { name: "when" }, [["", "at once"], ["gather", "gathered for some minutes"], ["hourly", "every hour"], ["daily", "once a day"]].map(([value, words]) => el("option", { value, selected: value === (typed.get("when") || "") }, words)));
  const beginning = el("input", { type: "checkbox" });
  const at = text("at", "At", { type: "time", value: "08:00" }), gather = text("gather", "Minutes", { type: "number", min: 1, max: 10080, value: "10" });
  const fit = () => { at.hidden = when.value !== "daily"; gather.hidden = when.value !== "gather"; };
  when.addEventListener("change", fit);
  fit();
  if (typed.has("least")) typed.set("least", String(100 * Number(typed.get("least"))));
  const said = el("div", { role: "status" });
  const whole = el("form", { onsubmit: (event) => { event.preventDefault(); send(); } },
    el("div", { class: "fields" },
      text("target", "Target", { required: !told, maxLength: 4096, placeholder: told ? told.target : TARGETS[0][0], spellcheck: false }, told ? "empty: as it is" : ""),
      told ? null : text("name", "Name", { placeholder: "its kind", maxLength: 63 })),
    el("details", { class: "small" }, el("summary", {}, "What a target looks like"), el("ul", {}, TARGETS.map(([url, words]) => el("li", {}, el("code", {}, url), ` ${words}`)))),
    el("fieldset", {}, el("legend", {}, "Which changes"),
      el("div", { class: "fields" },
        text("site", "Site", { placeholder: "blog.example.org" }), text("prefix", "Address begins with", { placeholder: "https://" }), text("words", "Words on the page"),
        text("least", "Least share of the words, %", { type: "number", min: 0, max: 100, step: "any" }),
        text("least_words", "Least words that came or went", { type: "number", min: 0, step: 1 })),
      el("div", { class: "kinds" }, kinds.map((box) => el("label", {}, box, ` ${box.value}`)), el("span", { class: "soft small" }, "none ticked: all kinds")),
      el("details", { open: false }, el("summary", {}, "Words that came or went, prices"), el("div", { class: "fields" },
        area("came", "Words that came", { rows: 2 }, "a line for each; any of the lines is enough"),
        area("went", "Words that went", { rows: 2 }, "a line for each; any of the lines is enough"),
        text("below", "A price that came is below", { type: "number", step: "any" }), text("above", "… or above", { type: "number", step: "any" }),
        text("near", "Instead of prices, numbers in lines with", { placeholder: "total" })))),
    el("fieldset", {}, el("legend", {}, "When"), el("div", { class: "fields" }, labelled("when", "A message comes", when), at, gather,
      text("quiet_from", "Quiet from", { type: "time" }), text("quiet_to", "to", { type: "time" }),
      text("zone", "Time zone", { value: Intl.DateTimeFormat().resolvedOptions().timeZone || "", placeholder: "of the server" }),
      text("most", "Most changes in a message", { type: "number", min: 1, max: 1000 }))),
    el("details", {}, el("summary", {}, "The text of the messages"), el("div", { class: "fields" },
      text("title", "Title", { maxLength: 500 }, `Fields: ${TITLE_FIELDS}`),
      area("body", "About each change", { rows: 5, maxLength: 10000 }, `Fields: ${BODY_FIELDS}`))),
    told ? null : el("label", { class: "ticks" }, beginning, " Tell also of everything that the change log holds already"),
    el("p", { class: "spread" }, el("button", {}, told ? "Save" : "Add"), told ? el("button", { type: "button", class: "quiet", onclick: close }, "Cancel") : null), said);

  async function send() {
    const value = (name) => fields[name].value.trim(), count = (name) => (value(name) === "" ? undefined : Number(value(name)));
    const lines = (name) => fields[name].value.split("\n").map((each) => each.trim()).filter(Boolean);
    const asked = {
      target: value("target"), name: told ? "" : value("name"), site: value("site"), prefix: value("prefix"), words: value("words"),
      least: count("least") === undefined ? undefined : count("least") / 100, least_words: count("least_words"),
      kind: kinds.filter((each) => each.checked).map((each) => each.value).join(","),
      came: lines("came"), went: lines("went"), below: count("below"), above: count("above"), near: value("near"),
      digest: ["hourly", "daily"].includes(when.value) ? when.value : "", at: when.value === "daily" ? value("at") : undefined,
      gather: when.value === "gather" ? 60 * count("gather") : undefined,
      quiet: value("quiet_from") || value("quiet_to") ? `${value("quiet_from")}-${value("quiet_to")}` : "",
      zone: value("zone"), most: count("most"), title: value("title"), body: fields.body.value, from_beginning: beginning.checked,
    };
    try {
      if (told) {
        const { name, from_beginning, target, ...rest } = asked; // these stay, the target unless another is typed
        const change = Object.fromEntries(Object.entries(rest).map(([field, typed]) => [field, typed === undefined || typed === "" ? null : typed]));
        await order("PUT", "/notifications", { name: told.name, change: target ? { ...change, target } : change });
        close();
      } else {
        const made = await order("POST", "/notifications", asked);
        whole.reset();
        fit();
        show(said, el("p", { class: "note" }, `${made.notification.name} is told of ${made.notification.about}. Send a test to see whether it arrives.`,
          made.secret ? [" Its requests are signed with this secret, shown only now: ", el("code", {}, made.secret)] : null));
      }
      await look();
    } catch (error) {
      show(said, trouble(error));
    }
  }
  return el("div", needs("control"), card(told ? `Edit ${told.name}` : "Add a notification", whole));
}
