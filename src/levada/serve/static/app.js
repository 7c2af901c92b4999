// Which view is shown, and the bar above it.

import { ask, order } from "./api.js";
import { el, show, trouble } from "./dom.js";
import { connect, watch } from "./live.js";
import { may, showMe } from "./me.js";
import { ReadMarks } from "./read-marks.js";
import { startTheme } from "./theme.js";

const VIEWS = ["changes", "now", "sites", "search", "page", "notifications", "balance", "stages", "shards", "loads", "lab", "people"];
const NAMES = { changes: "Changes", now: "Now", sites: "Sites", search: "Search", page: "Page", notifications: "Notifications", balance: "Balance", stages: "Stages", shards: "Shards", loads: "Loads", lab: "Lab", people: "People" };
const place = document.getElementById("view"), said = document.getElementById("said");
let leave = () => {};
let shown = 0;

function asked() {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  return { name: VIEWS.includes(name) ? name : VIEWS[0], rest: rest.map(decoded), query: new URLSearchParams(search || "") };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand: a sign of percent that stands for itself
  }
}

async function open() {
  const want = asked(), turn = ++shown;
  show(said);
  leave();
  leave = () => {};
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.view === want.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${NAMES[want.name]} · Levada`;
  try {
    const view = await import(`./view-${want.name}.js`);
    if (turn !== shown) return;
    const ended = await view.open(place, want);
    if (turn === shown) leave = ended || (() => {});
    else if (ended) ended();
  } catch (error) {
    if (turn === shown) show(place, trouble(error));
  }
  if (turn === shown) place.dataset.at = location.hash;
}

function pauseButton() {
  const button = document.getElementById("pause");
  watch((status) => {
    button.hidden = !status.crawling || !may("control");
    button.textContent = status.live?.paused ? "Resume" : "Pause";
  });
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await order("POST", button.textContent === "Pause" ? "/pause" : "/resume");
      show(said);
    } catch (error) {
      show(said, trouble(error));
    } finally {
      button.disabled = false;
    }
  });
}

// A shard that does not answer is named above every view: what is shown below is without it.
function awayBanner() {
  let words = "";
  watch((status) => {
    const away = (status.away || []).map((each) => each.message), now = away.join("\n");
    if (now === words) return;
    words = now;
    show(document.getElementById("away"), away.map((each) => el("p", { class: "note error" }, `${each}. What is shown is only a part.`)));
  });
}

// Beside the other views: how many of the latest changes were not read.
function unreadBadge() {
  watch((status, changes) => {
    const link = document.querySelector("#nav a[data-view=changes]"), marks = new ReadMarks(status.data);
    const count = link.hasAttribute("aria-current") ? 0 : changes.filter((each) => marks.isUnread(each)).length;
    const words = count ? `${count}${count === changes.length ? "+" : ""}` : "", badge = link.querySelector(".badge");
    if (words === (badge?.dataset.count || "")) return;
    badge?.remove();
    if (words) link.append(el("span", { class: "badge", "data-count": words }, words, el("span", { class: "unseen" }, " unread")));
  });
}

// The view of users and keys is for those who may see it; the name of the collection leads to the others.
async function people() {
  await showMe();
  document.querySelector('#nav a[data-view="people"]').hidden = !may("admin") || (await keepsNobody());
  const { collections } = await ask("/collections").catch(() => ({ collections: [] }));
  const here = collections.find((each) => location.pathname.startsWith(each.path));
  if (here && here.path !== "/") {
    document.querySelector(".brand").after(el("a", { class: "of-server", href: "/", title: "All collections" }, here.name));
  }
}

const keepsNobody = () => ask("/users").then(() => false, () => true);

document.getElementById("nav").append(...VIEWS.filter((name) => name !== "page").map((name) =>
  el("a", { href: `#/${name}`, "data-view": name, hidden: name === "people" }, NAMES[name])));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which view is shown, not where in it
  place.focus();
});
startTheme();
pauseButton();
unreadBadge();
awayBanner();
people();
connect((words, how) => {
  const line = document.getElementById("line");
  if (line.textContent !== words) line.textContent = words;
  line.className = `line ${how}`;
});
addEventListener("hashchange", open);
open();
