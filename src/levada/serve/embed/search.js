// The search box of a Levada collection, for any site:
//   <script src="https://levada.example/embed/search.js" data-key="lv_..." data-placeholder="Search"></script>
// It stands where the script stands, or in the element that data-target names. Found text is never read as HTML.
(() => {
  "use strict";
  const script = document.currentScript;
  if (!script) return;
  const { key = "", placeholder = "Search", target = "", site = "", limit = "8", label = "", theme = "auto", shortcut = "/" } = script.dataset;
  const API = new URL("../api/v1/search", script.src);
  const WAIT = 150, LEAST = 2, MOST_HIGHLIGHTS = 12;
  const WORDS = {
    en: { none: "Nothing found.", count: (n) => `${n} ${n === 1 ? "page" : "pages"} found`, busy: "Too many searches at once. Try again in a moment.", lost: "The search cannot be reached." },
    de: { none: "Nichts gefunden.", count: (n) => `${n} ${n === 1 ? "Seite" : "Seiten"} gefunden`, busy: "Zu viele Suchen auf einmal. Gleich noch einmal versuchen.", lost: "Die Suche ist nicht erreichbar." },
    tr: { none: "Sonuç yok.", count: (n) => `${n} sayfa bulundu`, busy: "Çok fazla arama yapıldı. Biraz sonra yeniden deneyin.", lost: "Aramaya ulaşılamıyor." },
    pt: { none: "Nada encontrado.", count: (n) => `${n} ${n === 1 ? "página encontrada" : "páginas encontradas"}`, busy: "Demasiadas pesquisas. Tente de novo daqui a pouco.", lost: "A pesquisa não está disponível." },
  };
  const words = WORDS[(document.documentElement.lang || "en").slice(0, 2).toLowerCase()] || WORDS.en;
  const STYLE = `
    :host { --ink: #14201b; --soft: #55645d; --paper: #fff; --rule: #c4d1ca; --tint: #e3f2eb; --main: #0b6e4f; --mark: #c9f0da;
      display: block; position: relative; color-scheme: light; font: 16px/1.45 system-ui, sans-serif; text-align: start; }
    :host([data-theme="dark"]) { --ink: #e7f0eb; --soft: #9db0a7; --paper: #17211d; --rule: #3b4d45; --tint: #1f362d; --main: #4cc795; --mark: #1f5a40; color-scheme: dark; }
    * { box-sizing: border-box; }
    input { width: 100%; font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--rule); border-radius: 10px; padding: .55em .8em; margin: 0; appearance: none; }
    input::placeholder { color: var(--soft); opacity: 1; }
    input:focus { outline: 2px solid var(--main); outline-offset: 1px; }
    .panel { position: absolute; z-index: 2147483000; inset-inline: 0; top: calc(100% + 6px); color: var(--ink); background: var(--paper); border: 1px solid var(--rule); border-radius: 12px;
      box-shadow: 0 10px 30px #0003; overflow: auto; max-height: min(28rem, 70vh); }
    .panel[hidden] { display: none; }
    ul { list-style: none; margin: 0; padding: 4px; }
    a { display: block; padding: .5em .7em; border-radius: 8px; color: inherit; text-decoration: none; cursor: pointer; }
    [aria-selected="true"] > a { background: var(--tint); outline: 1px solid var(--main); outline-offset: -1px; }
    b { display: block; color: var(--main); font-weight: 600; overflow-wrap: anywhere; }
    p { margin: .1em 0 0; font-size: .88em; overflow-wrap: anywhere; display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow: hidden; }
    small { display: block; color: var(--soft); font-size: .8em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    mark { background: var(--mark); color: inherit; border-radius: 3px; }
    .state { padding: .6em .9em; color: var(--soft); font-size: .9em; }
    .state:empty { display: none; }`;
  const make = (tag, props = {}, ...inside) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) node.setAttribute(name, value);
    node.append(...inside);
    return node;
  };

  function start() {
    const host = make("levada-search");
    const place = target && document.querySelector(target);
    if (place) place.append(host);
    else script.after(host);
    const root = host.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet(); // a style of the program, which the host page's policy allows
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    const field = make("input", { type: "search", role: "combobox", placeholder, "aria-label": label || placeholder, "aria-expanded": "false", "aria-controls": "hits",
      "aria-autocomplete": "list", autocomplete: "off", autocapitalize: "none", spellcheck: "false", maxlength: "200", enterkeyhint: "search" });
    const list = make("ul", { id: "hits", role: "listbox", "aria-label": label || placeholder });
    const state = make("div", { class: "state", role: "status", "aria-live": "polite" });
    const panel = make("div", { class: "panel", hidden: "" }, list, state);
    root.append(field, panel);

    const dark = matchMedia("(prefers-color-scheme: dark)");
    const colour = () => { host.dataset.theme = theme === "auto" ? (dark.matches ? "dark" : "light") : theme; };
    dark.addEventListener("change", colour);
    colour();

    let chosen = -1, timer = 0, asking = null, shownFor = "";
    const open = (wanted) => {
      panel.hidden = !wanted;
      field.setAttribute("aria-expanded", String(wanted));
      if (!wanted) choose(-1);
    };
    function choose(number) {
      chosen = number;
      [...list.children].forEach((each, at) => each.setAttribute("aria-selected", String(at === number)));
      const now = list.children[number];
      if (now) { field.setAttribute("aria-activedescendant", now.id); now.scrollIntoView({ block: "nearest" }); }
      else field.removeAttribute("aria-activedescendant");
    }
    function show(hits, said) {
      list.replaceChildren(...hits.map(row));
      state.textContent = said;
      choose(-1);
      open(true);
    }
    function row(hit, at) {
      const link = make("a", { tabindex: "-1" });
      if (/^https?:/.test(hit.url)) link.href = hit.url; // an address that runs a script is no link
      const snippet = make("p", {}, ...hit.snippet.slice(0, MOST_HIGHLIGHTS).map((piece) => (piece.asked ? make("mark", {}, piece.text) : piece.text)));
      const title = hit.title ? hit.title_pieces.map((piece) => (piece.asked ? make("mark", {}, piece.text) : piece.text)) : [hit.url];
      link.append(make("b", {}, ...title), snippet, make("small", {}, hit.url.replace(/^https?:\/\//, "")));
      const line = make("li", { role: "option", id: `hit-${at}`, "aria-selected": "false" }, link);
      line.addEventListener("pointermove", () => { if (chosen !== at) choose(at); });
      return line;
    }
    async function ask(text, signal) {
      const url = new URL(API);
      url.search = new URLSearchParams({ q: site ? `site:${site} ${text}` : text, limit, as_you_type: "true", ...(key ? { key } : {}) });
      const answer = await fetch(url, { signal, credentials: "omit", referrerPolicy: "strict-origin" });
      if (answer.status === 400) return { total: 0, hits: [] }; // a query that is half typed
      if (!answer.ok) throw new Error(answer.status === 429 ? words.busy : words.lost);
      return answer.json();
    }
    async function search() {
      const text = field.value.trim();
      asking?.abort();
      if (text.length < LEAST) { shownFor = ""; open(false); return; }
      if (text === shownFor) { open(true); return; }
      asking = new AbortController();
      const { signal } = asking;
      try {
        let told = await ask(text, signal);
        const whole = text.replace(/\s*\S+$/, ""); // the last word may be misspelt
        if (!told.total && whole) told = await ask(whole, signal);
        if (signal.aborted) return;
        shownFor = text;
        show(told.hits, told.total ? words.count(told.total) : words.none);
      } catch (error) {
        if (error.name === "AbortError") return;
        shownFor = "";
        show([], error instanceof TypeError ? words.lost : error.message);
      }
    }
    field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, WAIT); });
    field.addEventListener("focus", () => { if (list.children.length && field.value.trim() === shownFor) open(true); });
    field.addEventListener("keydown", (event) => {
      const count = list.children.length;
      if (event.isComposing) return;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        if (!count) return;
        event.preventDefault();
        open(true);
        const step = event.key === "ArrowDown" ? 1 : -1;
        choose(((chosen + 1 + step + count + 1) % (count + 1)) - 1);
      } else if (event.key === "Enter") {
        event.preventDefault();
        if (chosen >= 0) list.children[chosen].firstChild.click();
        else { clearTimeout(timer); shownFor = ""; search(); }
      } else if (event.key === "Escape" && !panel.hidden) {
        event.preventDefault();
        open(false);
      }
    });
    document.addEventListener("pointerdown", (event) => { if (!event.composedPath().includes(host)) open(false); });
    host.addEventListener("focusout", (event) => { if (!host.contains(event.relatedTarget)) setTimeout(() => { if (document.activeElement !== host) open(false); }, 150); });
    document.addEventListener("keydown", (event) => {
      const typing = event.composedPath()[0];
      const busy = typing instanceof HTMLElement && (typing.isContentEditable || /^(input|textarea|select)$/i.test(typing.tagName));
      if (!shortcut || event.key !== shortcut || busy || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.focus();
    });
  }

  if (target && document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
