"""Does this address lead into a trap: pages without end that nobody wrote?"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from datetime import UTC, datetime
from itertools import pairwise

import msgspec

from levada.pages.sketch import are_alike
from levada.pages.urls import site_of
from levada.reasons import Reason

__all__ = ["NearDuplicateRun", "TrapLimits", "path_pattern", "trap"]

_DIGITS = re.compile(r"\d+")
_YEAR = r"(?P<year>(?:19|20|21)\d\d)"
_MONTH = r"(?:0?[1-9]|1[0-2])"
_CALENDAR_PATH = re.compile(rf"/{_YEAR}[/\-_.]{_MONTH}(?:[/\-_.]\d{{1,2}})?(?:[/?]|$)")
_CALENDAR_NAME = r"[\w\-\[\]%]*(?:date|year|day|month|week|cal|from|start)[\w\-\[\]%]*"
_CALENDAR_QUERY = re.compile(rf"[?&]{_CALENDAR_NAME}={_YEAR}", re.IGNORECASE)
_CALENDAR_WORD = re.compile(r"calend|takvim|kalend|event|etkinlik|agenda|termin|archive|schedule", re.IGNORECASE)


class TrapLimits(msgspec.Struct, frozen=True):
    """Where an address stops being a page that somebody wrote."""

    max_length: int = 2_000
    max_depth: int = 20  # of links from where the crawl began
    max_segments: int = 30
    max_repeats: int = 3  # of one path segment
    max_parameters: int = 12
    years_ahead: float = 2.0
    years_back: float = 15.0  # in calendars only: an article of 1999 is an article
    run: int = 20  # near-identical pages in a row under one pattern
    alike: float = 0.9
    patterns: int = 10_000  # remembered at once


def trap(url: str, now: float, depth: int = 0, limits: TrapLimits = TrapLimits()) -> Reason | None:  # noqa: B008 - frozen
    """The reason not to follow a canonical address, if there is one."""
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
    """Site and path with every number folded: the pages that one template makes."""
    path, _, query = url.partition("?")
    names = sorted(part.partition("=")[0] for part in query.split("&")) if query else []
    return _DIGITS.sub("0", "/".join(path.split("/")[3:])) + ("?" + "&".join(names) if names else "")


class NearDuplicateRun:
    """Sees new pages in order; says so when one pattern of a site has brought nothing new for a whole run."""

    def __init__(self, limits: TrapLimits = TrapLimits()) -> None:  # noqa: B008 - frozen
        self._limits = limits
        self._runs: OrderedDict[tuple[str, str], tuple[int, bytes]] = OrderedDict()

    def see(self, url: str, sketch: bytes) -> Reason | None:
        """Take the sketch of a new page; NEAR_DUPLICATES from the page on that completes a run."""
        key = (site_of(url), path_pattern(url))
        length, last = self._runs.pop(key, (0, b""))
        length = length + 1 if length and are_alike(last, sketch, self._limits.alike) else 1
        self._runs[key] = (length, sketch)
        if len(self._runs) > self._limits.patterns:
            self._runs.popitem(last=False)
        return Reason.NEAR_DUPLICATES if length >= self._limits.run else None

    def blocks(self, url: str) -> bool:
        """Whether pages like this one have completed a run."""
        length, _ = self._runs.get((site_of(url), path_pattern(url)), (0, b""))
        return length >= self._limits.run


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
