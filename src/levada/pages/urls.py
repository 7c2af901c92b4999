"""URL normalisation by the WHATWG rules, and link traps.

Two spellings of one page would be visited as two pages for ever. So everything that does not select the content is
removed: fragments, default ports, tracking parameters, session ids, needless escapes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import pairwise

import can_ada
import msgspec

from levada.core.errors import BadUrl
from levada.core.reasons import Reason
from levada.pages.change import are_alike

MAX_LENGTH = 65_536
MAX_ROUNDS = 8
_NOISE_NAMES = """
    gclid gclsrc dclid fbclid msclkid yclid ysclid twclid ttclid igshid mc_cid mc_eid _ga _gl _hsenc _hsmi mkt_tok
    oly_anon_id oly_enc_id vero_id wickedid wbraid gbraid srsltid icid spm
    phpsessid jsessionid sid sessionid session_id sessid cfid cftoken zenid oscsid
"""
NOISE = frozenset(_NOISE_NAMES.split())
NOISE_STARTS = ("utm_", "aspsessionid")
OFTEN_CONTENT = frozenset(("sid", "sessid", "sessionid", "session_id"))  # or the number of a story or session
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})?")
_SESSION_VALUE = r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}"
_SESSION = re.compile(_SESSION_VALUE)
_PATH_SESSION = re.compile(rf";(?:(?:jsessionid|phpsessid)=[^/?;]*|sid={_SESSION_VALUE}(?![^/?;]))", re.IGNORECASE)
_TO_TIDY = re.compile(r"[%?;#]|\.(?=[:/])")
_AROUND = "".join(map(chr, range(33)))
_INSIDE = str.maketrans("", "", "\t\n\r")
_PACKED_RUNS = msgspec.msgpack.Decoder(tuple[int, list[tuple[bytes, int, bytes]]])
_WRITE_IT = "write it like https://example.org"


def canonical(href: str, base: str | None = None) -> str:
    """The canonical URL of `href` on the page `base`; raises `BadUrl`."""
    if base is None:
        return _normalised(_clean(href))
    return Resolver(canonical(base))(href)


def scheme_of(url: str) -> str:
    """The scheme of a URL in lower case, "" if it has none."""
    found = _SCHEME.match(url)
    return found[1].lower() if found else ""


def site_of(url: str) -> str:
    """The host of a canonical URL, and the port if it is not the default."""
    parts = url.split("/", 3)
    return parts[2] if len(parts) > 2 and not parts[1] else ""


def origin_of(url: str) -> str:
    """Scheme, host and port of a canonical URL."""
    return "/".join(url.split("/", 3)[:3])


def front_page(url: str) -> str:
    """The front page of the site of a canonical URL."""
    return origin_of(url) + "/"


class Resolver:
    """Resolves the hrefs of one page; `base` is a canonical http or https URL."""

    __slots__ = ("_base", "_path", "_scheme", "directory", "origin")

    def __init__(self, base: str) -> None:
        self._base = base
        self._path = base.partition("?")[0]
        self.directory = self._path[: self._path.rfind("/") + 1]
        self.origin = origin_of(base)
        self._scheme = base[: base.find(":")]

    def __call__(self, href: str) -> str:
        """The canonical URL; raises `BadUrl`."""
        return self._base if href.startswith("#") else _normalised(self.join(href))

    def scope(self, href: str) -> str | None:
        """The part of the base on which the meaning of `href` depends; None if it is the whole base."""
        if href.startswith(("/", "http://", "https://")):
            return self.origin
        return self.directory if href[:1].isalnum() or href.startswith("../") else None

    def join(self, href: str) -> str:
        """The absolute URL, not yet canonical."""
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
        # `http:page` on an http page is a relative URL.
        return self.origin + rest if slashes[:1] == "/" else self.join("./" + rest)


def _clean(href: str) -> str:
    href = href.strip(_AROUND)
    return href if href.isprintable() else href.translate(_INSIDE)


def _normalised(address: str) -> str:
    """Tidy until nothing changes: removing one part can expose the next."""
    if len(address) > MAX_LENGTH:
        raise BadUrl(f"an address of {len(address)} characters: at most {MAX_LENGTH} are read")
    fragment = address.find("#")  # cut off before the address is read, it need not be read twice
    cuts = fragment > 0 and address[fragment - 1] > " "
    result = _parse(address[:fragment] if cuts else address)
    for _ in range(MAX_ROUNDS):
        if not _TO_TIDY.search(result):
            return result
        tidied = _tidy(result)
        if tidied == result:
            return result
        result = _parse(tidied)
    raise BadUrl(f"an address that cannot be normalised: {address[:200]!r}; {_WRITE_IT}")


def _parse(address: str) -> str:
    try:
        url = can_ada.parse(address)
    except (ValueError, TypeError) as error:  # TypeError: lone surrogates
        raise BadUrl(f"not an address: {address[:200]!r}; {_WRITE_IT}") from error
    if url.has_credentials():
        raise BadUrl(f"an address with a user name or password in it: leave them out, as in {url.protocol}//{url.host}")
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
    """The canonical URL of a start URL as typed; `BadUrl` says how to write one."""
    try:
        address = canonical(typed if "://" in typed else f"https://{typed}") if typed.strip() else ""
    except BadUrl as error:
        if "://" in typed:
            raise
        raise BadUrl(str(error).replace("'https://", "'")) from None  # the user did not type the scheme
    if not address.startswith(("http://", "https://")):
        raise BadUrl(f"{typed[:200]!r} is not an http or https address: {_WRITE_IT}")
    return address


_DIGITS = re.compile(r"\d+")
_YEAR = r"(?P<year>(?:19|20|21)\d\d)"
_MONTH = r"(?:0?[1-9]|1[0-2])"
_CALENDAR_PATH = re.compile(rf"/{_YEAR}[/\-_.]{_MONTH}(?:[/\-_.]\d{{1,2}})?(?:[/?]|$)")
_CALENDAR_NAME = r"[\w\-\[\]%]*(?:date|year|day|month|week|cal|from|start)[\w\-\[\]%]*"
_CALENDAR_QUERY = re.compile(rf"[?&]{_CALENDAR_NAME}={_YEAR}", re.IGNORECASE)
_CALENDAR_WORD = re.compile(r"calend|takvim|kalend|event|etkinlik|agenda|termin|archive|schedule", re.IGNORECASE)


class TrapLimits(msgspec.Struct, frozen=True):
    """The limits beyond which a URL counts as a trap."""

    max_length: int = 2_000
    max_depth: int = 20  # links from the start URL
    max_segments: int = 30
    max_repeats: int = 3  # of one path segment
    max_parameters: int = 12
    years_ahead: float = 2.0
    years_back: float = 15.0  # in calendars only: an article of 1999 is an article
    run: int = 20  # near-identical pages in a row under one pattern
    alike: float = 0.9
    patterns: int = 24  # remembered of each site


def trap(url: str, now: float, depth: int = 0, limits: TrapLimits = TrapLimits()) -> Reason | None:  # noqa: B008 - frozen
    """The reason not to follow a canonical URL, if there is one."""
    if len(url) > limits.max_length:
        return Reason.URL_LENGTH
    if depth > limits.max_depth:
        return Reason.DEPTH
    path, _, query = url.partition("?")
    segments = [segment for segment in path.split("/")[3:] if segment]
    if len(segments) > limits.max_segments:
        return Reason.DEPTH
    if _repeats(segments, limits.max_repeats):
        return Reason.REPEATING_PATH
    if query.count("&") >= limits.max_parameters:
        return Reason.PARAMETERS
    return Reason.CALENDAR if _is_far_calendar(url, now, limits) else None


def path_pattern(url: str) -> str:
    """The path with every number replaced by 0 and the parameter names: the pages of one template."""
    path, _, query = url.partition("?")
    names = sorted(part.partition("=")[0] for part in query.split("&")) if query else []
    return _DIGITS.sub("0", "/".join(path.split("/")[3:])) + ("?" + "&".join(names) if names else "")


class NearDuplicateRuns:
    """The near-duplicate runs of one site: near-identical new pages of one URL pattern in a row.

    They are stored with the site (`packed`), so that a crawl that was restarted counts on. Of a few patterns only: a
    pattern with a long run stays longer than one that a single page has.
    """

    def __init__(self, packed: bytes = b"", limits: TrapLimits = TrapLimits()) -> None:  # noqa: B008 - frozen
        self._limits = limits
        self._runs: dict[bytes, tuple[int, bytes]] = {}  # by pattern, the latest last: length, newest sketch
        self.observed = 0
        if packed:
            self.observed, runs = _PACKED_RUNS.decode(packed)
            self._runs = {pattern: (length, sketch) for pattern, length, sketch in runs}

    def observe(self, url: str, sketch: bytes) -> Reason | None:
        """Count a new page by its sketch; NEAR_DUPLICATES from the page that completes a run."""
        pattern = blake2b(path_pattern(url).encode("utf-8", "replace"), digest_size=8).digest()
        length, last = self._runs.pop(pattern, (0, b""))
        length = length + 1 if length and are_alike(last, sketch, self._limits.alike) else 1
        if len(self._runs) >= self._limits.patterns:
            del self._runs[min(self._runs, key=lambda each: self._runs[each][0])]
        self._runs[pattern] = (length, sketch)
        self.observed += 1
        return Reason.NEAR_DUPLICATES if length >= self._limits.run else None

    def packed(self) -> bytes:
        return msgspec.msgpack.encode((self.observed, [(pattern, *run) for pattern, run in self._runs.items()]))


def newest_runs(packed: Iterable[bytes]) -> bytes:
    """Of several states of one site's runs, the one that has observed the most."""
    return max(packed, key=lambda each: NearDuplicateRuns(each).observed)


def _repeats(segments: list[str], most: int) -> bool:
    if len(segments) < most or len(set(segments)) == len(segments):
        return False
    words = [segment for segment in segments if not segment.isdigit()]
    if words and max(Counter(words).values()) >= most:
        return True
    pairs = Counter(pairwise(segments))
    return any(count >= 2 and first != second for (first, second), count in pairs.items())


def _is_far_calendar(url: str, now: float, limits: TrapLimits) -> bool:
    found = _CALENDAR_QUERY.search(url) or _CALENDAR_PATH.search(url)
    if found is None:
        return False
    years = int(found["year"]) - datetime.fromtimestamp(now, UTC).year
    if years > limits.years_ahead:
        return True
    return years < -limits.years_back and _CALENDAR_WORD.search(url) is not None
