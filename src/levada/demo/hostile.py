"""Hostile corner of the bundled web: one host per attack.

Every stream ends by itself after `MAX_SECONDS` or `MAX_BYTES`, and at once when the peer is gone.

`HOSTILE_CASES` says of each what a careful crawler records: one of `reasons`, for the page itself or for what it
leads to; where `storable`, keeping the page is right too.

No case can hide another: a host that a crawler gives up on holds nothing else, and a slow one slows nobody.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import ParamSpec

from levada.core.reasons import Reason
from levada.demo.chance import hash_text
from levada.demo.http import HTML, Answer, StreamedAnswer, WebRequest, address, head

P = ParamSpec("P")
_PLAIN = ("Content-Type", "text/plain")
_XML = ("Content-Type", "application/xml")
_SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"

_FILLER = (
    "<p>This text is here so that the page has a body worth keeping: it speaks of tides, of ladders, of lamps in "
    "windows, and of a dog that waits at the corner for the evening bus.</p>"
    "<p>Further down, a baker counts loaves, two children argue over the colour of rain, somebody tunes a piano, "
    "and the harbour master writes into his book that nothing worth writing down has happened since yesterday.</p>"
)


def page(title: str, body: str, *headers: tuple[str, str]) -> Answer:
    start = f'<!doctype html><html lang="en"><head><title>{title}</title></head>'
    html = f"{start}<body><h1>{title}</h1>{body}</body></html>"
    return Answer(200, html.encode(), headers or (HTML,))


def missing() -> Answer:
    return Answer(404, b"<title>Not found</title>", (("Content-Type", "text/html"),))


def redirect(location: str) -> Answer:
    return Answer(302, b"", (("Location", location),))


def _number(asked: WebRequest, default: int) -> int:
    """The number at the end of the path."""
    number = asked.path.rsplit("/", 1)[-1]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 9 else default


def calendar(asked: WebRequest) -> Answer:
    """A month, with links to the next and the one before, for ever."""
    parts = asked.path.strip("/").split("/")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts[1:]):
        return missing()
    months = int(parts[1]) * 12 + int(parts[2]) - 1
    near = [f"/calendar/{at // 12}/{at % 12 + 1:02d}" for at in (months - 1, months + 1, months + 12)]
    links = " ".join(f'<a href="{path}">{path[10:]}</a>' for path in near)
    return page(f"Calendar {parts[2]}/{parts[1]}", f"<p>No events in this month.</p>{_FILLER}{links}")


def session(asked: WebRequest) -> Answer:
    """The same few articles, under a new session id on every page."""
    fresh = f"{hash_text(asked.path + asked.query, 3):016x}"
    links = [f'<a href="/shop/{i};jsessionid={fresh}?sid={fresh}&amp;PHPSESSID={fresh}">{i}</a>' for i in range(5)]
    article = asked.path.split(";")[0]
    return page(f"Article {article.rsplit('/', 1)[-1]}", f"{_FILLER}{' '.join(links)}")


def repeating(asked: WebRequest) -> Answer:
    """A relative link without its slash, so that each page is one level below the last."""
    return page(f"Level {asked.path.count('/')}", f'{_FILLER}<a href="{asked.path.rstrip("/")}/again/and">deeper</a>')


def copies(asked: WebRequest) -> Answer:
    """The same bytes at every address."""
    links = " ".join(f'<a href="/copy/{i}">{i}</a>' for i in range(1, 9))
    return page("One of eight", f"{_FILLER}{links}")


def near_copies(asked: WebRequest) -> Answer:
    """The same text but for one number, and a link to the next."""
    at = _number(asked, default=0)
    text = _FILLER * 3
    return page("Offer of the day", f'<p>Offer {at} of very many.</p>{text}<a href="/near/{at + 1}">next</a>')


def deep(asked: WebRequest) -> Answer:
    return page("Deep", f"{'<div>' * 10_000}<p>The bottom.</p>{'</div>' * 10_000}")


def many_links(asked: WebRequest) -> Answer:
    """Twenty thousand links, all into an area that robots.txt closes: no careful crawler fetches them."""
    links = "".join(f'<a href="/closed/{i}">{i}</a> ' for i in range(20_000))
    return page("Many links", f"{_FILLER}{links}")


def binary(asked: WebRequest) -> Answer:
    body = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 64
    return Answer(200, body, (HTML,))


def sitemap_bomb(asked: WebRequest) -> Answer:
    """Entities that name entities: a billion words when expanded."""
    entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
    body = (
        f'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY e0 "lol">{entities}]>'
        f'<urlset xmlns="{_SITEMAPS}"><url><loc>&e9;</loc></url></urlset>'
    )
    return Answer(200, body.encode(), (_XML,))


MAX_BYTES = 256 * 1024 * 1024
MAX_SECONDS = 120.0
_MEGABYTE = 1024 * 1024


def _streamed(pause: float = 0.0) -> Callable[[Callable[P, Iterator[bytes]]], Callable[P, StreamedAnswer]]:
    """Turn a generator of pieces into an answer that keeps to the bounds, with this pause after each piece."""

    def decorate(pieces: Callable[P, Iterator[bytes]]) -> Callable[P, StreamedAnswer]:
        async def write(*arguments: P.args, **options: P.kwargs) -> AsyncIterator[bytes]:
            until = time.monotonic() + MAX_SECONDS
            sent = 0
            for piece in pieces(*arguments, **options):
                yield piece
                sent += len(piece)
                if sent > MAX_BYTES or time.monotonic() > until:
                    return
                await asyncio.sleep(pause)  # even 0 lets the neighbours have their turn

        return lambda *arguments, **options: StreamedAnswer(lambda: write(*arguments, **options))

    return decorate


@_streamed()
def raw(*pieces: bytes) -> Iterator[bytes]:
    """Exactly these bytes, then the end of the connection."""
    yield from pieces


@_streamed()
def endless() -> Iterator[bytes]:
    """A chunked page that never ends."""
    line = b"<p>And another line, and another line, and another line.</p>\n" * 256
    yield head(200, (HTML, ("Transfer-Encoding", "chunked")))
    yield from repeat(f"{len(line):x}\r\n".encode() + line + b"\r\n")


@_streamed()
def endless_robots() -> Iterator[bytes]:
    """A robots.txt that never ends and starts sensibly."""
    yield head(200, (_PLAIN,))
    yield b"User-agent: *\nDisallow: /closed/\n"
    yield from repeat(b"# " + b"x" * 1022 + b"\n")


@_streamed(pause=1.0)
def dripping() -> Iterator[bytes]:
    """A page that comes a byte at a time."""
    text = b"<title>Slow</title><p>" + b"slow and steady " * 64
    yield head(200, (HTML, ("Content-Length", str(len(text)))))
    yield from (text[i : i + 1] for i in range(len(text)))


@_streamed()
def flooding_headers() -> Iterator[bytes]:
    """Ten megabytes of headers, then a page."""
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    yield from (f"X-Flood-{i}: {'f' * 1000}\r\n".encode() for i in range(10 * _MEGABYTE // 1000))
    yield b"Content-Length: 5\r\nConnection: close\r\n\r\nflood"


@_streamed()
def gzip_bomb(decoded: int = 4096 * _MEGABYTE) -> Iterator[bytes]:
    """A valid gzip body, a thousandth of its decoded size on the wire; the checksum is made as it goes."""
    yield head(200, (HTML, ("Content-Encoding", "gzip")))
    # Each block is flushed to a byte boundary and looks back at nothing, so that one can be sent many times.
    blank = b" " * _MEGABYTE
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(blank) + packer.flush(zlib.Z_FULL_FLUSH)
    yield b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    checksum = 0
    for _ in range(decoded // _MEGABYTE):
        checksum = zlib.crc32(blank, checksum)
        yield block
    size = decoded // _MEGABYTE * _MEGABYTE & 0xFFFFFFFF
    yield packer.flush(zlib.Z_FINISH) + checksum.to_bytes(4, "little") + size.to_bytes(4, "little")


HOSTILE_HOST = "hostile.localhost"
Serve = Callable[[WebRequest], Answer | StreamedAnswer]


@dataclass(frozen=True, slots=True)
class HostileCase:
    name: str
    path: str
    reasons: frozenset[Reason]
    storable: bool
    serve: Serve
    robots: Serve | None = None

    @property
    def host(self) -> str:
        return f"{self.name}.{HOSTILE_HOST}"

    def url(self, port: int | None = None) -> str:
        return address(self.host, port, self.path)


def _refused(
    name: str, path: str, reasons: str, serve: Serve, robots: Serve | None = None, *, storable: bool = False
) -> HostileCase:
    return HostileCase(name, path, frozenset(map(Reason, reasons.split())), storable, serve, robots)


_stored = partial(_refused, storable=True)


def _always(status: int, body: bytes = b"", *headers: tuple[str, str]) -> Serve:
    return lambda asked: Answer(status, body, headers)


def _closing(body: bytes, *headers: tuple[str, str]) -> Serve:
    """Head and body as they stand, whatever they claim of each other."""
    return lambda asked: raw(head(200, (HTML, *headers)), body)


def _page(body: str, content_type: tuple[str, str] = HTML) -> Serve:
    return lambda asked: page("A page", body, content_type)


def _to(location: str) -> Serve:
    return lambda asked: redirect(location)


def _loop(asked: WebRequest) -> Answer:
    return redirect("/loop/b" if asked.path.endswith("a") else "/loop/a")


def _endless_redirect(asked: WebRequest) -> Answer:
    return redirect(f"/on/{_number(asked, default=-1) + 1}")


def _robots_with_sitemap(asked: WebRequest) -> Answer:
    return Answer(200, f"User-agent: *\nSitemap: http://{asked.host}{asked.port}/sitemap.xml\n".encode())


_TURKISH = "<html lang='tr'><title>İstanbul'da şaşırtıcı gün</title><p>Ağaçlar, ışıklar, çiçekler ve gökyüzü.</p>"
_NOINDEX = (
    b'<html lang="en"><head><title>Not for search</title><meta name="robots" content="noindex, nofollow"></head>'
    b'<body><p>Read it, but do not keep it for others.</p><a href="/page/further">further</a></body></html>'
)
_SCHEMES = "".join(
    f'<a href="{url}">{url[:4]}</a> '
    for url in ("file:///etc/passwd", "ftp://ftp.localhost/x", "data:text/html,hello", "javascript:alert(1)")
)
_SCHEME_SITEMAP = "".join(
    f"<url><loc>{url}</loc></url>"
    for url in ("file:///etc/passwd", "ftp://ftp.localhost/x", "http://169.254.169.254/latest/", "http://[::1]/")
)
_URLSET = f'<urlset xmlns="{_SITEMAPS}">{_SCHEME_SITEMAP}</urlset>'.encode()
_UTF7 = "<p>+ADw-script+AD4-alert(1)+ADw-/script+AD4-</p>"
_BEHIND = "<p>Behind a very long robots.txt.</p>"
_ELSEWHERE = "<p>Its robots.txt is said to be elsewhere.</p>"
_FAR_ROBOTS = "http://169.254.169.254/robots.txt"
_ANY_TROUBLE = "parse-seconds parse-memory parser-died content-type protocol bad-url empty"
_LONGER = b"<title>Long</title><p>Longer than it says" + b" and on" * 500
_TRAPS = (
    _stored("calendar", "/calendar/2026/01", "calendar depth site-full near-duplicates", calendar),
    _stored("session", "/shop/1", "duplicate near-duplicates site-full", session),
    _stored("repeating", "/again/and", "repeating-path depth site-full", repeating),
    _stored("copies", "/copy/1", "duplicate", copies),
    _stored("near-copies", "/near/1", "near-duplicates depth site-full", near_copies),
    _stored("many-links", "/links", "robots site-full", many_links),
    _stored("long-url", "/long", "url-length", _page(f'<a href="/{"l" * 100_000}">long</a>')),
)
_LIMITS = (
    _refused("gzip-bomb", "/bomb", "decoded-bytes bytes", lambda asked: gzip_bomb()),
    _refused("endless", "/endless", "bytes decoded-bytes seconds", lambda asked: endless()),
    _refused("slow", "/drip", "min-rate seconds", lambda asked: dripping()),
    _refused("header-flood", "/flood", "header-bytes", lambda asked: flooding_headers()),
    _stored("deep", "/deep", "nesting parser-died parse-seconds parse-memory", deep),
)
_REDIRECTIONS = (
    _refused("to-metadata", "/go", "address", _to("http://169.254.169.254/latest/meta-data/")),
    _refused("to-loopback", "/go", "address", _to("http://127.0.0.1:1/")),
    _refused("to-loopback6", "/go", "address", _to("http://[::1]/")),
    _refused("to-private", "/go", "address", _to("http://10.0.0.1/")),
    _refused("to-file", "/go", "scheme", _to("file:///etc/passwd")),
    _refused("redirect-loop", "/loop/a", "redirects redirected", _loop),
    _refused("redirect-endless", "/on/1", "redirects", _endless_redirect),
    _stored("schemes", "/schemes", "scheme", _page(_SCHEMES)),
)
_ROBOTS = (
    _refused("blocked", "/closed/area", "robots", _page("<p>robots.txt closes this.</p>")),
    _refused(
        "robots-500", "/page", "robots-unreachable", _page("<p>Nobody may know.</p>"), _always(500, b"out of order")
    ),
    _stored("robots-endless", "/page", "robots-unreachable robots", _page(_BEHIND), lambda asked: endless_robots()),
    _stored("robots-redirect", "/page", "address robots-unreachable robots", _page(_ELSEWHERE), _to(_FAR_ROBOTS)),
    _stored("sitemap-bomb", "/sitemap.xml", _ANY_TROUBLE, sitemap_bomb, _robots_with_sitemap),
    _stored(
        "sitemap-schemes", "/sitemap.xml", "scheme scope address", _always(200, _URLSET, _XML), _robots_with_sitemap
    ),
    _stored("noindex", "/page", "noindex nofollow", _always(200, _NOINDEX, HTML)),
)
_BROKEN = (
    _stored("charset-1254", "/page", "", _always(200, _TURKISH.encode("cp1254"), HTML)),  # says utf-8
    _stored("charset-utf7", "/page", "", _page(_UTF7, ("Content-Type", "text/html; charset=utf-7"))),
    _refused("empty", "/empty", "empty", _always(200, b"", HTML)),
    _stored("binary", "/picture.html", "content-type empty", binary),
    _refused("too-short", "/page", "protocol", _closing(b"<p>Cut off</p>", ("Content-Length", "10000"))),
    _stored("too-long", "/page", "protocol", _closing(_LONGER, ("Content-Length", "40"))),
    _refused("not-modified", "/page", "protocol empty", _always(304)),
    _refused("not-http", "/page", "protocol", lambda asked: raw(b"220 mail.localhost ready\r\n")),
    _refused("not-gzip", "/page", "protocol", _closing(b"<p>Not gzip at all</p>", ("Content-Encoding", "gzip"))),
    _refused("bad-chunks", "/page", "protocol", _closing(b"zz\r\nno\r\n", ("Transfer-Encoding", "chunked"))),
    _refused("hangs-up", "/page", "protocol connect", lambda asked: raw()),
    _refused("fails", "/page", "http-5xx", _always(500, b"<p>Out of order</p>", HTML)),
    _refused("busy", "/page", "retry-after http-4xx", _always(429, b"", ("Retry-After", "3600"))),
)
HOSTILE_CASES: tuple[HostileCase, ...] = _TRAPS + _LIMITS + _REDIRECTIONS + _ROBOTS + _BROKEN


_OPEN_ROBOTS = Answer(200, b"User-agent: *\nDisallow: /closed/\n", (_PLAIN,))
_BY_HOST = {case.host: case for case in HOSTILE_CASES}


def is_hostile(host: str) -> bool:
    return host == HOSTILE_HOST or host in _BY_HOST


def start_urls(port: int | None = None) -> list[str]:
    """The start page, and the front pages of the hosts that it links to: a crawl keeps to the sites it is given.

    It leaves them only where a start address redirects; so those that lead to a private address are among them.
    """
    fronts = [address(host, port) for host in (HOSTILE_HOST, *_BY_HOST)]
    return fronts + [case.url(port) for case in HOSTILE_CASES if case.reasons == {Reason.ADDRESS}]


def answer_hostile(asked: WebRequest) -> Answer | StreamedAnswer:
    case = _BY_HOST.get(asked.host)
    if asked.path == "/robots.txt":
        return _OPEN_ROBOTS if case is None or case.robots is None else case.robots(asked)
    if asked.path == "/":
        return _front(case, asked)
    within = case is not None and asked.path.startswith(f"/{case.path.split('/')[1]}")
    return case.serve(asked) if case is not None and within else missing()


def _front(case: HostileCase | None, asked: WebRequest) -> Answer:
    """What a host says of itself, with a link to its case; the start page links to all."""
    if case is not None:
        return page(f"Host {case.name}", f'<p>Its case: <a href="{case.path}">{case.name}</a>.</p>')
    links = "".join(f'<li><a href="http://{host}{asked.port}/">{c.name}</a></li>' for host, c in _BY_HOST.items())
    return page("The hostile corner", f"<p>Every link leads to trouble.</p><ul>{links}</ul>")
