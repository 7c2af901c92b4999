"""robots.txt by RFC 9309: the longest rule that matches decides, and of two the one that allows.

The rules are parsed once per agent, and only the groups for it: in a file with thousands of agents above thousands
of rules, the two would multiply. Misspellings that sites have are understood as protego and Google's parser do.

Half a megabyte of rules is met with thousands of links, so no rule may be looked at in vain: plain rules are found by
bisection, and only those with a `*` are tried one by one. Of these at most `_MOST_WILDCARDS` are; in a longer file
they end at their first `*`, if they forbid, and are ignored if they allow: so it forbids more than was meant.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from levada.pages.urls import scheme_of

NOBODY = "\x7fnobody\x7f"
_PRODUCT = re.compile(r"[A-Za-z_\-]+")


@lru_cache(maxsize=64)
def product_of(agent: str) -> str:
    """The product token of an agent name or a User-Agent header, in lower case; `NOBODY` if there is none."""
    found = _PRODUCT.match(agent.strip())
    return found[0].lower() if found else NOBODY


MAX_DELAY = 300.0
MAX_SITEMAPS = 100
_MOST_WILDCARDS = 2_000
_FEW_WILDCARDS = 200
_AGENT_LINE = re.compile(r"\s*user[- ]?agent(?:\s*:|\s)\s*([^#]*)", re.IGNORECASE)
_RULE_LINE = re.compile(r"\s*(allow|dis?allow|diss?all?ow|diasllow|disallaw)(?:\s*:|\s)\s*([^#]*)", re.IGNORECASE)
_DELAY_LINE = re.compile(r"\s*(crawl|request)[- ](delay|rate)(?:\s*:|\s)\s*([^#]*)", re.IGNORECASE)
_SITEMAP_LINE = re.compile(r"\s*site-?maps?\s*:\s*(\S+)", re.IGNORECASE)
_RATE = re.compile(r"(\d{1,9})/(\d{1,9})([smhd]?)(?:\s.*)?", re.IGNORECASE)
_UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_DATED = frozenset(("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"))
_ESCAPE = re.compile(rb"%(25|2[fF]|[0-9A-Fa-f]{2})?")
_KEPT = b"/%"


class RobotsRules:
    """The rules of one robots.txt; lines that are not rules are ignored."""

    def __init__(self, text: str) -> None:
        self._lines = text.lstrip("\ufeff").splitlines()
        self._by_agent: dict[str, _Group] = {}

    def allows(self, url: str, agent: str) -> bool:
        """Whether `agent` (a product token or a User-Agent header) may fetch `url`."""
        return self._group(agent).rules.allow(_path(url))

    def is_cheap(self, agent: str) -> bool:
        """Whether so few rules have a `*` that every link of a page may be compared with them."""
        return len(self._group(agent).rules.wildcards) <= _FEW_WILDCARDS

    def delay(self, agent: str) -> float | None:
        """Seconds between two requests, if the site asks for a delay; at most `MAX_DELAY`."""
        delays = self._group(agent).delays.values()
        return min(max(delays), MAX_DELAY) if delays else None

    def sitemaps(self) -> list[str]:
        """The http and https URLs of the sitemaps, each once, as written."""
        found = (match[1] for line in self._lines if (match := _SITEMAP_LINE.match(line)))
        web = dict.fromkeys(address for address in found if scheme_of(address) in ("http", "https"))
        return list(web)[:MAX_SITEMAPS]

    def _group(self, agent: str) -> _Group:
        product = product_of(agent)
        group = self._by_agent.get(product)
        if group is None:
            group = self._by_agent[product] = _read_group(self._lines, product)
        return group


class _Group(NamedTuple):
    rules: _Rules
    delays: dict[str, float]  # the last of each kind


def _read_group(lines: Iterable[str], product: str) -> _Group:
    """What a robots.txt says to this product: in the groups that name it, or else in those for everybody.

    A group ends with the first agent line after a rule; other lines, known or not, end none.
    """
    ours, everybody = _Group(_Rules(), {}), _Group(_Rules(), {})
    addressed: list[_Group] = []
    has_rules = is_named = False
    for line in lines:
        if (found := _AGENT_LINE.match(line)) is not None:
            if has_rules:
                addressed, has_rules = [], False
            name = found[1].strip()
            if name == "*":
                addressed.append(everybody)
            elif product_of(name) == product:
                is_named = True
                addressed.append(ours)
        elif (found := _RULE_LINE.match(line)) is not None:
            has_rules = True
            for group in addressed:
                group.rules.add(found[2].strip(), allow=found[1].lower() == "allow")
        elif (found := _DELAY_LINE.match(line)) is not None:
            kind = f"{found[1]}-{found[2]}".lower()
            if (seconds := _seconds(kind, found[3].strip())) is not None:
                for group in addressed:
                    group.delays[kind] = seconds
    group = ours if is_named else everybody
    group.rules.finish()
    return group


def _seconds(kind: str, value: str) -> float | None:
    """The seconds between two requests that a line asks for."""
    if kind == "crawl-delay":
        try:
            seconds = float(value)
        except ValueError:
            return None
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    rate = _RATE.fullmatch(value) if kind == "request-rate" else None
    if rate is None or not int(rate[1]) or not int(rate[2]):
        return None
    return int(rate[2]) * _UNIT_SECONDS[rate[3].lower()] / int(rate[1])


class _Wildcard(NamedTuple):
    length: int
    allow: bool
    parts: tuple[str, ...]  # between the stars: the first begins the path
    ends: bool  # whether the path must end with the last

    def matches(self, path: str) -> bool:
        if not path.startswith(self.parts[0]):
            return False
        at = len(self.parts[0])
        for part in self.parts[1:-1]:
            at = path.find(part, at)
            if at < 0:
                return False
            at += len(part)
        last = self.parts[-1]
        if self.ends:
            return len(path) - len(last) >= at and path.endswith(last)
        return path.find(last, at) >= 0


class _Rules:
    """The rules for one agent."""

    def __init__(self) -> None:
        self.wildcards: list[_Wildcard] = []  # the longest first
        self._plain: dict[str, bool] = {}
        self._whole: dict[str, bool] = {}  # of paths that end there
        self._sorted: list[str] = []
        self._shorter: list[int] = []  # for each of `_sorted`: the place of the longest other one that begins it

    def add(self, value: str, *, allow: bool) -> None:
        if not value:
            return
        if "$" in value:  # at the end it may also be meant as a sign of the path
            self._add(_pattern(value.replace("$", "%24")), allow=allow)
        pattern = _pattern(value)
        self._add(pattern, allow=allow)
        if allow and pattern.endswith("/index.html"):
            self._add(pattern.removesuffix("index.html") + "$", allow=True)

    def _add(self, pattern: str, *, allow: bool) -> None:
        ends = pattern.endswith("$")
        if "*" in pattern:
            parts = tuple(re.sub(r"\*+", "*", pattern.removesuffix("$")).split("*"))
            self.wildcards.append(_Wildcard(len(pattern), allow, parts, ends))
        else:
            kept, rule = (self._whole, pattern[:-1]) if ends else (self._plain, pattern)
            kept[rule] = allow or kept.get(rule, False)

    def finish(self) -> None:
        """Make ready to be asked."""
        if len(self.wildcards) > _MOST_WILDCARDS:
            for each in self.wildcards:
                if not each.allow:
                    self._plain.setdefault(each.parts[0], False)
            self.wildcards = []
        self.wildcards.sort(key=lambda each: (each.length, each.allow), reverse=True)
        self._sorted = sorted(self._plain)
        beginnings: list[int] = []
        for at, rule in enumerate(self._sorted):
            while beginnings and not rule.startswith(self._sorted[beginnings[-1]]):
                beginnings.pop()
            self._shorter.append(beginnings[-1] if beginnings else -1)
            beginnings.append(at)

    def allow(self, path: str) -> bool:
        if path == "/robots.txt" or path.startswith("/robots.txt?"):
            return True
        length, allow = self._longest_plain(path)
        if (whole := self._whole.get(path)) is not None and (len(path) + 1, whole) > (length, allow):
            length, allow = len(path) + 1, whole
        for rule in self.wildcards:
            if (rule.length, rule.allow) <= (length, allow):
                break
            if rule.matches(path):
                return rule.allow
        return allow

    def _longest_plain(self, path: str) -> tuple[int, bool]:
        at = bisect_right(self._sorted, path) - 1
        while at >= 0 and not path.startswith(self._sorted[at]):
            at = self._shorter[at]
        return (-1, True) if at < 0 else (len(self._sorted[at]), self._plain[self._sorted[at]])


def _path(url: str) -> str:
    """The path and query of a URL, as they are compared."""
    _, _, rest = url.partition("#")[0].partition("://")
    slash, query = rest.find("/"), rest.find("?")
    if query >= 0 and not 0 <= slash < query:
        return "/" + _spelled(rest[query:])
    return _spelled(rest[slash:]) if slash >= 0 else "/"


def _pattern(value: str) -> str:
    """A rule as paths are compared: an address in place of a path matches what the site's owner wrote."""
    if value.startswith(("https://", "http://")):
        value = f"/{value}"
    anchor = "$" if value.endswith("$") else ""
    return _spelled(value.removesuffix("$"), "/%=*") + anchor


_PLAIN = re.compile(r"[A-Za-z0-9_.~/=-]*").fullmatch


def _spelled(text: str, safe: str = "/%=") -> str:
    """One spelling for all that stand for the same bytes: escapes are decoded, but for / and %, and made again."""
    if _PLAIN(text):
        return text
    return quote(_ESCAPE.sub(_decoded, text.encode("utf-8", "surrogatepass")), safe=safe)


def _decoded(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    if code is None:
        return b"%"
    byte = bytes.fromhex(code.decode())
    return b"%" + code.upper() if byte in _KEPT else byte


def header_directives(headers: Iterable[tuple[str, str]], agent: str) -> frozenset[str]:
    """The directives of X-Robots-Tag headers for `agent` or everybody; header names are in lower case."""
    asked: set[str] = set()
    for name, value in headers:
        if name != "x-robots-tag":
            continue
        whom, colon, rest = value.partition(":")
        if colon and "," not in whom and whom.strip().lower() not in _DATED:
            if product_of(whom) != product_of(agent):
                continue
            value = rest
        asked.update(word.strip().lower() for word in value.split(","))
    return frozenset(asked)
