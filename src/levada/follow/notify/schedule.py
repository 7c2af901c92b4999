"""When waiting changes become a message: at once, gathered, as a digest, and never in quiet hours. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from levada.core.errors import UsageError
from levada.core.subscriptions import Schedule

_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_LOOKS = 4  # days ahead: a daily time comes within two, whatever a change of the clocks does
Minutes = int


def checked(schedule: Schedule) -> Schedule:
    """The schedule, if all of it can be understood; `UsageError` says what cannot."""
    _zone(schedule.zone)
    _minutes(schedule.at, "--at")
    if schedule.quiet:
        start, end = quiet_hours(schedule.quiet)
        if start == end:
            raise UsageError(f'--quiet must leave some time to tell: "{schedule.quiet}" is the whole day')
    return schedule


def release_at(schedule: Schedule, since: float, is_full: bool, now: float) -> float:
    """When changes that wait since then become a message; now or earlier: they do now."""
    if schedule.digest == "hourly":
        at = _next_hour(since, schedule.zone)
    elif schedule.digest == "daily":
        at = next_daily(since, schedule.at, schedule.zone)
    else:
        at = since if is_full else since + schedule.gather
    return quiet_until(schedule, max(at, now)) if schedule.quiet else at


def quiet_until(schedule: Schedule, at: float) -> float:
    """This time, or the end of the quiet hours that it lies in."""
    start, end = quiet_hours(schedule.quiet)
    zone = _zone(schedule.zone)
    local = datetime.fromtimestamp(at, zone)
    minute = local.hour * 60 + local.minute
    is_quiet = start <= minute < end if start < end else minute >= start or minute < end
    if not is_quiet:
        return at
    return _next_shown(at, end, zone, folds=(0, 1))


def next_daily(after: float, time: str, zone: str) -> float:
    """The first moment later than `after` at which a clock in the zone shows this time.

    On a day that skips the time, the moment at which the clocks are moved stands in for it; of a time that comes
    twice, the first counts.
    """
    return _next_shown(after, _minutes(time, "--at"), _zone(zone), folds=(0,))


def _next_shown(after: float, minutes: Minutes, zone: ZoneInfo, folds: Sequence[int]) -> float:
    day = datetime.fromtimestamp(after, zone).date() - timedelta(days=1)
    for ahead in range(_LOOKS):
        midnight = datetime(day.year, day.month, day.day, tzinfo=zone) + timedelta(days=ahead)
        wanted = midnight.replace(hour=minutes // 60, minute=minutes % 60)
        for fold in folds:
            moment = _moment(wanted.replace(fold=fold))
            if moment > after:
                return moment
    raise AssertionError("a daily time comes every day")


def _moment(wanted: datetime) -> float:
    """When clocks show this; if they skip it, when they are moved."""
    low, high = sorted((wanted.replace(fold=1).timestamp(), wanted.replace(fold=0).timestamp()))
    before = datetime.fromtimestamp(low, wanted.tzinfo).utcoffset()
    skipped = wanted.replace(fold=0).timestamp() > wanted.replace(fold=1).timestamp()
    if not skipped:
        return wanted.timestamp()
    while high - low > 1.0:
        middle = (low + high) / 2
        if datetime.fromtimestamp(middle, wanted.tzinfo).utcoffset() == before:
            low = middle
        else:
            high = middle
    return float(round(high))


def quiet_hours(typed: str) -> tuple[Minutes, Minutes]:
    """Start and end of `22:00-07:00`, in minutes of the day."""
    start, dash, end = typed.partition("-")
    if not dash:
        raise UsageError(f'--quiet must be like "22:00-07:00", not "{typed[:50]}"')
    return _minutes(start.strip(), "--quiet"), _minutes(end.strip(), "--quiet")


def local_zone() -> str:
    """The time zone of this machine by its name; UTC if it has none."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if not named:
        try:
            named = str(Path("/etc/localtime").readlink()).partition("zoneinfo/")[2]
        except OSError:
            named = ""
    try:
        found = ZoneInfo(named).key if named else "UTC"
        return "UTC" if found == "Etc/UTC" else found
    except (KeyError, ValueError, OSError):
        return "UTC"


def _next_hour(after: float, zone: str) -> float:
    """The next full hour of the zone, some of which are half an hour off."""
    offset = (datetime.fromtimestamp(after, _zone(zone)).utcoffset() or timedelta()).total_seconds()
    return after - (after + offset) % 3600.0 + 3600.0


def _minutes(typed: str, option: str) -> Minutes:
    found = _TIME.fullmatch(typed)
    if not found:
        raise UsageError(f'{option} takes a time of day such as "08:00", not "{typed[:50]}"')
    return int(found[1]) * 60 + int(found[2])


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise UsageError(f'"{name[:50]}" is no time zone that is known here: write one such as Europe/Lisbon') from None
