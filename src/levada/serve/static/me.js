// Who is logged in, and the button that ends it.

import { ask } from "./api.js";
import { el, show } from "./dom.js";

export let me = { name: "", kind: "local", rights: [] };
export const may = (right) => me.rights.includes(right);

// What needs a right is marked with it, and the style sheet shows it to those who have the right; others are told.
export const needs = (right) => ({ "data-needs": right });
const LACKING = { control: "You may read here. Changing this is for editors and admins.", admin: "This is for admins." };
export const lacks = (right) => el("p", { class: "small soft", "data-lacks": right }, LACKING[right]);

// Not by a form: these pages send no referrer, and so a form without an origin, which the server refuses.
async function leave() {
  await fetch("/logout", { method: "POST" }).catch(() => {});
  location.assign("/");
}

export async function showMe() {
  try {
    me = await ask("/me");
    document.documentElement.dataset.may = me.rights.join(" ");
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
