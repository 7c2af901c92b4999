"""Active hours of a site: when it may be asked at all, by the clock on the wall of a time zone.

A site is open exactly while that clock shows a time within one of the spans. So the change to summer time neither
shifts nor lengthens them, and an hour that comes twice is open twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from math import inf
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from levada.core.suggestions import near_names

_WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_GROUPS = {"daily": tuple(range(7)), "weekdays": tuple(range(5)), "weekends": (5, 6)}
_CLOCK = re.compile(r"([0-9]{1,2})(?::([0-9]{2}))?")
_DAY = 24 * 60  # minutes
_AHEAD = 15  # days in which every weekly span comes, even one that a change of the clock skips once
_LATEST = 250_000_000_000.0  # seconds: before the year 9999
EXAMPLE = '"weekdays 8-18 Europe/Istanbul"'


class _Span(msgspec.Struct, frozen=True):
    """From a minute of these days, up to another one; the next day where that is not later."""

    days: tuple[int, ...]  # 0: Monday
    start: int
    end: int
    zone: tzinfo

    def covers(self, at: float) -> bool:
        local = datetime.fromtimestamp(at, self.zone)
        minute = local.hour * 60 + local.minute
        if self.start < self.end:
            return local.weekday() in self.days and self.start <= minute < self.end
        begins_today = local.weekday() in self.days and minute >= self.start
        return begins_today or ((local.weekday() - 1) % 7 in self.days and minute < self.end)


class ActiveHours:
    """When a site may be asked; `is_open`, and the next moment at which that changes.

    >>> hours = active_hours(("weekdays 8-18 Europe/Istanbul",))
    >>> friday_evening = datetime(2026, 11, 20, 16, tzinfo=UTC).timestamp()
    >>> datetime.fromtimestamp(hours.opens_at(friday_evening), UTC).isoformat()
    '2026-11-23T05:00:00+00:00'
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        self._spans = tuple(map(_span, texts))
        self._known = (inf, -inf, False)  # from when, until when it is open or closed

    def is_open(self, at: float) -> bool:
        return self._period(at)[1]

    def opens_at(self, at: float) -> float:
        """The first moment from `at` on at which the site is open."""
        until, is_open = self._period(at)
        return at if is_open else until

    def closes_at(self, at: float) -> float:
        """Until when a request may begin, as far as is known at `at`: `at` itself if the site is closed."""
        until, is_open = self._period(at)
        return until if is_open else at

    @property
    def share(self) -> float:
        """The share of a week in which the site is open."""
        minutes: set[int] = set()
        for span in self._spans:
            length = (span.end - span.start - 1) % _DAY + 1
            for day in span.days:
                minutes.update((day * _DAY + span.start + n) % (7 * _DAY) for n in range(length))
        return len(minutes) / (7 * _DAY)

    def _period(self, at: float) -> tuple[float, bool]:
        """Until when it stays as it is at `at`, and whether it is open."""
        since, until, is_open = self._known
        if not since <= at < until:
            is_open = self._covers(at)
            until = self._next(at, not is_open)
            self._known = (at, until, is_open)
        return until, is_open

    def _covers(self, at: float) -> bool:
        at = min(max(at, 0.0), _LATEST)
        return any(span.covers(at) for span in self._spans)

    def _next(self, at: float, wanted: bool) -> float:
        """The first moment after `at` that is open or closed as wanted; if none comes soon, when to look again."""
        if not 0.0 <= at < _LATEST:
            return at + 86_400.0
        moments = {moment for span in self._spans for moment in _moments(span, at) if moment > at}
        return next((moment for moment in sorted(moments) if self._covers(moment) is wanted), at + 14 * 86_400.0)


def _moments(span: _Span, at: float) -> set[float]:
    """When the clock of this span may come to one of its ends, or is changed."""
    today = datetime.fromtimestamp(at, span.zone).date()
    found: set[float] = set()
    for ahead in range(-2, _AHEAD):
        for minute in (span.start, span.end):
            found.update(_instants(today + timedelta(days=ahead), minute, span.zone))
        begin = at // 1.0 + ahead * 86_400.0
        if begin > 0 and _offset(begin, span.zone) != _offset(begin + 86_400.0, span.zone):
            found.add(_clock_change(begin, begin + 86_400.0, span.zone))
    return found


def _instants(day: date, minute: int, zone: tzinfo) -> list[float]:
    """When the clock shows this minute of the day: twice if it was set back."""
    local = datetime(day.year, day.month, day.day, tzinfo=zone) + timedelta(minutes=minute)
    return [local.replace(fold=fold).timestamp() for fold in (0, 1)]


def _clock_change(low: float, high: float, zone: tzinfo) -> float:
    """The moment between these two at which the clock is changed, to the second."""
    offset = _offset(low, zone)
    while high - low > 1.0:
        middle = (low + high) // 2
        if _offset(middle, zone) == offset:
            low = middle
        else:
            high = middle
    return high


def _offset(at: float, zone: tzinfo) -> timedelta | None:
    return datetime.fromtimestamp(at, zone).utcoffset()


@lru_cache(maxsize=1_000)
def active_hours(texts: tuple[str, ...]) -> ActiveHours:
    """The hours that these texts say; ValueError says what is wrong with them."""
    return ActiveHours(texts)


def _span(text: str) -> _Span:
    words = text.split()
    if len(words) not in (2, 3):
        raise ValueError(f"hours takes days, times and a time zone, as in {EXAMPLE}, not {text[:100]!r}")
    start, end = _times(words[1])
    return _Span(_days(words[0]), start, end, _zone(words[2]) if len(words) == 3 else UTC)


def _days(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in text.lower().split("+"):
        if part in _GROUPS:
            found += _GROUPS[part]
            continue
        first, dash, last = part.partition("-")
        begin, end = _day(first), _day(last if dash else first)
        found += [(begin + step) % 7 for step in range((end - begin) % 7 + 1)]
    return tuple(sorted(set(found)))


def _day(name: str) -> int:
    short = name[:3]
    if short in _WEEK and name in (short, _FULL[_WEEK.index(short)]):
        return _WEEK.index(short)
    raise ValueError(
        f"hours: {name[:100]!r} is no day: write daily, weekdays, weekends, mon, mon-thu or mon+wed, as in {EXAMPLE}"
    )


def _times(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    found = [_CLOCK.fullmatch(each) for each in (first, last)]
    minutes = [int(each[1]) * 60 + int(each[2] or 0) if each else -1 for each in found]
    is_clock = all(each and int(each[2] or 0) < 60 for each in found)
    if not dash or not is_clock or not 0 <= minutes[0] < _DAY or not 0 <= minutes[1] <= _DAY:
        raise ValueError(f"hours: {text[:100]!r} are no times: write 8-18, 8:30-17 or 22-6, as in {EXAMPLE}")
    if minutes[0] == minutes[1]:
        raise ValueError(f"hours: {text[:100]!r} begins and ends at the same time: the whole day is 0-24")
    return minutes[0], minutes[1]


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # also a name that leads out of the folder of zones
        zones = available_timezones()
    if not zones:
        raise ValueError("hours: this machine knows no time zones: pip install tzdata, or leave the zone out for UTC")
    raise ValueError(f"hours: {name[:100]!r} is no time zone: {near_names(name, zones)}")
