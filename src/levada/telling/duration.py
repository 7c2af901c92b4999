"""How is time told to a person, and to a program?"""

from __future__ import annotations

from datetime import UTC, datetime

from levada.errors import BadQuery, UsageError
from levada.pages.query import Since, parse_query

__all__ = ["duration", "iso", "length_of_time", "moment", "relative", "since_moment"]

_UNITS = (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0))
_FINER_BELOW = 10  # of a unit: "2 h 5 min", but "14 h"


def duration(seconds: float) -> str:
    """About how long: `45 s`, `12 min`, `2 h 5 min`, `3 d`."""
    left = abs(seconds)
    if left < 1:
        return "0 s" if left < 0.5 else "1 s"
    # Rounded in the unit that is shown, so that 59.7 s is a minute and not 60 s.
    place = next(i for i, (_, size) in enumerate(_UNITS) if round(left / size) >= 1 and left >= 0.995 * size)
    name, size = _UNITS[place]
    whole = int(left // size)
    if whole >= _FINER_BELOW or place == len(_UNITS) - 1 or name == "min":
        return f"{max(1, round(left / size))} {name}"
    return _with_finer(left, place)


def _with_finer(left: float, place: int) -> str:
    name, size = _UNITS[place]
    finer, finer_size = _UNITS[place + 1]
    steps = round(left / finer_size)
    whole, rest = divmod(steps, round(size / finer_size))
    return f"{whole} {name} {rest} {finer}" if rest else f"{whole} {name}"


def relative(at: float, now: float) -> str:
    """`in 12 min`, `3 h ago`, `now`."""
    if abs(at - now) < 1:
        return "now"
    return f"in {duration(at - now)}" if at > now else f"{duration(now - at)} ago"


def moment(at: float) -> str:
    """`2026-11-15 14:34 UTC`."""
    known = _datetime(at)
    return known.strftime("%Y-%m-%d %H:%M UTC") if known else "unknown"


def iso(at: float | None) -> str | None:
    """ISO 8601 in UTC, to the millisecond."""
    known = None if at is None else _datetime(at)
    return known.isoformat(timespec="milliseconds").replace("+00:00", "Z") if known else None


def since_moment(typed: str, now: float) -> float:
    """What `7d`, `24h` or `2026-01-31` means, as `since:` does in a search."""
    try:
        (group,) = parse_query(f"since:{typed}", now).must
    except (BadQuery, ValueError):
        group = ()
    if len(group) == 1 and isinstance(group[0], Since):
        return group[0].at
    raise UsageError(f"--since {typed!r} is no time, such as 7d, 24h or 2026-01-31")


def length_of_time(typed: str, name: str) -> float:
    """What `90m`, `24h` or `7d` means, in seconds; `name` is what it was given as."""
    try:
        seconds = -since_moment(typed, 0.0) if typed[-1:].isalpha() else 0.0
    except UsageError:
        seconds = 0.0
    if not 0.0 < seconds <= 1e9:
        raise UsageError(f"{name} {typed[:50]!r} is no length of time, such as 90m, 24h, 7d or 2w")
    return seconds


def _datetime(at: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(at, UTC)
    except (OverflowError, OSError, ValueError):
        return None
