// A button that deletes a page or a site for good, after it has said how much that is and was confirmed. `said` is
// where it tells what came of it.

import { order } from "./api.js";
import { el, number } from "./dom.js";
import { needs } from "./me.js";

const amount = (report) => `${number(report.pages)} ${report.pages === 1 ? "page" : "pages"} with ${number(report.versions)} ${report.versions === 1 ? "version" : "versions"}`;

export function forgetButton(asked, name, said) {
  const button = el("button", { type: "button", class: "quiet", ...needs("admin") }, "Forget…");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const preview = await order("POST", "/forget", { ...asked, dry_run: true });
      if (!confirm(`Delete ${amount(preview)} of ${name} for good? It does not come back by links.`)) return;
      said.textContent = "Deleting, and writing the files anew …";
      const done = await order("POST", "/forget", asked);
      said.textContent = `Forgot ${amount(done)}.${done.waiting ? ` ${done.waiting}` : ""}`;
      document.getElementById("view").replaceChildren(el("h1", {}, "Forgotten"), el("p", {}, said)); // what was shown is no more
    } catch (error) {
      said.textContent = error.message;
    } finally {
      button.disabled = false;
    }
  });
  return button;
}
