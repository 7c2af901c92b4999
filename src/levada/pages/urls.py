"""URL normalisation by the WHATWG rules, and link traps.

Two spellings of one page would be visited as two pages for ever. So everything that does not select the content is
removed: fragments, default ports, tracking parameters, session ids, needless escapes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
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


class TrapLimits(msgspec.Struct, frozen=True):
    """The limits beyond which a URL counts as a trap."""

    max_length: int = 2_000
    max_depth: int = 20  # links from the start URL
    max_segments: int = 30
    max_repeats: int = 3  # of one path segment
    max_parameters: int = 12
    run: int = 20  # near-identical pages of one pattern in a row that bring nothing new
    hopeless: int = 4  # times as many: then pages are not even fetched
    varied: int = 10  # times as many in all, whatever they bring
    alike: float = 0.9
    gists: int = 24  # remembered of a run
    patterns: int = 24  # remembered of each site


def trap(url: str, depth: int = 0, limits: TrapLimits = TrapLimits()) -> Reason | None:  # noqa: B008 - frozen
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
    return Reason.PARAMETERS if query.count("&") >= limits.max_parameters else None


def path_pattern(url: str) -> str:
    """The path with every number replaced by 0 and the parameter names: the pages of one template."""
    path, _, query = url.partition("?")
    names = sorted(part.partition("=")[0] for part in query.split("&")) if query else []
    return _DIGITS.sub("0", "/".join(path.split("/")[3:])) + ("?" + "&".join(names) if names else "")


class UrlRun(msgspec.Struct, array_like=True):
    """A run of near-identical new pages of one URL pattern."""

    pattern: bytes
    sketch: bytes = b""  # of the newest page
    length: int = 0  # pages
    barren: int = 0  # of them without anything new, less those with something new
    gists: bytes = b""  # of different pages, four bytes each, the latest last
    trap_at: int = 0  # the `run` by which the pattern is a trap; 0: it is none
    is_hopeless: bool = False

    def is_trap(self, limits: TrapLimits) -> bool:
        return self.trap_at >= limits.run

    def observe(self, sketch: bytes, gist: int, limits: TrapLimits) -> Reason | None:
        """Count a page; a reason if it brings nothing."""
        if not self.length or not are_alike(self.sketch, sketch, limits.alike):
            self.length, self.barren, self.gists, self.trap_at, self.is_hopeless = 0, 0, b"", 0, False
        mark = (gist & 0xFFFF_FFFF).to_bytes(4)
        known = [self.gists[at : at + 4] for at in range(0, len(self.gists), 4)]
        is_news = mark not in known
        self.gists = b"".join([*(each for each in known if each != mark), mark][-limits.gists :])
        self.sketch = sketch
        self.length += 1
        self.barren = max(1, min(self.barren, limits.run) - 1) if is_news else self.barren + 1
        too_many = self.length >= limits.varied * limits.run
        if self.barren >= limits.run or too_many:
            self.trap_at = limits.run
            self.is_hopeless |= too_many or self.barren >= limits.hopeless * limits.run
        elif self.barren == 1:
            self.trap_at, self.is_hopeless = 0, False
        return Reason.NEAR_DUPLICATES if too_many or (self.is_trap(limits) and not is_news) else None


class _Observed(msgspec.Struct, array_like=True):
    pages: int = 0
    runs: list[UrlRun] = []


class NearDuplicateRuns:
    """The near-duplicate runs of one site: near-identical new pages of one URL pattern in a row.

    An address does not say whether it is a trap, so its pages do. A page of a run brings something new if its gist,
    a checksum of what it says without numbers, was not met in the run: the next month of an empty calendar has no
    other words, the next function of a manual has. The pattern of a run is a trap while `run` more pages brought
    nothing new than brought something, and until one differs, or as many bring something again. Beyond `varied` times
    as many pages, what differs between them is taken for an ornament. A trap is hopeless once `hopeless` times as many
    pages brought nothing.

    The runs are stored with the site (`packed`), so that a crawl that was restarted counts on. Of a few patterns
    only: a pattern with a long run stays longer than one that a single page has.
    """

    def __init__(self, packed: bytes = b"", limits: TrapLimits = TrapLimits()) -> None:  # noqa: B008 - frozen
        self._limits = limits
        try:
            observed = _UNPACK_RUNS.decode(packed) if packed else _Observed()
        except msgspec.ValidationError:  # as a version before gists stored them
            observed = _Observed()
        self.observed = observed.pages
        self._runs = {run.pattern: run for run in observed.runs}  # the latest last

    def observe(self, url: str, sketch: bytes, gist: int) -> Reason | None:
        """Count a new page; NEAR_DUPLICATES if its pattern is a trap, and it brings nothing new."""
        pattern = _pattern_digest(url)
        run = self._runs.pop(pattern, None) or UrlRun(pattern)
        if len(self._runs) >= self._limits.patterns:
            del self._runs[min(self._runs, key=lambda each: self._runs[each].length)]
        self._runs[pattern] = run
        self.observed += 1
        return run.observe(sketch, gist, self._limits)

    def is_trap(self, url: str) -> bool:
        """Whether the pages with such URLs bring nothing new."""
        run = self._find(url)
        return run is not None and run.is_trap(self._limits)

    def is_hopeless(self, url: str) -> bool:
        """Whether so many of them have brought nothing that no more need be fetched."""
        run = self._find(url)
        return run is not None and run.is_hopeless and run.is_trap(self._limits)

    def _find(self, url: str) -> UrlRun | None:
        has_traps = any(run.trap_at for run in self._runs.values())
        return self._runs.get(_pattern_digest(url)) if has_traps else None

    def packed(self) -> bytes:
        return msgspec.msgpack.encode(_Observed(self.observed, list(self._runs.values())))


_UNPACK_RUNS = msgspec.msgpack.Decoder(_Observed)


def _pattern_digest(url: str) -> bytes:
    return blake2b(path_pattern(url).encode("utf-8", "replace"), digest_size=8).digest()


def may_run_on(url: str) -> bool:
    """Whether other URLs have the pattern of this one."""
    path = "/".join(url.split("/")[3:])
    return "?" in path or _DIGITS.search(path) is not None


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
