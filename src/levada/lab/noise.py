"""Noisy pages: pages that are new at every visit and have changed at few of them.

Each kind carries the noise that such pages carry: dates and times, counters, tokens, rotating advertisements, lists in
another order; some have one kind of noise alone. Their content changes at visits that are known, so every version that
a reader makes of them is either right or false. Each kind has the rule that a user would write for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import msgspec

from levada.core.site_rules.visit import ReadingRule

VISITS = 200
CHANGES = 12  # of the content, in so many visits
_PRODUCT_NAMES = "Lamp Kettle Tent Bicycle Sofa Camera Drill Rucksack Carpet Speaker Blender Clock"
_NOUNS = """
    harbour bridge council garden market library river school museum station winter summer ticket ferry island road
    signal engine window kitchen letter village mountain record teacher doctor player journal ocean forest
"""
_PRODUCTS, _WORDS = _PRODUCT_NAMES.split(), _NOUNS.split()
_SLOGANS = ["Buy two!", "Only today!", "Fly south for less", "Your new bank", "Sleep better", "Learn to cook"]


class Noise:
    """What is new at one visit, whatever the content is."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance

    def count(self, least: int, most: int) -> str:
        return f"{self.chance.randint(least, most):,}"

    def token(self) -> str:
        return f"{self.chance.getrandbits(128):032x}"

    def date(self) -> str:
        day, month = self.chance.randint(1, 28), self.chance.choice(["March", "April", "May", "June"])
        return f"{day} {month} 2026, {self.clock()}"

    def clock(self) -> str:
        return f"{self.chance.randint(0, 23):02}:{self.chance.randint(0, 59):02}"

    def ago(self) -> str:
        return f"{self.chance.randint(2, 59)} {self.chance.choice(['minutes', 'hours', 'days'])} ago"

    def slogan(self) -> str:
        return f"{self.chance.choice(_SLOGANS)} From {self.count(5, 900)} EUR"


class NoisyPage(msgspec.Struct, frozen=True):
    """One page: what it answers at each visit, and when its content changes."""

    name: str
    kind: str  # the content type
    rule: ReadingRule
    bodies: tuple[bytes, ...]  # one for each visit
    changes: frozenset[int]  # visits whose content is not that of the visit before


class _Kind(NamedTuple):
    rule: ReadingRule
    render: Callable[[Noise, int], str]  # of a version of the content
    type: str = "text/html; charset=utf-8"


def noisy_pages(seed: int = 1, visits: int = VISITS, changes: int = CHANGES) -> Iterator[NoisyPage]:
    """A page of each kind; the same for the same seed."""
    for name, kind in _KINDS.items():
        chance = _chance(seed, name)
        changed = frozenset(chance.sample(range(1, visits), changes))
        versions = [sum(at <= visit for at in changed) for visit in range(visits)]
        bodies = [kind.render(Noise(chance), version) for version in versions]
        yield NoisyPage(name, kind.type, kind.rule, tuple(body.encode() for body in bodies), changed)


def _chance(*of: object) -> Random:
    return Random(" ".join(map(str, of)))  # noqa: S311 -- the same pages for the same seed


def _prose(name: str, version: int, paragraphs: int = 6) -> str:
    """Paragraphs of which each version rewrites one sentence."""
    written = []
    for number in range(paragraphs):
        edits = sum(_chance(name, each).randrange(paragraphs) == number for each in range(1, version + 1))
        chance = _chance(name, number)
        words = [chance.choice(_WORDS) for _ in range(40)]
        words[7] = f"{chance.choice(_WORDS)}{'x' * edits}"
        written.append(f"<p>The {' '.join(words)} is what they say.</p>")
    return "".join(written)


def _page(noise: Noise, title: str, main: str, aside: str = "") -> str:
    return f"""<!doctype html><html><head><title>{title}</title><meta name="csrf-token" content="{noise.token()}">
<script nonce="{noise.token()[:16]}" src="/app.js?v={noise.token()[:8]}"></script></head><body>
<header><nav><a href="/">Home</a> <a href="/news">News</a> <a href="/cart">Cart ({noise.count(0, 9)})</a></nav></header>
<main>{main}<form><input type="hidden" name="token" value="{noise.token()}"></form></main>
<aside>{aside}<div class="ad">{noise.slogan()}</div></aside>
<footer>© 2026 The owners. Page generated in 0.{noise.count(10, 99)} s at {noise.clock()}.</footer></body></html>"""


def _still(noise: Noise, version: int) -> str:
    """Noise that nobody sees: tokens and nonces in the markup."""
    script = f'<script nonce="{noise.token()}">t("{noise.token()}")</script>'
    head = f'<meta name="csrf-token" content="{noise.token()}">{script}'
    form = f'<form><input type="hidden" name="token" value="{noise.token()}"></form>'
    main = f"<main><h1>Charter</h1>{_prose('charter', version)}{form}</main>"
    return f"<!doctype html><html><head><title>Charter</title>{head}</head><body>{main}</body></html>"


def _blog(noise: Noise, version: int) -> str:
    """Noise around the text alone."""
    return _page(noise, "Diary", f"<article><h1>Diary</h1>{_prose('diary', version)}</article>")


def _with_one(noise_of: Callable[[Noise], str]) -> Callable[[Noise, int], str]:
    """A text with one kind of noise in its midst, and none beside it."""

    def render(noise: Noise, version: int) -> str:
        text = f"<h1>Letter</h1>{_prose('letter', version, 3)}{noise_of(noise)}{_prose('answer', 0, 3)}"
        return f"<!doctype html><html><head><title>Letter</title></head><body><main>{text}</main></body></html>"

    return render


def _article(noise: Noise, version: int) -> str:
    meta = f'<p class="meta">Updated {noise.date()} · {noise.ago()} · {noise.count(900, 90_000)} views</p>'
    ad = f'<div class="ad">Advertisement: {noise.slogan()}</div>'
    related = "".join(f"<li><a href=/{word}>More about the {word}</a></li>" for word in noise.chance.sample(_WORDS, 4))
    text = _prose("article", version)
    return _page(
        noise, "The harbour", f"<article><h1>The harbour</h1>{meta}{ad}{text}</article>", f"<ul>{related}</ul>"
    )


def _product(noise: Noise, version: int) -> str:
    stock = f'<p class="stock">{"In stock" if version % 3 else "Sold out"}</p>'
    price = f'<p class="price">{120 + 7 * version},00 EUR</p>{stock}'
    left = f"<p>Order within {noise.count(1, 9)} h {noise.count(1, 59)} min</p>"
    urgency = f"<p>{noise.count(2, 40)} people are looking at this</p>{left}"
    others = "".join(f"<li>{each} {noise.count(5, 500)} EUR</li>" for each in noise.chance.sample(_PRODUCTS, 3))
    return _page(noise, "Lamp", f"<h1>Lamp</h1>{price}{urgency}{_prose('lamp', 0, 2)}<ul class=others>{others}</ul>")


def _thread(noise: Noise, version: int) -> str:
    posts = "".join(
        f"<article><h3>user{number % 5}</h3><p class=meta>{noise.ago()} · {noise.count(1, 9_000)} points</p>"
        f"{_prose(f'post {number}', 0, 1)}</article>"
        for number in range(4 + version)
    )
    return _page(noise, "How to?", f"<h1>How to?</h1>{posts}<p>{noise.count(20, 900)} users online</p>")


def _status(noise: Noise, version: int) -> str:
    states = ["Operational" if _chance(version, name).random() > 0.4 else "Degraded" for name in _PRODUCTS]
    states[version % len(states)] = f"Under maintenance {'again ' * (version // len(states))}".strip()
    rows = "".join(
        f"<tr><td>{name}</td><td>{state}</td><td>{noise.count(20, 400)} ms</td><td>99.{noise.count(10, 99)}%</td></tr>"
        for name, state in zip(_PRODUCTS, states, strict=True)
    )
    return _page(noise, "Status", f"<h1>Status</h1><p>As of {noise.clock()} UTC</p><table>{rows}</table>")


def _manual(noise: Noise, version: int) -> str:
    build = f"<p>Build {noise.token()[:10]} of {noise.date()}</p>"
    return _page(noise, "Manual", f"<h1>Manual</h1>{_prose('manual', version)}{build}")


def _index(noise: Noise, version: int) -> str:
    titles = [
        f"News of the {_WORDS[(number * 7) % len(_WORDS)]} number {'i' * number}"
        for number in range(version, version + 12)
    ]
    noise.chance.shuffle(titles)
    again = noise.chance.sample(titles, 3)
    items = "".join(f"<li><a href=/{len(title)}>{title}</a></li>" for title in [*titles, *again])
    return _page(noise, "Index", f"<h1>What is new</h1><ul>{items}</ul>")


def _event(noise: Noise, version: int) -> str:
    where = f"<p>At the {_WORDS[version % len(_WORDS)]} hall, doors open in the evening</p>"
    count = (
        f"<p>Starts in {noise.count(1, 9)} days {noise.count(1, 23)} hours</p><p>{noise.count(1, 400)} seats left</p>"
    )
    return _page(noise, "Concert", f"<h1>Concert</h1>{where}{count}{_prose('concert', 0, 3)}")


def _wiki(noise: Noise, version: int) -> str:
    quote = f'<blockquote id="quote">{" ".join(noise.chance.choices(_WORDS, k=12))}</blockquote>'
    viewed = f"<p>This page has been viewed {noise.count(1_000, 99_000)} times. Session {noise.token()}</p>"
    return _page(noise, "River", f"<h1>River</h1>{quote}{_prose('river', version)}{viewed}")


def _timetable(noise: Noise, version: int) -> str:
    rows = "".join(
        f"<tr><td>Line {name}</td><td>platform {'ABCDEFGH'[(version + place) % 8]}{'+' * (version // 8)}</td>"
        f"<td>in {noise.count(1, 59)} min</td></tr>"
        for place, name in enumerate(_WORDS[:8])
    )
    return _page(noise, "Departures", f"<h1>Departures</h1><p>{noise.clock()}</p><table>{rows}</table>")


def _api(noise: Noise, version: int) -> str:
    items: list[dict[str, Any]] = [
        {"name": name, "price": 100 + place + version, "views": noise.chance.randint(1, 9_999)}
        for place, name in enumerate(_PRODUCTS)
    ]
    return json.dumps({"generated_at": noise.date(), "request_id": noise.token(), "items": items})


def _rule(select: tuple[str, ...] = (), remove: tuple[str, ...] = (), ignore: tuple[str, ...] = ()) -> ReadingRule:
    return ReadingRule(select, remove, ignore)


_KINDS = {
    "still": _Kind(_rule(), _still),
    "date": _Kind(_rule(ignore=("dates",)), _with_one(lambda noise: f"<p>Updated {noise.date()}</p>")),
    "age": _Kind(_rule(ignore=("dates",)), _with_one(lambda noise: f"<p>Written {noise.ago()}</p>")),
    "counter": _Kind(_rule(ignore=("views",)), _with_one(lambda noise: f"<p>{noise.count(900, 90_000)} views</p>")),
    "token": _Kind(_rule(ignore=("Session",)), _with_one(lambda noise: f"<p>Session {noise.token()}</p>")),
    "banner": _Kind(_rule(remove=(".ad",)), _with_one(lambda noise: f'<div class="ad">{noise.slogan()}</div>')),
    "blog": _Kind(_rule(select=("article",)), _blog),
    "article": _Kind(
        _rule(remove=(".ad", "aside", "header", "footer"), ignore=("dates", r"re:[\d,]+ views")), _article
    ),
    "product": _Kind(_rule(select=(".price", ".stock")), _product),
    "thread": _Kind(_rule(select=("article",), ignore=("dates", r"re:[\d,]+ points")), _thread),
    "status": _Kind(_rule(select=("table",), ignore=("numbers",)), _status),
    "manual": _Kind(_rule(select=("main",), ignore=("dates", "re:Build [0-9a-f]+")), _manual),
    "index": _Kind(_rule(select=("main li",), ignore=("order", "repeats")), _index),
    "event": _Kind(_rule(select=("main",), ignore=("Starts in", "seats left")), _event),
    "wiki": _Kind(_rule(select=("main",), remove=("#quote",), ignore=("This page has been viewed",)), _wiki),
    "timetable": _Kind(_rule(select=("xpath://main//tr/td[position() < 3]",)), _timetable),
    "api": _Kind(
        _rule(remove=("json:$.generated_at", "json:$.request_id", "json:$.items[*].views")), _api, "application/json"
    ),
}
