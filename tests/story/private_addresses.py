"""A web whose links, redirects and names lead to addresses that are not public.

One server on loopback is the guard's only exception; all that its pages name is a canary's port on this machine, in
every spelling and by every way that a page, a header or a listing can lead somewhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.fetch.servers import Answer, Exchange, answer
from tests.fetch.test_guard import SPELLINGS

__all__ = ["FORBIDDEN_SCHEMES", "GOOD", "REDIRECTS", "doors", "spelled"]

GOOD = 12  # pages that mean no harm
HTML = "Content-Type: text/html; charset=utf-8"
XML = "Content-Type: application/xml"

FORBIDDEN_SCHEMES = (
    "file:///etc/passwd",
    "FILE:///etc/hostname",
    "file://127.0.0.1/etc/passwd",
    "data:text/html,<a href='http://127.0.0.1:{canary}/data'>x</a>",
    "ftp://127.0.0.1:{canary}/x",
    "gopher://127.0.0.1:{canary}/_GET%20/",
    "dict://127.0.0.1:{canary}/x",
    "ws://127.0.0.1:{canary}/x",
    "ldap://127.0.0.1:{canary}/x",
    "view-source:http://127.0.0.1:{canary}/x",
    "blob:http://127.0.0.1:{canary}/x",
    "jar:http://127.0.0.1:{canary}/x!/",
    "javascript:location='http://127.0.0.1:{canary}/js'",
)

# Each is a path of the maze, and what it answers with: status and Location.
REDIRECTS = {
    "/to/301": ("301 Moved Permanently", "http://127.0.0.1:{canary}/301"),
    "/to/302": ("302 Found", "http://127.0.0.1:{canary}/302"),
    "/to/303": ("303 See Other", "http://127.0.0.1:{canary}/303"),
    "/to/307": ("307 Temporary Redirect", "http://127.0.0.1:{canary}/307"),
    "/to/308": ("308 Permanent Redirect", "http://127.0.0.1:{canary}/308"),
    "/to/protocol-relative": ("302 Found", "//127.0.0.1:{canary}/protocol-relative"),
    "/to/relative": ("302 Found", "step/one"),
    "/to/step/one": ("302 Found", "../../to/step/two"),
    "/to/step/two": ("302 Found", "http://127.0.0.1:{canary}/steps"),
    "/to/upper-case": ("302 Found", "HTTP://LOCALHOST:{canary}/upper-case"),
    "/to/blanks": ("302 Found", " \t http://127.0.0.1:{canary}/blanks \t "),
    "/to/tab-inside": ("302 Found", "ht\ttp://127.0.0.1:{canary}/tab-inside"),
    "/to/one-slash": ("302 Found", "http:/\\127.0.0.1:{canary}/one-slash"),
    "/to/backslashes": ("302 Found", "http:\\\\127.0.0.1:{canary}\\backslashes"),
    "/to/escaped": ("302 Found", "http://%31%32%37.0.0.1:{canary}/escaped"),
    "/to/decimal": ("302 Found", "http://2130706433:{canary}/decimal"),
    "/to/fragment": ("302 Found", "http://127.0.0.1:{canary}/fragment#http://example.org/"),
    "/to/mapped": ("302 Found", "http://[::ffff:127.0.0.1]:{canary}/mapped"),
    "/to/loopback6": ("302 Found", "http://[::1]:{canary}/loopback6"),
    "/to/user": ("302 Found", "http://example.org@127.0.0.1:{canary}/user"),
    "/to/password": ("302 Found", "http://example.org:80@127.0.0.1:{canary}/password"),
    "/to/https": ("302 Found", "https://127.0.0.1:{canary}/https"),
    "/to/metadata": ("302 Found", "http://169.254.169.254/latest/meta-data/"),
    "/to/nowhere": ("302 Found", "http://"),
    "/to/two-places": (
        "302 Found",
        "http://127.0.0.1:{canary}/first\r\nLocation: http://127.0.0.1:{canary}/second",
    ),
    "/to/other-loopback": ("302 Found", "http://127.0.0.2:{canary}/other-loopback"),
}

USERINFO = (
    "good@127.0.0.1",
    "example.org:80@127.0.0.1",
    "127.0.0.1:80@localhost",
    "a%40b@[::1]",
    "@127.0.0.1",
    ":@127.0.0.1",
)


def spelled(canary: int) -> list[str]:
    """Links to the canary, each address spelled in another way."""
    return [f"http://{host}:{canary}/spelling/{i}" for i, host in enumerate((*SPELLINGS, *USERINFO))]


def doors(port: int, canary: int) -> Mapping[str, Answer]:
    """Path -> answer. The front page leads to all the others."""
    answers: dict[str, Answer] = {f"/good/{i}": _page(f"A good page, number {i}", "") for i in range(GOOD)}
    for i, url in enumerate(spelled(canary)):
        answers[f"/named/{i}"] = _page(f"A page that names address {i}", _link(url))
    for path, (status, location) in REDIRECTS.items():
        answers[path] = answer(b"", f"Location: {location.format(canary=canary)}", status=status)
    for i, url in enumerate(_schemes(canary)):
        answers[f"/scheme/link/{i}"] = _page(f"Scheme {i} in a link", _link(url))
        answers[f"/scheme/redirect/{i}"] = answer(b"", f"Location: {url}", status="302 Found")
        answers[f"/scheme/base/{i}"] = _page(f"Scheme {i} in a base", '<a href="x">x</a>', f'<base href="{url}">')
        answers[f"/scheme/canonical/{i}"] = _page(
            f"Scheme {i} as canonical", "", f'<link rel="canonical" href="{url}">'
        )
        answers[f"/scheme/refresh/{i}"] = _page(
            f"Scheme {i} in a refresh", "", f'<meta http-equiv="refresh" content="0; url={url}">'
        )
    answers |= _heads(canary) | _listings(canary)
    links = "".join(_link(path) for path in answers)
    hosts = "".join(_link(f"http://{name}.localhost:{port}/") for name in ("robots-there", "sitemap-there"))
    answers["/"] = _page("The front page", links + hosts)
    answers["/robots.txt"] = lambda exchange: exchange.send(_robots(exchange, canary))
    return answers


def _heads(canary: int) -> dict[str, Answer]:
    """What a page's head or the answer's own can lead to."""
    at = f"http://127.0.0.1:{canary}"
    refresh = f'<meta http-equiv="refresh" content="0;URL=\'{at}/meta-refresh\'">'
    feed = f'<link rel="alternate" type="application/rss+xml" href="{at}/feed-there">'
    return {
        "/head/meta-refresh": _page("A refresh in its head", "", refresh),
        "/head/refresh-header": answer(
            b"<p>A refresh in its headers</p>", HTML, f"Refresh: 0; url={at}/refresh-header"
        ),
        "/head/link-header": answer(b"<p>A link in its headers</p>", HTML, f"Link: <{at}/link>; rel=canonical"),
        "/head/location-of-200": answer(b"<p>A place in its headers</p>", HTML, f"Location: {at}/location-of-200"),
        "/head/canonical": _page("Said to be elsewhere", "", f'<link rel="canonical" href="{at}/canonical">'),
        "/head/base": _page("Based elsewhere", '<a href="based">x</a>', f'<base href="{at}/">'),
        "/head/feed": _page("Its feed is elsewhere", "", feed),
        "/head/next": _page("The next is elsewhere", "", f'<link rel="next" href="{at}/next">'),
        "/head/frames": _page("Frames and pictures", f'<iframe src="{at}/frame"></iframe><img src="{at}/picture">'),
    }


def _listings(canary: int) -> dict[str, Answer]:
    """Sitemaps and feeds: what they name, and what they lead to themselves."""
    at = f"http://127.0.0.1:{canary}"
    urls = [f"{at}/in-sitemap", *_schemes(canary)]
    sitemap = "".join(f"<url><loc>{_escaped(url)}</loc></url>" for url in urls)
    index = "".join(f"<sitemap><loc>{_escaped(url)}</loc></sitemap>" for url in (f"{at}/index", *urls))
    items = "".join(f"<item><link>{_escaped(url)}</link></item>" for url in (f"{at}/in-feed", *urls))
    feeds = "".join(
        f'<link rel="alternate" type="application/rss+xml" href="{path}">' for path in ("/feed.xml", "/feed-away.xml")
    )
    return {
        "/sitemap.xml": answer(f"<urlset>{sitemap}</urlset>".encode(), XML),
        "/sitemap-index.xml": answer(f"<sitemapindex>{index}</sitemapindex>".encode(), XML),
        "/sitemap-away.xml": answer(b"", f"Location: {at}/sitemap-away", status="302 Found"),
        "/feed.xml": answer(f'<rss version="2.0"><channel>{items}</channel></rss>'.encode(), XML),
        "/feed-away.xml": answer(b"", f"Location: {at}/feed-away", status="301 Moved Permanently"),
        "/feeds": _page("It has two feeds", "", feeds),
    }


def _robots(exchange: Exchange, canary: int) -> bytes:
    at = f"http://127.0.0.1:{canary}"
    host = (exchange.header("host") or "").partition(":")[0]
    if host == "robots-there.localhost":
        return answer(b"", f"Location: {at}/robots.txt", status="301 Moved Permanently")
    named = [f"{at}/sitemap-there", "file:///etc/passwd", f"ftp://127.0.0.1:{canary}/sitemap"]
    if host == "127.0.0.1":
        here = exchange.header("host")
        named = [f"http://{here}/{name}.xml" for name in ("sitemap", "sitemap-index", "sitemap-away")]
    return answer("".join(f"Sitemap: {url}\n" for url in named).encode(), "Content-Type: text/plain")


def _schemes(canary: int) -> list[str]:
    return [url.format(canary=canary) for url in FORBIDDEN_SCHEMES]


def _page(title: str, body: str, head: str = "") -> bytes:
    html = f"<html><head><title>{title}</title>{head}</head><body><p>This is what {title} says.</p>{body}</body>"
    return answer(html.encode(), HTML)


def _link(url: str) -> str:
    return f'<a href="{_escaped(url)}">x</a> '


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
