// The start page of a server with several collections.

import { ask } from "./api.js";
import { el, number, show, trouble } from "./dom.js";
import { showMe } from "./me.js";
import { startTheme } from "./theme.js";

const place = document.getElementById("view");

function collection(each) {
  const state = each.trouble || (each.crawling ? "A crawl runs." : "No crawl runs.");
  return el("section", { class: "card" },
    el("h2", {}, el("a", { href: each.path }, each.name)),
    el("p", {}, `${number(each.pages)} ${each.pages === 1 ? "page" : "pages"}`),
    el("p", { class: each.trouble ? "bad small" : "soft small" }, state));
}

async function open() {
  try {
    const { collections } = await ask("/collections");
    const none = el("p", { class: "note" }, "No collection of this server is open to you: ask an administrator.");
    show(place, el("h1", {}, "Collections"), collections.length ? el("div", { class: "grid" }, collections.map(collection)) : none);
  } catch (error) {
    show(place, trouble(error));
  }
}

startTheme();
showMe();
open();
