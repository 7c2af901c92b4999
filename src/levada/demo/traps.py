"""Which pages look harmless, and are not? Traps for crawlers that fit in one answer each."""

from __future__ import annotations

from levada.demo.chance import hash_text
from levada.demo.wire import Answer, Asked

__all__ = [
    "binary",
    "calendar",
    "copies",
    "deep",
    "many_links",
    "missing",
    "near_copies",
    "page",
    "redirect",
    "repeating",
    "session",
    "sitemap_bomb",
]

_FILLER = (
    "<p>This text is here so that the page has a body worth keeping: it speaks of tides, of ladders, of lamps in "
    "windows, and of a dog that waits at the corner for the evening bus.</p>"
    "<p>Further down, a baker counts loaves, two children argue over the colour of rain, somebody tunes a piano, "
    "and the harbour master writes into his book that nothing worth writing down has happened since yesterday.</p>"
)


def page(title: str, body: str, *headers: tuple[str, str]) -> Answer:
    start = f'<!doctype html><html lang="en"><head><title>{title}</title></head>'
    html = f"{start}<body><h1>{title}</h1>{body}</body></html>"
    return Answer(200, html.encode(), headers or (("Content-Type", "text/html; charset=utf-8"),))


def missing() -> Answer:
    return Answer(404, b"<title>Not found</title>", (("Content-Type", "text/html"),))


def redirect(location: str) -> Answer:
    return Answer(302, b"", (("Location", location),))


def calendar(asked: Asked) -> Answer:
    """A month, with links to the next and the one before, for ever."""
    parts = asked.path.strip("/").split("/")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts[1:]):
        return missing()
    months = int(parts[1]) * 12 + int(parts[2]) - 1
    near = [f"/calendar/{at // 12}/{at % 12 + 1:02d}" for at in (months - 1, months + 1, months + 12)]
    links = " ".join(f'<a href="{path}">{path[10:]}</a>' for path in near)
    return page(f"Calendar {parts[2]}/{parts[1]}", f"<p>No events in this month.</p>{_FILLER}{links}")


def session(asked: Asked) -> Answer:
    """The same few articles, under a new session id on every page."""
    fresh = f"{hash_text(asked.path + asked.query, 3):016x}"
    links = [f'<a href="/shop/{i};jsessionid={fresh}?sid={fresh}&amp;PHPSESSID={fresh}">{i}</a>' for i in range(5)]
    article = asked.path.split(";")[0]
    return page(f"Article {article.rsplit('/', 1)[-1]}", f"{_FILLER}{' '.join(links)}")


def repeating(asked: Asked) -> Answer:
    """A relative link without its slash, so that each page is one level below the last."""
    return page(
        f"Level {asked.path.count('/')}", f'{_FILLER}<a href="{asked.path.rstrip("/")}/again/and">deeper</a>'
    )


def copies(asked: Asked) -> Answer:
    """The same bytes at every address."""
    links = " ".join(f'<a href="/copy/{i}">{i}</a>' for i in range(1, 9))
    return page("One of eight", f"{_FILLER}{links}")


def near_copies(asked: Asked) -> Answer:
    """The same text but for one number, and a link to the next."""
    number = asked.path.rsplit("/", 1)[-1]
    at = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 0
    text = _FILLER * 3
    return page("Offer of the day", f'<p>Offer {at} of very many.</p>{text}<a href="/near/{at + 1}">next</a>')


def deep(asked: Asked) -> Answer:
    return page("Deep", f"{'<div>' * 10_000}<p>The bottom.</p>{'</div>' * 10_000}")


def many_links(asked: Asked) -> Answer:
    """Twenty thousand links, all into an area that robots.txt closes: they cost nobody a fetch."""
    links = "".join(f'<a href="/closed/{i}">{i}</a> ' for i in range(20_000))
    return page("Many links", f"{_FILLER}{links}")


def binary(asked: Asked) -> Answer:
    body = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 64
    return Answer(200, body, (("Content-Type", "text/html; charset=utf-8"),))


def sitemap_bomb(asked: Asked) -> Answer:
    """Entities that name entities: a billion words for who expands them."""
    entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
    body = (
        f'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY e0 "lol">{entities}]>'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>&e9;</loc></url></urlset>'
    )
    return Answer(200, body.encode(), (("Content-Type", "application/xml"),))
