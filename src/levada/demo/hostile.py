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
from itertools import count

from levada.core.reasons import Reason
from levada.demo.chance import hash_text
from levada.demo.http import Answer, StreamedAnswer, WebRequest, head

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
    number = asked.path.rsplit("/", 1)[-1]
    at = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 0
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
    return Answer(200, body, (("Content-Type", "text/html; charset=utf-8"),))


def sitemap_bomb(asked: WebRequest) -> Answer:
    """Entities that name entities: a billion words when expanded."""
    entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
    body = (
        f'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY e0 "lol">{entities}]>'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>&e9;</loc></url></urlset>'
    )
    return Answer(200, body.encode(), (("Content-Type", "application/xml"),))


MAX_BYTES = 256 * 1024 * 1024
MAX_SECONDS = 120.0
_HTML = ("Content-Type", "text/html; charset=utf-8")
_MEGABYTE = 1024 * 1024


def raw(*pieces: bytes) -> StreamedAnswer:
    """Exactly these bytes, then the end of the connection."""

    async def write() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return StreamedAnswer(write)


def _bounded(pieces: Iterator[bytes], *, pause: float = 0.0) -> StreamedAnswer:
    async def write() -> AsyncIterator[bytes]:
        until = time.monotonic() + MAX_SECONDS
        sent = 0
        for piece in pieces:
            yield piece
            sent += len(piece)
            if sent > MAX_BYTES or time.monotonic() > until:
                return
            await asyncio.sleep(pause)  # even 0 lets the neighbours have their turn

    return StreamedAnswer(write)


def endless() -> StreamedAnswer:
    """A chunked page that never ends."""
    line = b"<p>And another line, and another line, and another line.</p>\n" * 256
    chunk = f"{len(line):x}\r\n".encode() + line + b"\r\n"

    def pieces() -> Iterator[bytes]:
        yield head(200, (_HTML, ("Transfer-Encoding", "chunked")))
        yield from (chunk for _ in count())

    return _bounded(pieces())


def endless_text(line: bytes) -> StreamedAnswer:
    """A plain text that never ends and starts sensibly."""

    def pieces() -> Iterator[bytes]:
        yield head(200, (("Content-Type", "text/plain"),))
        yield line
        yield from (b"# " + b"x" * 1022 + b"\n" for _ in count())

    return _bounded(pieces())


def dripping(pause: float = 1.0) -> StreamedAnswer:
    """A page that comes a byte at a time."""
    text = b"<title>Slow</title><p>" + b"slow and steady " * 64

    def pieces() -> Iterator[bytes]:
        yield head(200, (_HTML, ("Content-Length", str(len(text)))))
        yield from (text[i : i + 1] for i in range(len(text)))

    return _bounded(pieces(), pause=pause)


def flooding_headers(size: int = 10 * _MEGABYTE) -> StreamedAnswer:
    """Headers by the thousand, then a page."""

    def pieces() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
        yield from (f"X-Flood-{i}: {'f' * 1000}\r\n".encode() for i in range(size // 1000))
        yield b"Content-Length: 5\r\nConnection: close\r\n\r\nflood"

    return _bounded(pieces())


def gzip_bomb(decoded: int = 4096 * _MEGABYTE) -> StreamedAnswer:
    """A valid gzip body, a thousandth of its decoded size on the wire; the checksum is made as it goes."""

    def pieces() -> Iterator[bytes]:
        yield head(200, (_HTML, ("Content-Encoding", "gzip")))
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

    return _bounded(pieces())


HOSTILE_HOST = "hostile.localhost"
_TURKISH = "<html lang='tr'><title>İstanbul'da şaşırtıcı gün</title><p>Ağaçlar, ışıklar, çiçekler ve gökyüzü.</p>"
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
        return f"http://{self.host}{f':{port}' if port else ''}{self.path}"


def _case(
    name: str, path: str, serve: Serve, *reasons: Reason, storable: bool = False, robots: Serve | None = None
) -> HostileCase:
    return HostileCase(name, path, frozenset(reasons), storable, serve, robots)


def _always(answer: Answer) -> Serve:
    return lambda asked: answer


def _closing(headers: tuple[tuple[str, str], ...], body: bytes) -> Serve:
    """Head and body as they stand, whatever they claim of each other."""
    return lambda asked: raw(head(200, (_HTML, *headers)), body)


def _page(body: str, content_type: str = _HTML[1], title: str = "A page") -> Serve:
    return _always(page(title, body, ("Content-Type", content_type)))


def _loop(asked: WebRequest) -> Answer:
    return redirect("/loop/b" if asked.path.endswith("a") else "/loop/a")


def _endless_redirect(asked: WebRequest) -> Answer:
    step = asked.path.rsplit("/", 1)[-1]
    return redirect(f"/on/{int(step) + 1 if step.isascii() and step.isdigit() and len(step) < 9 else 0}")


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
_URLSET = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{_SCHEME_SITEMAP}</urlset>'.encode()


def _private(name: str, location: str) -> HostileCase:
    return _case(name, "/go", _always(redirect(location)), Reason.ADDRESS)


_TRAPS = (
    _case(
        "calendar",
        "/calendar/2026/01",
        calendar,
        Reason.CALENDAR,
        Reason.DEPTH,
        Reason.SITE_FULL,
        Reason.NEAR_DUPLICATES,
        storable=True,
    ),
    _case(
        "session",
        "/shop/1",
        session,
        Reason.DUPLICATE,
        Reason.NEAR_DUPLICATES,
        Reason.SITE_FULL,
        storable=True,
    ),
    _case(
        "repeating",
        "/again/and",
        repeating,
        Reason.REPEATING_PATH,
        Reason.DEPTH,
        Reason.SITE_FULL,
        storable=True,
    ),
    _case("copies", "/copy/1", copies, Reason.DUPLICATE, storable=True),
    _case(
        "near-copies",
        "/near/1",
        near_copies,
        Reason.NEAR_DUPLICATES,
        Reason.DEPTH,
        Reason.SITE_FULL,
        storable=True,
    ),
    _case("many-links", "/links", many_links, Reason.ROBOTS, Reason.SITE_FULL, storable=True),
    _case("long-url", "/long", _page(f'<a href="/{"l" * 100_000}">long</a>'), Reason.URL_LENGTH, storable=True),
)
_LIMITS = (
    _case("gzip-bomb", "/bomb", lambda asked: gzip_bomb(), Reason.DECODED_BYTES, Reason.BYTES),
    _case("endless", "/endless", lambda asked: endless(), Reason.BYTES, Reason.DECODED_BYTES, Reason.SECONDS),
    _case("slow", "/drip", lambda asked: dripping(), Reason.MIN_RATE, Reason.SECONDS),
    _case("header-flood", "/flood", lambda asked: flooding_headers(), Reason.HEADER_BYTES),
    _case(
        "deep",
        "/deep",
        deep,
        Reason.NESTING,
        Reason.PARSER_DIED,
        Reason.PARSE_SECONDS,
        Reason.PARSE_MEMORY,
        storable=True,
    ),
)
_REDIRECTIONS = (
    _private("to-metadata", "http://169.254.169.254/latest/meta-data/"),
    _private("to-loopback", "http://127.0.0.1:1/"),
    _private("to-loopback6", "http://[::1]/"),
    _private("to-private", "http://10.0.0.1/"),
    _case("to-file", "/go", _always(redirect("file:///etc/passwd")), Reason.SCHEME),
    _case("redirect-loop", "/loop/a", _loop, Reason.REDIRECTS, Reason.REDIRECTED),
    _case("redirect-endless", "/on/1", _endless_redirect, Reason.REDIRECTS),
    _case("schemes", "/schemes", _page(_SCHEMES), Reason.SCHEME, storable=True),
)


def _robots_with_sitemap(asked: WebRequest) -> Answer:
    return Answer(200, f"User-agent: *\nSitemap: http://{asked.host}{asked.port}/sitemap.xml\n".encode())


_ROBOTS = (
    _case("blocked", "/closed/area", _page("<p>robots.txt closes this.</p>"), Reason.ROBOTS),
    _case(
        "robots-500",
        "/page",
        _page("<p>Nobody may know.</p>"),
        Reason.ROBOTS_UNREACHABLE,
        robots=_always(Answer(500, b"out of order")),
    ),
    _case(
        "robots-endless",
        "/page",
        _page("<p>Behind a very long robots.txt.</p>"),
        Reason.ROBOTS_UNREACHABLE,
        Reason.ROBOTS,
        storable=True,
        robots=lambda asked: endless_text(b"User-agent: *\nDisallow: /closed/\n"),
    ),
    _case(
        "robots-redirect",
        "/page",
        _page("<p>Its robots.txt is said to be elsewhere.</p>"),
        Reason.ADDRESS,
        Reason.ROBOTS_UNREACHABLE,
        Reason.ROBOTS,
        storable=True,
        robots=_always(redirect("http://169.254.169.254/robots.txt")),
    ),
    _case(
        "sitemap-bomb",
        "/sitemap.xml",
        sitemap_bomb,
        Reason.PARSE_SECONDS,
        Reason.PARSE_MEMORY,
        Reason.PARSER_DIED,
        Reason.CONTENT_TYPE,
        Reason.PROTOCOL,
        Reason.BAD_URL,
        Reason.EMPTY,
        storable=True,
        robots=_robots_with_sitemap,
    ),
    _case(
        "sitemap-schemes",
        "/sitemap.xml",
        _always(Answer(200, _URLSET, (("Content-Type", "application/xml"),))),
        Reason.SCHEME,
        Reason.SCOPE,
        Reason.ADDRESS,
        storable=True,
        robots=_robots_with_sitemap,
    ),
    _case(
        "noindex",
        "/page",
        _always(Answer(200, _NOINDEX, (_HTML,))),
        Reason.NOINDEX,
        Reason.NOFOLLOW,
        storable=True,
    ),
)
_BROKEN = (
    _case(
        "charset-1254", "/page", _always(Answer(200, _TURKISH.encode("cp1254"), (_HTML,))), storable=True
    ),  # says utf-8
    _case(
        "charset-utf7",
        "/page",
        _page("<p>+ADw-script+AD4-alert(1)+ADw-/script+AD4-</p>", "text/html; charset=utf-7"),
        storable=True,
    ),
    _case("empty", "/empty", _always(Answer(200, b"", (_HTML,))), Reason.EMPTY),
    _case("binary", "/picture.html", binary, Reason.CONTENT_TYPE, Reason.EMPTY, storable=True),
    _case("too-short", "/page", _closing((("Content-Length", "10000"),), b"<p>Cut off</p>"), Reason.PROTOCOL),
    _case(
        "too-long",
        "/page",
        _closing((("Content-Length", "40"),), b"<title>Long</title><p>Longer than it says" + b" and on" * 500),
        Reason.PROTOCOL,
        storable=True,
    ),
    _case("not-modified", "/page", _always(Answer(304)), Reason.PROTOCOL, Reason.EMPTY),
    _case("not-http", "/page", lambda asked: raw(b"220 mail.localhost ready\r\n"), Reason.PROTOCOL),
    _case("not-gzip", "/page", _closing((("Content-Encoding", "gzip"),), b"<p>Not gzip at all</p>"), Reason.PROTOCOL),
    _case("bad-chunks", "/page", _closing((("Transfer-Encoding", "chunked"),), b"zz\r\nno\r\n"), Reason.PROTOCOL),
    _case("hangs-up", "/page", lambda asked: raw(), Reason.PROTOCOL, Reason.CONNECT),
    _case("fails", "/page", _always(Answer(500, b"<p>Out of order</p>", (_HTML,))), Reason.HTTP_5XX),
    _case(
        "busy",
        "/page",
        _always(Answer(429, b"", (("Retry-After", "3600"),))),
        Reason.RETRY_AFTER,
        Reason.HTTP_4XX,
    ),
)
HOSTILE_CASES: tuple[HostileCase, ...] = _TRAPS + _LIMITS + _REDIRECTIONS + _ROBOTS + _BROKEN


_OPEN_ROBOTS = Answer(200, b"User-agent: *\nDisallow: /closed/\n", (("Content-Type", "text/plain"),))
_BY_HOST = {case.host: case for case in HOSTILE_CASES}


def is_hostile(host: str) -> bool:
    return host == HOSTILE_HOST or host in _BY_HOST


def start_urls(port: int | None = None) -> list[str]:
    """The start page, and the front pages of the hosts that it links to: a crawl keeps to the sites it is given.

    It leaves them only where a start address redirects; so those that lead to a private address are among them.
    """
    suffix = f":{port}" if port else ""
    fronts = [f"http://{host}{suffix}/" for host in (HOSTILE_HOST, *_BY_HOST)]
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
