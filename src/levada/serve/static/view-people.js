// Users, keys, and who did what. For administrators.

import { ask, order, query } from "./api.js";
import { el, moment, number, show, table, trouble, wide } from "./dom.js";
import { me } from "./me.js";

const ROLES = ["reader", "editor", "admin"], SCOPES = ["search", "read", "metrics", "control", "admin"], SHOWN = 100;
const list = (text) => text.split(/[\s,]+/).filter(Boolean);

export async function open(place) {
  const said = el("div", { role: "status" });
  const [users, keys, log] = [el("div", {}), el("div", {}), el("div", {})];

  async function load() {
    const [people, programs, audit] = await Promise.all([ask("/users"), ask("/keys"), ask(`/audit${query({ limit: SHOWN })}`)]);
    show(users, table(["name", "role", "logs in by", "collections", { name: "sessions", num: true }, ""],
      people.users.map(userRow), "Nobody yet. The first user is an administrator; from then on everybody must log in."));
    show(keys, table(["name", "scopes", "limits", "expires", ""], programs.keys.map(keyRow), "No key yet."));
    show(log, table(["when", "who", "what", "from", "outcome"], audit.entries.map(logRow), "Nothing yet."));
  }

  async function act(work, words) {
    try {
      const shown = await work();
      show(said, shown || el("p", { class: "note" }, words));
      await load();
    } catch (error) {
      show(said, trouble(error));
    }
  }

  const userRow = (user) => [user.name, roleOf(user), [user.password ? "password" : null, user.openid ? `OpenID ${user.openid}` : null].filter(Boolean).join(", "),
    user.collections.join(", ") || "all", number(user.sessions),
    removing(user.name, user.name === me.name ? "you" : user.name, () => order("DELETE", `/users${query({ name: user.name })}`), `${user.name} is removed, and logged out.`)];

  function roleOf(user) {
    return el("select", { ariaLabel: `Role of ${user.name}`, onchange: (event) =>
      act(() => order("PUT", "/users", { name: user.name, role: event.target.value }).then(() => null), `${user.name} has another role now.`) },
      ROLES.map((role) => el("option", { value: role, selected: role === user.role }, role)));
  }

  const keyRow = (key) => [key.name, key.scopes.join(", "), limits(key), key.expired ? el("span", { class: "bad" }, `expired ${moment(key.expires)}`) : key.expires ? moment(key.expires) : "never",
    removing(key.name, key.name, () => order("DELETE", `/keys${query({ name: key.name })}`), `The key ${key.name} is revoked.`, "Revoke")];

  const limits = (key) => [key.origins.join(", "), key.collections.length ? `only ${key.collections.join(", ")}` : "", key.rate ? `${number(key.rate)}/min` : "", key.results ? `${number(key.results)} results` : ""].filter(Boolean).join("; ") || "–";
  const logRow = (line) => [moment(line.at), `${line.who} (${line.kind})`, `${line.action} ${line.object}`, line.origin, line.outcome];

  // The first press asks, the second does it: nothing is removed by a slip.
  function removing(name, shown, work, words, verb = "Remove") {
    const button = el("button", { type: "button", class: "quiet", ariaLabel: `${verb} ${name}`, onclick: () => {
      if (button.textContent === verb) { button.textContent = `${verb} ${shown}?`; return; }
      act(() => work().then(() => null), words);
    }, onblur: () => { button.textContent = verb; } }, verb);
    return button;
  }

  show(place, el("h1", {}, "People"), said,
    el("div", { class: "grid" }, wide("Users", users, adding(act)), wide("Keys", keys, making(act)),
      wide(`The latest ${SHOWN} lines of the log`, log)));
  try {
    await load();
  } catch (error) {
    show(place, el("h1", {}, "People"), trouble(error));
  }
}

function adding(act) {
  const name = el("input", { name: "name", placeholder: "name", ariaLabel: "Name of the user", required: true, autocomplete: "off" });
  const password = el("input", { name: "password", type: "password", placeholder: "password, 10 or more", ariaLabel: "Password", autocomplete: "new-password" });
  const role = el("select", { ariaLabel: "Role" }, ROLES.map((each) => el("option", { value: each }, each)));
  const openid = el("input", { name: "openid", placeholder: "or OpenID mail address", ariaLabel: "Identity at the OpenID provider" });
  return el("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    const asked = { name: name.value.trim(), role: role.value, password: password.value, openid: openid.value.trim() };
    act(() => order("POST", "/users", asked).then(() => { event.target.reset(); return null; }), `${asked.name} can log in now.`);
  } }, name, password, openid, role, el("button", {}, "Add a user"));
}

function making(act) {
  const name = el("input", { name: "name", placeholder: "name", ariaLabel: "Name of the key", required: true });
  const scope = el("select", { ariaLabel: "Scope" }, SCOPES.map((each) => el("option", { value: each }, each)));
  const days = el("input", { name: "days", type: "number", min: 1, placeholder: "days, or for ever", ariaLabel: "Days until it expires" });
  const origins = el("input", { name: "origins", class: "wide", placeholder: "for pages of https://blog.example.org", ariaLabel: "Origins whose pages may use it" });
  return el("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    const asked = { name: name.value.trim(), scopes: [scope.value], days: days.value ? Number(days.value) : null, origins: list(origins.value) };
    act(async () => {
      const made = await order("POST", "/keys", asked);
      event.target.reset();
      return el("div", { class: "note" }, `The key ${made.key.name}, shown only now:`, el("code", { class: "secret" }, made.secret));
    });
  } }, name, scope, days, origins, el("button", {}, "Make a key"));
}
