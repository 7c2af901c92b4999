"""Retention: which versions of a page need not be kept. Pure; every store applies it."""

from __future__ import annotations

from collections.abc import Sequence

from levada.store.base import Retention

_DAY = 86_400.0
_WEEK = 7 * _DAY
_ALL_FOR = _DAY  # so old, every version is kept
_DAILY_FOR = 30 * _DAY  # so old, one per day; after that one per week


def expendable(kept: Sequence[tuple[int, float]], now: float, rules: Retention) -> list[int]:
    """The versions that may go, of (number, time) in any order. The newest, of the highest number, stays.

    Of each day or week, the newest version stays: it is what the page was at the end of that day. Applying the rules
    twice at the same time deletes nothing more, and what is kept later was kept earlier: so it does not matter how
    often the rules are applied in between.
    """
    kept = sorted(kept)
    candidates = kept[:-1]
    going: set[int] = set()
    if rules.versions:
        going.update(number for number, _ in candidates[: max(0, len(kept) - rules.versions)])
    if rules.seconds:
        going.update(number for number, at in candidates if at < now - rules.seconds)
    if rules.thin:
        newest_of: dict[tuple[str, int], int] = {}
        for number, at in kept:
            if (slot := _slot(at, now)) is not None:
                newest_of[slot] = number
        stay = set(newest_of.values())
        going.update(number for number, at in candidates if _slot(at, now) is not None and number not in stay)
    return sorted(going)


def is_expired(newest: float, now: float, rules: Retention) -> bool:
    """Whether a gone page, whose newest version is of that time, may be deleted as a whole."""
    return bool(rules.seconds) and newest < now - rules.seconds


def _slot(at: float, now: float) -> tuple[str, int] | None:
    """The day or week of which one version is kept; None for the last day. Days are those of UTC, and a day is as a
    whole one of the last thirty or not, or its newest version could go while an older one stays."""
    if at >= now - _ALL_FOR:
        return None
    if at // _DAY >= (now - _DAILY_FOR) // _DAY:
        return "day", int(at // _DAY)
    return "week", int(at // _WEEK)
