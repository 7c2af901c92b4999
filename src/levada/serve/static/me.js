// Who is logged in, and the button that ends it.

import { ask } from "./api.js";
import { el, show } from "./dom.js";

export let me = { name: "", kind: "local", rights: [] };
export const may = (right) => me.rights.includes(right);

// Not by a form: these pages send no referrer, and so a form without an origin, which the server refuses.
async function leave() {
  await fetch("/logout", { method: "POST" }).catch(() => {});
  location.assign("/");
}

export async function showMe() {
  try {
    me = await ask("/me");
  } catch {
    return me; // the views say what is wrong
  }
  const place = document.getElementById("me");
  if (me.kind !== "user" && me.kind !== "token") return me;
  const name = me.kind === "token" ? me.role : me.name;
  show(place,
    el("span", { class: "me", title: `${me.kind === "token" ? "By token" : name}: ${me.role}` }, name),
    el("button", { class: "quiet", type: "button", onclick: leave }, "Log out"));
  return me;
}
