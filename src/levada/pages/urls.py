"""Which address does this href stand for? One spelling per page, by the WHATWG URL rules.

Two spellings of one page would be two pages to visit for ever, so everything that does not pick the content is
dropped: fragments, default ports, tracking parameters, session ids, needless escapes.
"""

from __future__ import annotations

import re

import can_ada

from levada.errors import BadUrl

__all__ = ["Resolver", "canonical", "front_page", "origin_of", "scheme_of", "seed_address", "site_of"]

MAX_LENGTH = 65_536
MAX_ROUNDS = 8

_NOISE_NAMES = """
    gclid gclsrc dclid fbclid msclkid yclid ysclid twclid ttclid igshid mc_cid mc_eid _ga _gl _hsenc _hsmi mkt_tok
    oly_anon_id oly_enc_id vero_id wickedid wbraid gbraid srsltid icid spm
    phpsessid jsessionid sid sessionid session_id sessid cfid cftoken zenid oscsid
"""
NOISE = frozenset(_NOISE_NAMES.split())
NOISE_STARTS = ("utm_", "aspsessionid")
OFTEN_CONTENT = frozenset(
    ("sid", "sessid", "sessionid", "session_id")
)  # a story's or a conference session's number
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})?")
_SESSION_VALUE = r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}"
_SESSION = re.compile(_SESSION_VALUE)
_PATH_SESSION = re.compile(rf";(?:(?:jsessionid|phpsessid)=[^/?;]*|sid={_SESSION_VALUE}(?![^/?;]))", re.IGNORECASE)
_TO_TIDY = re.compile(r"[%?;#]|\.(?=[:/])")
_AROUND = "".join(map(chr, range(33)))
_INSIDE = str.maketrans("", "", "\t\n\r")
_WRITE_IT = "write it like https://example.org"


def canonical(href: str, base: str | None = None) -> str:
    """The one spelling of the address that `href` stands for on the page `base`; raises `BadUrl`."""
    if base is None:
        return _settle(_clean(href))
    return Resolver(canonical(base))(href)


def scheme_of(url: str) -> str:
    """The scheme of an address in lower case, "" if it has none."""
    found = _SCHEME.match(url)
    return found[1].lower() if found else ""


def site_of(url: str) -> str:
    """Host and, where it is not the usual one, port of a canonical address."""
    parts = url.split("/", 3)
    return parts[2] if len(parts) > 2 and not parts[1] else ""


def origin_of(url: str) -> str:
    """Scheme, host and port of a canonical address."""
    return "/".join(url.split("/", 3)[:3])


def front_page(url: str) -> str:
    """The front page of the site of a canonical address."""
    return origin_of(url) + "/"


class Resolver:
    """Reads the hrefs of one page; `base` is a canonical http or https address."""

    __slots__ = ("_base", "_path", "_scheme", "directory", "origin")

    def __init__(self, base: str) -> None:
        self._base = base
        self._path = base.partition("?")[0]
        self.directory = self._path[: self._path.rfind("/") + 1]
        self.origin = origin_of(base)
        self._scheme = base[: base.find(":")]

    def __call__(self, href: str) -> str:
        """The canonical address; raises `BadUrl`."""
        return _settle(self.join(href))

    def scope(self, href: str) -> str | None:
        """The part of the base on which the meaning of `href` depends; None if that is all of it.

        Pages that share this part share the meaning.
        """
        if href.startswith(("/", "http://", "https://")):
            return self.origin
        return self.directory if href[:1].isalnum() else None

    def join(self, href: str) -> str:
        """The absolute address, not yet canonical."""
        href = _clean(href)
        first = href[:1].replace("\\", "/")
        if first == "/":
            return f"{self._scheme}:{href}" if href[1:2] in ("/", "\\") else self.origin + href
        if not first or first == "#":
            return self._base
        if first == "?":
            return self._path + href
        found = _SCHEME.match(href)
        return self.directory + href if found is None else self._join_with_scheme(href, found)

    def _join_with_scheme(self, href: str, found: re.Match[str]) -> str:
        rest = href[found.end() :]
        slashes = rest[:2].replace("\\", "/")
        if found[1].lower() != self._scheme or slashes == "//":
            return href
        # `http:page` on an http page is a relative address, whatever it looks like.
        return self.origin + rest if slashes[:1] == "/" else self.join("./" + rest)


def _clean(href: str) -> str:
    href = href.strip(_AROUND)
    return href if href.isprintable() else href.translate(_INSIDE)


def _settle(address: str) -> str:
    """Tidy until nothing changes: removing one thing can bring the next to light."""
    if len(address) > MAX_LENGTH:
        raise BadUrl(f"an address of {len(address)} characters: at most {MAX_LENGTH} are read")
    settled = _parse(address)
    for _ in range(MAX_ROUNDS):
        if not _TO_TIDY.search(settled):
            return settled
        tidied = _tidy(settled)
        if tidied == settled:
            return settled
        settled = _parse(tidied)
    raise BadUrl(f"not an address that settles: {address[:200]!r}; {_WRITE_IT}")


def _parse(address: str) -> str:
    try:
        url = can_ada.parse(address)
    except (ValueError, TypeError) as error:  # TypeError: lone surrogates
        raise BadUrl(f"not an address: {address[:200]!r}; {_WRITE_IT}") from error
    if url.has_credentials():
        raise BadUrl(
            f"an address with a user name or password in it: leave them out, as in {url.protocol}//{url.host}"
        )
    href: str = url.href
    return href


def _tidy(url: str) -> str:
    url = url.partition("#")[0]
    if not url.startswith("http"):
        return url
    address, _, query = url.partition("?")
    if ";" in address:
        address = _PATH_SESSION.sub("", address)
    if address.endswith(".") or "./" in address or ".:" in address:
        address = _without_root_dot(address)
    if query:
        query = "&".join(part for part in query.split("&") if part and not _is_noise(part))
    url = f"{address}?{query}" if query else address
    return _PERCENT.sub(_normal_escape, url) if "%" in url else url


def _without_root_dot(address: str) -> str:
    parts = address.split("/", 3)
    host, colon, port = parts[2].partition(":") if not parts[2].startswith("[") else (parts[2], "", "")
    parts[2] = (host.removesuffix(".") or host) + colon + port
    return "/".join(parts)


def _is_noise(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    name = name.lower()
    if name in NOISE:
        return name not in OFTEN_CONTENT or _SESSION.fullmatch(value) is not None
    return name.startswith(NOISE_STARTS)


def _normal_escape(found: re.Match[str]) -> str:
    code = found[1]
    if code is None:
        return "%25"
    char = chr(int(code, 16))
    return char if char in UNRESERVED else f"%{code.upper()}"


def seed_address(typed: str) -> str:
    """The address at which somebody wants a crawl to begin; `BadUrl` says how to write one."""
    try:
        address = canonical(typed if "://" in typed else f"https://{typed}") if typed.strip() else ""
    except BadUrl as error:
        if "://" in typed:
            raise
        raise BadUrl(str(error).replace("'https://", "'")) from None  # which nobody has typed
    if not address.startswith(("http://", "https://")):
        raise BadUrl(f"{typed[:200]!r} is not an http or https address: {_WRITE_IT}")
    return address
