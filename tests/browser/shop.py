"""A shop as a single-page application, of Vue and its router, with history routes and an API; and a static site.

`shop_files` writes the folder that nginx serves: one shell for every route, and JSON for the scripts.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from tests.house.tree import HOUSE

__all__ = ["LAMPS", "SHOP_BLOCK", "routes", "set_price", "shop_files", "static_files"]

LAMPS = 8
_ARCHIVE = HOUSE / "tests" / "data" / "vue.tar.xz"

SHOP_BLOCK = """
root {root};
types {{ text/html html; application/javascript js; application/json json; text/plain txt; }}
etag on;
location = /robots.txt {{ return 404; }}
location = /sitemap.xml {{ return 404; }}
location /api/ {{ try_files $uri =404; }}
location /assets/ {{ try_files $uri =404; }}
location / {{ try_files /index.html =404; }}
"""

_SHELL = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>The lamp shop</title>
<script defer src="/assets/vue.runtime.global.prod.js"></script>
<script defer src="/assets/vue-router.global.prod.js"></script>
<script defer src="/assets/app.js"></script></head>
<body><noscript>You need to enable JavaScript to run this app.</noscript><div id="app"></div></body></html>
"""

_APP = """
const { createApp, h, ref, watchEffect } = Vue;
const { createRouter, createWebHistory, RouterLink, RouterView, useRoute } = VueRouter;
const fetched = (path) => {
  const found = ref(null);
  watchEffect(async () => { found.value = await (await fetch(path())).json(); });
  return found;
};
const Front = { setup() {
  const lamps = fetched(() => '/api/lamps.json');
  const entry = (lamp) => h('li', h(RouterLink, { to: `/lamps/${lamp.id}` }, () => lamp.name));
  return () => h('main', [h('h1', 'All of our lamps'),
    h('p', 'Each is made by hand, and tested for a week before it leaves the house.'),
    h('ul', (lamps.value || []).map(entry))]);
} };
const Lamp = { setup() {
  const route = useRoute();
  const lamp = fetched(() => `/api/lamps/${route.params.id}.json`);
  return () => h('main', lamp.value === null ? 'Loading...' : [h('h1', lamp.value.name), h('p', lamp.value.about),
    h('p', { class: 'price' }, `It costs ${lamp.value.price} euros, with a bulb.`)]);
} };
const About = { setup: () => () => h('main', [h('h1', 'About the shop'),
  h('p', 'We have made lamps beside the old channel since 1931, and we repair every one that we ever sold.')]) };
const App = { setup: () => () => [h('nav', [h(RouterLink, { to: '/' }, () => 'Lamps'), ' ',
  h(RouterLink, { to: '/about' }, () => 'About')]), h(RouterView)] };
const router = createRouter({ history: createWebHistory(), routes: [{ path: '/', component: Front },
  { path: '/lamps/:id', component: Lamp }, { path: '/about', component: About }] });
createApp(App).use(router).mount('#app');
"""


def shop_files(root: Path) -> None:
    (root / "assets").mkdir(parents=True)
    (root / "api" / "lamps").mkdir(parents=True)
    with tarfile.open(_ARCHIVE) as archive:
        for member in archive.getmembers():
            if member.name.endswith(".js"):
                content = archive.extractfile(member)
                assert content is not None
                (root / "assets" / Path(member.name).name).write_bytes(content.read())
    (root / "index.html").write_text(_SHELL)
    (root / "assets" / "app.js").write_text(_APP)
    lamps = [{"id": number, "name": f"Lamp number {number}"} for number in range(LAMPS)]
    (root / "api" / "lamps.json").write_text(json.dumps(lamps))
    for number in range(LAMPS):
        set_price(root, number, 100 + number)


def set_price(root: Path, number: int, price: int) -> None:
    about = f"Lamp number {number} shines for {number + 3} hours on one charge, in a colour that nobody has named yet."
    lamp = {"name": f"Lamp number {number}", "about": about, "price": price}
    (root / "api" / "lamps" / f"{number}.json").write_text(json.dumps(lamp))


def routes() -> set[str]:
    return {"/", "/about", *(f"/lamps/{number}" for number in range(LAMPS))}


def static_files(root: Path) -> set[str]:
    """A site whose pages have all of their text, and a script that no crawl should ask for; its paths."""
    root.mkdir()
    names = [f"page-{number}.html" for number in range(6)]
    links = " ".join(f'<a href="/{name}">{name}</a>' for name in names)
    for number, name in enumerate(["index.html", *names]):
        text = f"This page, number {number}, is served with all that there is to read on it. " * 4
        (root / name).write_text(
            f"<!doctype html><title>Page {number}</title><script src='/counter.js'></script>"
            f"<main><h1>Page {number}</h1><p>{text}</p>{links}</main>"
        )
    return {"/", *(f"/{name}" for name in names)}
