"""Gazette: a site whose editions all change every ninety minutes.

The front page of the gazette names the pages of all issues so far, the newest first. Pages of an issue never
change. Editions take a moment to answer, as servers elsewhere do, so an issue keeps many requests under way.
"""

from __future__ import annotations

import time
from functools import lru_cache
from html import escape

from levada.demo.chance import hash_text
from levada.demo.http import HTML, PLAIN, Answer, WebRequest, address, http_date
from levada.demo.prose import headline, story, words_of

GAZETTE_HOST = "gazete.localhost"
EDITIONS, PAGES = 16, 15
FIRST, EVERY = 2 * 3600.0, 1.5 * 3600.0  # seconds: when the first issue comes, and the next ones
_TICK = 300.0  # seconds: so often the front page shows another time
_SHOWN = 6  # issues that the front page names
_SECONDS = 0.08  # of the wall that an edition takes to answer
_BYTES = 24_000


class Gazette:
    """The gazette; its issues are counted from `began`, when the web was opened."""

    def __init__(self, seed: int, began: float) -> None:
        self._seed = seed
        self._began = began
        self._editions = [f"{number}.{GAZETTE_HOST}" for number in range(1, EDITIONS + 1)]

    def is_of(self, host: str) -> bool:
        return host == GAZETTE_HOST or host in self._editions

    def start_urls(self, port: int | None = None) -> list[str]:
        return [address(host, port) for host in (GAZETTE_HOST, *self._editions)]

    def issues(self, now: float) -> int:
        """The number of issues so far."""
        return max(0, int((now - self._began - FIRST) // EVERY) + 1)

    def answer(self, asked: WebRequest, now: float) -> Answer:
        if asked.path == "/robots.txt":
            return Answer(200, b"User-agent: *\nDisallow:\n", (PLAIN,))
        if asked.path == "/":
            return self._front(asked.port, now) if asked.host == GAZETTE_HOST else _edition(asked)
        place = self._place(asked, now)
        return Answer(404, b"<title>Not found</title>", (HTML,)) if place is None else self._page(*place)

    def _front(self, port: str, now: float) -> Answer:
        issues = range(self.issues(now), max(0, self.issues(now) - _SHOWN), -1)
        lists = "".join(f"<h2>{number}. sayı</h2><ul>{self._links(number, port)}</ul>" for number in issues)
        shown = time.strftime("%H:%M", time.gmtime(now // _TICK * _TICK))
        body = f"<p>Bugün {len(issues)} sayı çıktı. Saat {shown}.</p>{lists}"
        return _html("Gazete", body, now // _TICK * _TICK)

    def _links(self, issue: int, port: str) -> str:
        return "".join(
            f'<li><a href="http://{host}{port}/sayi-{issue}/{page}">{issue}/{page}</a></li>'
            for host in self._editions
            for page in range(1, PAGES + 1)
        )

    def _place(self, asked: WebRequest, now: float) -> tuple[str, int, int] | None:
        """Edition, issue and page, if there is such a page yet."""
        issue, _, page = asked.path.removeprefix("/sayi-").partition("/")
        if asked.host == GAZETTE_HOST or not (_is_number(issue) and _is_number(page)):
            return None
        there = 1 <= int(issue) <= self.issues(now) and 1 <= int(page) <= PAGES
        return (asked.host, int(issue), int(page)) if there else None

    def _page(self, host: str, issue: int, page: int) -> Answer:
        title, body = _written(hash_text(f"{host}/{issue}/{page}", self._seed))
        return _html(title, body, self._began + FIRST + (issue - 1) * EVERY, _SECONDS)


def is_issue(url: str) -> bool:
    """Whether this is the address of a page of an issue, which never changes."""
    return f".{GAZETTE_HOST}:" in url and "/sayi-" in url


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6 and text[0] != "0"


def _edition(asked: WebRequest) -> Answer:
    number = asked.host.partition(".")[0]
    body = f'<p>{number}. baskı. Sayılar <a href="http://{GAZETTE_HOST}{asked.port}/">gazetede</a>.</p>'
    return _html(f"Gazete, {number}. baskı", body, 0.0)


@lru_cache(maxsize=4096)
def _written(number: int) -> tuple[str, str]:
    words = words_of("tr", "news")
    told = story(words, "news", number, 1, (), "", _BYTES)
    paragraphs = "".join(f"<p>{escape(paragraph, quote=False)}</p>" for paragraph in told.paragraphs)
    return headline("tr", "news", number, 0), f"<p>{escape(told.figure)}</p>{paragraphs}"


def _html(title: str, body: str, changed: float, after: float = 0.0) -> Answer:
    text = (
        f'<!doctype html><html lang="tr"><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        f"<body><main><article><h1>{escape(title)}</h1>{body}</article></main></body></html>"
    )
    return Answer(200, text.encode(), (HTML, ("Last-Modified", http_date(changed))), after)
