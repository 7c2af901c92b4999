"""Which tricks does the hostile corner play, and what should a crawler make of each? One host per case.

`HOSTILE_CASES` says of each what a careful crawler records: one of `reasons`, for the page itself or for what it
leads to; where `storable`, keeping the page is right too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from levada.demo import streams, traps
from levada.demo.wire import Answer, Asked, Stream, head
from levada.reasons import Reason

__all__ = ["HOSTILE_CASES", "HOSTILE_HOST", "HostileCase"]

HOSTILE_HOST = "hostile.localhost"
_HTML = ("Content-Type", "text/html; charset=utf-8")
_TURKISH = "<html lang='tr'><title>İstanbul'da şaşırtıcı gün</title><p>Ağaçlar, ışıklar, çiçekler ve gökyüzü.</p>"

Serve = Callable[[Asked], Answer | Stream]


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
    return lambda asked: streams.raw(head(200, (_HTML, *headers)), body)


def _page(body: str, content_type: str = _HTML[1], title: str = "A page") -> Serve:
    return _always(traps.page(title, body, ("Content-Type", content_type)))


def _loop(asked: Asked) -> Answer:
    return traps.redirect("/loop/b" if asked.path.endswith("a") else "/loop/a")


def _endless_redirect(asked: Asked) -> Answer:
    step = asked.path.rsplit("/", 1)[-1]
    return traps.redirect(f"/on/{int(step) + 1 if step.isascii() and step.isdigit() and len(step) < 9 else 0}")


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
    return _case(name, "/go", _always(traps.redirect(location)), Reason.ADDRESS)


_TRAPS = (
    _case(
        "calendar",
        "/calendar/2026/01",
        traps.calendar,
        Reason.CALENDAR,
        Reason.DEPTH,
        Reason.SITE_FULL,
        Reason.NEAR_DUPLICATES,
        storable=True,
    ),
    _case(
        "session",
        "/shop/1",
        traps.session,
        Reason.DUPLICATE,
        Reason.NEAR_DUPLICATES,
        Reason.SITE_FULL,
        storable=True,
    ),
    _case(
        "repeating",
        "/again/and",
        traps.repeating,
        Reason.REPEATING_PATH,
        Reason.DEPTH,
        Reason.SITE_FULL,
        storable=True,
    ),
    _case("copies", "/copy/1", traps.copies, Reason.DUPLICATE, storable=True),
    _case(
        "near-copies",
        "/near/1",
        traps.near_copies,
        Reason.NEAR_DUPLICATES,
        Reason.DEPTH,
        Reason.SITE_FULL,
        storable=True,
    ),
    _case("many-links", "/links", traps.many_links, Reason.ROBOTS, Reason.SITE_FULL, storable=True),
    _case("long-url", "/long", _page(f'<a href="/{"l" * 100_000}">long</a>'), Reason.URL_LENGTH, storable=True),
)

_LIMITS = (
    _case("gzip-bomb", "/bomb", lambda asked: streams.gzip_bomb(), Reason.DECODED_BYTES, Reason.BYTES),
    _case(
        "endless", "/endless", lambda asked: streams.endless(), Reason.BYTES, Reason.DECODED_BYTES, Reason.SECONDS
    ),
    _case("slow", "/drip", lambda asked: streams.dripping(), Reason.MIN_RATE, Reason.SECONDS),
    _case("header-flood", "/flood", lambda asked: streams.flooding_headers(), Reason.HEADER_BYTES),
    _case(
        "deep",
        "/deep",
        traps.deep,
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
    _case("to-file", "/go", _always(traps.redirect("file:///etc/passwd")), Reason.SCHEME),
    _case("redirect-loop", "/loop/a", _loop, Reason.REDIRECTS, Reason.REDIRECTED),
    _case("redirect-endless", "/on/1", _endless_redirect, Reason.REDIRECTS),
    _case("schemes", "/schemes", _page(_SCHEMES), Reason.SCHEME, storable=True),
)


def _robots_with_sitemap(asked: Asked) -> Answer:
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
        robots=lambda asked: streams.endless_text(b"User-agent: *\nDisallow: /closed/\n"),
    ),
    _case(
        "robots-redirect",
        "/page",
        _page("<p>Its robots.txt is said to be elsewhere.</p>"),
        Reason.ADDRESS,
        Reason.ROBOTS_UNREACHABLE,
        Reason.ROBOTS,
        storable=True,
        robots=_always(traps.redirect("http://169.254.169.254/robots.txt")),
    ),
    _case(
        "sitemap-bomb",
        "/sitemap.xml",
        traps.sitemap_bomb,
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
    _case("binary", "/picture.html", traps.binary, Reason.CONTENT_TYPE, Reason.EMPTY, storable=True),
    _case("too-short", "/page", _closing((("Content-Length", "10000"),), b"<p>Cut off</p>"), Reason.PROTOCOL),
    _case(
        "too-long",
        "/page",
        _closing((("Content-Length", "40"),), b"<title>Long</title><p>Longer than it says" + b" and on" * 500),
        Reason.PROTOCOL,
        storable=True,
    ),
    _case("not-modified", "/page", _always(Answer(304)), Reason.PROTOCOL, Reason.EMPTY),
    _case("not-http", "/page", lambda asked: streams.raw(b"220 mail.localhost ready\r\n"), Reason.PROTOCOL),
    _case(
        "not-gzip", "/page", _closing((("Content-Encoding", "gzip"),), b"<p>Not gzip at all</p>"), Reason.PROTOCOL
    ),
    _case("bad-chunks", "/page", _closing((("Transfer-Encoding", "chunked"),), b"zz\r\nno\r\n"), Reason.PROTOCOL),
    _case("hangs-up", "/page", lambda asked: streams.raw(), Reason.PROTOCOL, Reason.CONNECT),
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
