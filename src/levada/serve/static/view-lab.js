// What each source printed, beside ours: with the misses left in.

import { ask, order } from "./api.js";
import { ago, el, number, show, table, trouble } from "./dom.js";
import { lacks, needs } from "./me.js";

const LOOK = 2000;

export async function open(place) {
  const parts = el("div", { class: "grid" });
  show(place, el("h1", {}, "Lab"),
    el("p", { class: "soft" }, "Each part of Levada comes from a published piece of work. Its tables are rerun here; a figure that does not come out again stays in the table."), lacks("control"), parts);
  let timer = null;
  const look = async () => {
    const told = await ask("/lab");
    show(parts, told.parts.map((part) => one(part, look)));
    clearTimeout(timer);
    if (told.parts.some((part) => part.running)) timer = setTimeout(() => look().catch(() => {}), LOOK);
  };
  await look();
  return () => clearTimeout(timer);
}

function one(part, look) {
  const said = el("p", { class: "small", role: "status" }, part.trouble ? el("span", { class: "bad" }, part.trouble) : "");
  const run = el("button", { type: "button", class: "quiet", ...needs("control"), disabled: part.running, onclick: async () => {
    try {
      await order("POST", "/lab", { part: part.part });
      await look();
    } catch (error) {
      show(said, trouble(error));
    }
  } }, part.running ? "Running…" : part.ran_at ? "Run it again" : "Run it");
  const misses = part.claims.filter((claim) => claim.verdict === "misses").length;
  return el("section", { class: "card", id: part.part }, el("h2", {}, `${part.part}: ${part.question}`),
    el("p", { class: "soft small" }, part.ran_at
      ? `${number(part.claims.length - misses)} of ${number(part.claims.length)} printed figures come out again, ${number(misses)} miss; run ${ago(part.ran_at)}. In a terminal: ${part.command}`
      : `Not run here yet; it takes from seconds to some minutes. In a terminal: ${part.command}`),
    run, said,
    part.claims.length ? el("details", {}, el("summary", {}, "Figures"), table(
      ["figure", { name: "printed", num: true }, { name: "ours", num: true }, "verdict"],
      part.claims.map((claim) => [claim.name, number(claim.printed, 3), number(claim.measured, 3),
        el("span", { class: claim.verdict === "misses" ? "bad" : claim.verdict === "misprint" ? "warn" : "" }, claim.verdict)]))) : null);
}
