"""Noise and edits put into real articles, to count false versions and missed edits.

The articles are those of `levada.lab.reading`, from the held-back halves. Twelve kinds of noise are put between the
paragraphs that people judged to be the text: each article is read twice, with another figure, advertisement or time
each time, so a version is false. The element around the noise is one that says what it is in a third of the articles,
and a bare `p` or `div` in the others; its words are English, German, French, Spanish, Russian or Turkish. For the edits
the same articles are changed as their authors change them, so an equal text is a missed edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from random import Random
from typing import NamedTuple

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from levada.core.records import RawPage
from levada.lab.reading import Corpus, Judged
from levada.pages.change import text_part
from levada.pages.charset import decode
from levada.pages.parse import parse_page

ARTICLES = 60
EDITS = 200
_LEAST_PARAGRAPHS = 4
_LEAST_LETTERS = 80  # of a paragraph
Compared = Callable[[bytes], object]


class InjectionScore(msgspec.Struct, frozen=True):
    """What one reader made of one kind of noise, or of one kind of edit."""

    kind: str
    is_edit: bool
    reader: str
    version: str
    pages: int
    wrong: int  # false versions for noise, missed edits


class _Chance(Random):
    def number(self, least: int, most: int, mark: str = ",") -> str:
        return f"{self.randint(least, most):,}".replace(",", mark)

    def clock(self, *, seconds: bool) -> str:
        return f"{self.randint(0, 23):02}:{self.randint(0, 59):02}" + (f":{self.randint(0, 59):02}" if seconds else "")


_Written = Callable[[_Chance], str]


def _sign(chance: _Chance) -> str:
    return chance.choice("+-")


_PRODUCT_NAMES = "lamps kettles tents bicycles sofas cameras drills rucksacks carpets speakers blenders clocks"
_TOPIC_NAMES = "harbour bridge council garden market library school museum ferry island signal village ocean forest"
_PRODUCTS, _TOPICS = _PRODUCT_NAMES.split(), _TOPIC_NAMES.split()
_SKY = ("sunny", "cloudy", "light rain", "clear", "partly cloudy", "snow showers")


def _links(chance: _Chance, count: int) -> str:
    said = ("What the {} means for the town", "Five things to know about the {}", "Why the {} may close", "The new {}")
    return "".join(f'<li><a href="/{chance.random()}">{chance.choice(said).format(topic)}</a></li>'
                   for topic in chance.sample(_TOPICS, count))  # fmt: skip


# By kind: the class that says what it is, and ways in which sites write it.
_NOISE: Mapping[str, tuple[str, Sequence[_Written]]] = {
    "views": (
        "views",
        (
            lambda c: f"{c.number(900, 90_000)} views",
            lambda c: f"Views: {c.number(900, 90_000)}",
            lambda c: f"{c.number(900, 90_000, '.')} Aufrufe",
            lambda c: f"{c.number(900, 90_000, ' ')} vues",
            lambda c: f"Просмотров: {c.randint(900, 90_000)}",
            lambda c: f"This page has been viewed {c.number(900, 90_000)} times.",
        ),
    ),
    "age": (
        "timeago",
        (
            lambda c: f"{c.randint(2, 59)} minutes ago",
            lambda c: f"Updated {c.randint(2, 23)} hours ago",
            lambda c: f"vor {c.randint(2, 59)} Minuten",
            lambda c: f"il y a {c.randint(2, 23)} heures",
            lambda c: f"hace {c.randint(2, 59)} minutos",
            lambda c: f"{c.randint(2, 59)} dakika önce",
        ),
    ),
    "comments": (
        "comment-count",
        (
            lambda c: f"{c.randint(2, 900)} comments",
            lambda c: f'<a href="#comments">Comments ({c.randint(2, 900)})</a>',
            lambda c: f"{c.randint(2, 900)} Kommentare",
            lambda c: f"{c.randint(2, 900)} commentaires",
            lambda c: f"{c.randint(2, 900)} comentarios",
            lambda c: f"{c.randint(2, 900)} likes · {c.randint(2, 900)} shares",
        ),
    ),
    "advert": (
        "ad",
        (
            lambda c: f"Advertisement: buy two {c.choice(_PRODUCTS)} from {c.randint(5, 900)} EUR",
            lambda c: f"Sponsored · {c.choice(_PRODUCTS).title()} for less than {c.randint(5, 900)} EUR",
            lambda c: f"Anzeige: {c.choice(_PRODUCTS).title()} ab {c.randint(5, 900)} EUR",
            lambda c: f'<a href="/{c.random()}">Publicité – {c.choice(_PRODUCTS)} à {c.randint(5, 900)} EUR</a>',
            lambda c: f"<p>ADVERTISEMENT</p><p>The best {c.choice(_PRODUCTS)} of {c.randint(5, 900)} makers</p>",
            lambda c: f'<a href="/{c.random()}">Only today: {c.choice(_PRODUCTS)} from {c.randint(5, 900)} EUR</a>',
        ),
    ),
    "related": (
        "related",
        (
            lambda c: f"<h4>Related articles</h4><ul>{_links(c, 4)}</ul>",
            lambda c: f"<ul>{_links(c, 5)}</ul>",
            lambda c: f"<strong>More on this:</strong><ul>{_links(c, 3)}</ul>",
            lambda c: f'Read also: <a href="/{c.random()}">The {c.choice(_TOPICS)} and its {c.choice(_TOPICS)}</a>',
            lambda c: f"<h3>Lesen Sie auch</h3><ul>{_links(c, 4)}</ul>",
            lambda c: f"<p>You may also like</p><ul>{_links(c, 4)}</ul>",
        ),
    ),
    "clock": (
        "clock",
        (
            lambda c: f"{c.clock(seconds=True)}",
            lambda c: f"Local time: {c.clock(seconds=False)}",
            lambda c: f"It is now {c.clock(seconds=True)} UTC",
            lambda c: f"Thursday, {c.randint(1, 28)} May 2026, {c.clock(seconds=True)}",
            lambda c: f"Uhrzeit: {c.clock(seconds=False)}",
            lambda c: f"Page generated in 0.{c.randint(100, 999)} seconds at {c.clock(seconds=True)}",
        ),
    ),
    "visitors": (
        "visitor-counter",
        (
            lambda c: f"You are visitor number {c.number(9_000, 900_000)}",
            lambda c: f"Visitors: {c.number(9_000, 900_000)}",
            lambda c: f"{c.randint(9_000, 900_000)} Besucher",
            lambda c: f"{c.number(9_000, 900_000)} visitors today",
            lambda c: f"Visitas: {c.number(9_000, 900_000, '.')}",
            lambda c: f"{c.number(2, 900)} users online",
        ),
    ),
    "token": (
        "session",
        (
            lambda c: f"Session {c.getrandbits(128):032x}",
            lambda c: f"Request ID: {c.getrandbits(64):016x}",
            lambda c: f"Ray ID: {c.getrandbits(64):016x}",
            lambda c: f"trace-id {c.getrandbits(128):032x}",
            lambda c: f"Token: {c.getrandbits(100):x}",
            lambda c: f"Session ID: {c.getrandbits(128):032X}",
        ),
    ),
    "reading now": (
        "live-readers",
        (
            lambda c: f"{c.number(2, 900)} people are reading this now",
            lambda c: f"{c.number(2, 900)} reading now",
            lambda c: f"Reading now: {c.number(2, 900)}",
            lambda c: f"{c.number(2, 900)} people are viewing this page",
            lambda c: f"{c.number(2, 900)} Leser gerade online",
            lambda c: f"{c.number(2, 900)} personnes lisent cet article",
        ),
    ),
    "cookies": (
        "cookie-notice",
        (
            lambda c: c.choice(("We use cookies to improve your experience. Accept all or manage preferences.", "")),
            lambda c: c.choice(("This website uses cookies. By continuing you agree to our cookie policy.", "")),
            lambda c: c.choice(("Wir verwenden Cookies. Mit der Nutzung stimmen Sie unserer Richtlinie zu.", "")),
            lambda c: c.choice(("Nous utilisons des cookies pour améliorer votre expérience. Tout accepter.", "")),
            lambda c: c.choice(("Utilizamos cookies propias y de terceros. Aceptar o rechazar.", "")),
            lambda c: c.choice(("Bu site çerez kullanır. Kabul et veya ayarları değiştir.", "")),
        ),
    ),
    "temperature": (
        "weather",
        (
            lambda c: f"Weather: Berlin {c.randint(-5, 35)} °C, {c.choice(_SKY)}",
            lambda c: f"London {c.randint(-5, 35)}°C {c.choice(_SKY)}",
            lambda c: f"Wetter: Köln {c.randint(-5, 35)} °C",
            lambda c: f"Météo : Paris {c.randint(-5, 35)} °C",
            lambda c: f"{c.choice(_SKY).capitalize()}, {c.randint(20, 95)}°F in Boston",
            lambda c: f"Hava durumu: İzmir {c.randint(-5, 35)}°",
        ),
    ),
    "stocks": (
        "ticker",
        (
            lambda c: f"DAX {c.number(15_000, 19_000)}.{c.randint(10, 99)} {_sign(c)}0.{c.randint(10, 99)}%",
            lambda c: f"S&amp;P 500 {c.number(4_000, 6_000)}.{c.randint(10, 99)} {_sign(c)}{c.randint(1, 40)}.25",
            lambda c: f"EUR/USD 1.{c.randint(1000, 1999)} ({_sign(c)}0.{c.randint(10, 99)}%)",
            lambda c: f"DAX {c.number(15_000, 19_000, '.')},{c.randint(10, 99)} {_sign(c)}0,{c.randint(10, 99)} %",
            lambda c: f"ACME {c.randint(100, 300)}.{c.randint(10, 99)} ▲ 0.{c.randint(10, 99)}%",
            lambda c: f"Nikkei 225: {c.number(30_000, 39_000)}.{c.randint(10, 99)} ({_sign(c)}1.{c.randint(10, 99)}%)",
        ),
    ),
}  # fmt: skip
NOISE_KINDS = tuple(_NOISE)


def _judged(nodes: Sequence[LexborNode], judged: Judged) -> list[LexborNode]:
    """The longer paragraphs that are in the text, or that are the only ones with a piece of it."""
    texts = [" ".join(node.text().split()) for node in nodes]
    if judged.text:
        whole = " ".join(judged.text.split())
        inside = {at for at, text in enumerate(texts) if text in whole}
    else:
        places = [[at for at, text in enumerate(texts) if " ".join(piece.split()) in text] for piece in judged.inside]
        inside = {found[0] for found in places if len(found) == 1}
    return [node for at, node in enumerate(nodes) if at in inside and len(texts[at]) >= _LEAST_LETTERS]


class Article(NamedTuple):
    """A real page, and the paragraphs of it that are text."""

    judged: Judged
    html: str

    def paragraphs(self) -> tuple[LexborHTMLParser, list[LexborNode]]:
        tree = LexborHTMLParser(self.html)
        return tree, _judged(tree.css("p"), self.judged)

    def chance(self, *of: object) -> _Chance:
        return _Chance(" ".join(map(str, (self.judged.name, *of))))

    def with_noise(self, kind: str, place: int, visit: int) -> bytes:
        """The page at one visit, with noise after one of its paragraphs."""
        name, ways = _NOISE[kind]
        around = self.chance(kind)
        way = ways[(place + around.randrange(len(ways))) % len(ways)]
        tree, nodes = self.paragraphs()
        written = way(self.chance(kind, visit))
        if place % 3 == 0:
            written = f'<div class="{name}">{written}</div>'
        elif written:
            tag = "div" if place % 3 == 1 or "<" in written else "p"
            written = f"<{tag}>{written}</{tag}>"
        if written:
            _put_after(nodes[around.randrange(len(nodes) - 1)], written)
        return (tree.html or "").encode()

    def edited(self, edit: str, place: int) -> tuple[bytes, bytes]:
        """The page before and after an edit."""
        pages: list[bytes] = []
        for is_after in (False, True):
            tree, nodes = self.paragraphs()
            _EDITS[edit](nodes, self.chance(edit, place), is_after)
            pages.append((tree.html or "").encode())
        return pages[0], pages[1]


def _put_after(node: LexborNode, written: str) -> None:
    fragment = LexborHTMLParser(f"<body>{written}</body>").body
    for each in reversed(list(fragment.iter()) if fragment is not None else []):
        node.insert_after(each)


_Edit = Callable[[list[LexborNode], _Chance, bool], None]


def _replaced(node: LexborNode, text: str) -> None:
    """Another text in an element, and links and the like in it gone."""
    for child in list(node.iter(include_text=True)):
        child.decompose(recursive=True)
    node.insert_child(text)


def _words(nodes: list[LexborNode], chance: _Chance, is_after: bool) -> None:
    node = chance.choice(nodes)
    words = node.text().split()
    at = chance.randrange(len(words))
    if is_after:
        words[at] = "otherwise" if words[at] != "otherwise" else "elsewhere"
    _replaced(node, " ".join(words))


def _number(nodes: list[LexborNode], chance: _Chance, is_after: bool) -> None:
    node, years = chance.choice(nodes), chance.randint(2, 90)
    _replaced(node, f"{' '.join(node.text().split())} This took {years + is_after} of 100 votes.")


def _line(written: Callable[[int], str], least: int = 1, most: int = 90) -> _Edit:
    """A figure in a line of its own, after a paragraph."""

    def edit(nodes: list[LexborNode], chance: _Chance, is_after: bool) -> None:
        node, figure = chance.choice(nodes[:-1]), chance.randint(least, most)
        _put_after(node, written(figure + is_after))

    return edit


def _removed(nodes: list[LexborNode], chance: _Chance, is_after: bool) -> None:
    node = chance.choice(nodes)
    if is_after:
        node.decompose()


def _added(nodes: list[LexborNode], chance: _Chance, is_after: bool) -> None:
    node = chance.choice(nodes[:-1])
    if is_after:
        _put_after(node, f"<p>The {chance.choice(_TOPICS)} was opened again on Monday, the mayor said.</p>")


def _swapped(nodes: list[LexborNode], chance: _Chance, is_after: bool) -> None:
    at = chance.randrange(len(nodes) - 1)
    one, other = " ".join(nodes[at].text().split()), " ".join(nodes[at + 1].text().split())
    _replaced(nodes[at], other if is_after else one)
    _replaced(nodes[at + 1], one if is_after else other)


_EDITS: Mapping[str, _Edit] = {
    "a word": _words,
    "a number in a sentence": _number,
    "a price": _line(lambda figure: f"<p>Price: {figure},50 EUR</p>"),
    "a score": _line(lambda figure: f"<p>Final score: {figure}:2</p>"),
    "a release": _line(lambda figure: f"<p>The current version is 3.{figure}.1.</p>"),
    "a date": _line(lambda figure: f"<p>The meeting is on {figure % 28 + 1} May 2026 at 14:00.</p>"),
    "a paragraph added": _added,
    "a paragraph removed": _removed,
    "an item of a list": _line(
        lambda figure: f"<ul><li>200 g of flour, two eggs</li><li>{figure} g of sugar</li><li>a pinch of salt</li></ul>"
    ),
    "two paragraphs swapped": _swapped,
}
EDIT_KINDS = tuple(_EDITS)


def articles_of(corpora: Sequence[Corpus], most: int = ARTICLES, half: str = "held back") -> list[Article]:
    """So many articles with enough judged paragraphs, in turn from each corpus."""
    found: list[list[Article]] = [[] for _ in corpora]
    for own, corpus in zip(found, corpora, strict=True):
        for judged in corpus.pages:
            if judged.half != half or len(own) >= most:
                continue
            article = Article(judged, decode(judged.read(), "text/html").utf8.decode())
            if len(article.paragraphs()[1]) >= _LEAST_PARAGRAPHS:
                own.append(article)
    mixed = [own[at] for at in range(most) for own in found if at < len(own)]
    return mixed[:most]


def by_levada(body: bytes) -> object:
    return text_part(parse_page(RawPage("http://article.example/", body, "text/html; charset=utf-8")).text_digest)


def comparing_readers() -> dict[str, tuple[str, Compared]]:
    """By name the version of each reader that is installed, and what it compares."""
    readers: dict[str, tuple[str, Compared]] = {"levada": (version("levada"), by_levada)}
    try:
        from inscriptis import get_text

        # As changedetection.io compares by default: the whole page, without white space.
        readers["changedetection"] = (version("inscriptis"), lambda body: "".join(get_text(body.decode()).split()))
    except (ImportError, PackageNotFoundError):
        pass
    return readers


def false_versions(articles: Sequence[Article], kind: str, compared: Compared) -> Iterator[Article]:
    """The articles that seem changed, though only the noise is another."""
    for place, article in enumerate(articles):
        if compared(article.with_noise(kind, place, 1)) != compared(article.with_noise(kind, place, 2)):
            yield article


def missed_edits(articles: Sequence[Article], edit: str, compared: Compared) -> Iterator[Article]:
    """The articles that seem the same, though this edit was made."""
    for place in range(EDITS // len(_EDITS)):
        article = articles[(place * len(_EDITS) + EDIT_KINDS.index(edit)) % len(articles)]
        before, after = article.edited(edit, place)
        if compared(before) == compared(after):
            yield article


def scores(articles: Sequence[Article], kind: str) -> Iterator[InjectionScore]:
    """What each installed reader makes of a kind of noise or of edits."""
    is_edit = kind in EDIT_KINDS
    for name, (release, compared) in comparing_readers().items():
        found = missed_edits(articles, kind, compared) if is_edit else false_versions(articles, kind, compared)
        pages = EDITS // len(_EDITS) if is_edit else len(articles)
        yield InjectionScore(kind, is_edit, name, release, pages, sum(1 for _ in found))
