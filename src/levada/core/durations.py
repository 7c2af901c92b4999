"""Durations and times as text, for people and programs."""

from __future__ import annotations

from datetime import UTC, datetime

UNITS = (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0))
_FINER_BELOW = 10  # units: "2 h 5 min", but "14 h"


def duration(seconds: float) -> str:
    """A rounded duration: `45 s`, `12 min`, `2 h 5 min`, `3 d`."""
    left = abs(seconds)
    if left < 1:
        return "0 s" if left < 0.5 else "1 s"
    # Rounded in the unit that is shown, so that 59.7 s is 1 min and not 60 s.
    place = next(i for i, (_, size) in enumerate(UNITS) if round(left / size) >= 1 and left >= 0.995 * size)
    name, size = UNITS[place]
    whole = int(left // size)
    if whole >= _FINER_BELOW or place == len(UNITS) - 1 or name == "min":
        return f"{max(1, round(left / size))} {name}"
    finer, finer_size = UNITS[place + 1]
    whole, rest = divmod(round(left / finer_size), round(size / finer_size))
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


def _datetime(at: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(at, UTC)
    except (OverflowError, OSError, ValueError):
        return None
