"""Freshness measured against the actual changes.

A copy is current until the page's first change after its visit; a visit sees the version of that moment. Freshness
and age are averages over page-time, from the start of a page to its end. The paper's three figures are per hour, by
its own definitions: its precision is not per fetch, and its efficiency rises when less is fetched.
"""

from __future__ import annotations

import msgspec
import numpy as np

from levada.core.compile_cache import compiled
from levada.lab.freshness.worlds import Booleans, Floats, Integers, LabWorld, Visits


class Measures(msgspec.Struct, frozen=True):
    """What a policy achieved in a world; durations in seconds."""

    fetches: int
    freshness: float  # share of page-time during which the copy was current
    age: float  # seconds since the first missed change, averaged over the page-time of pages that change
    caught: float  # share of changes that a visit found before the next change; 1 if there were none
    delay_p50: float | None  # seconds from a caught change to its visit; None if none was caught
    delay_p90: float | None
    changes_per_fetch: float


class Hour(msgspec.Struct, frozen=True):
    """One row of the paper's hourly table."""

    unique_urls: int
    fetches: int
    changed: int
    precision_percent: float
    coverage_percent: float
    efficiency: float | None  # None if nothing was visited


def measure(world: LabWorld, visits: Visits) -> Measures:
    """Measure the visits of a policy."""
    starts, at = _by_page(world, visits)
    fresh, stale, delays = compiled(_walk)(world.offsets, world.times, world.begins, world.ends, starts, at)
    life = np.maximum(world.ends - world.begins, 0.0)
    changing = np.diff(world.offsets) > 0
    p50, p90 = (float(each) for each in np.quantile(delays, (0.5, 0.9))) if len(delays) else (None, None)
    return Measures(
        fetches=len(visits),
        freshness=_ratio(fresh.sum(), life.sum(), 1.0),
        age=_ratio(stale[changing].sum(), life[changing].sum(), 0.0),
        caught=_ratio(len(delays), len(world.times), 1.0),
        delay_p50=p50,
        delay_p90=p90,
        changes_per_fetch=_ratio(len(delays), len(visits), 0.0),
    )


def hourly(world: LabWorld, visits: Visits, first: float, hours: int) -> list[Hour]:
    """The paper's figures of each hour after `first` seconds; the first visit of a page is never a change."""
    met = met_changes(world, visits)
    rows = []
    for hour in range(hours):
        start = first + hour * 3600.0
        inside = (visits.at >= start) & (visits.at < start + 3600.0)
        unique, changed = len(np.unique(visits.page[inside])), int(met[inside].sum())
        row = Hour(
            unique_urls=unique,
            fetches=int(inside.sum()),
            changed=changed,
            precision_percent=100.0 * changed / world.pages,
            coverage_percent=100.0 * unique / world.pages,
            efficiency=(world.pages + changed + unique) / unique if unique else None,
        )
        rows.append(row)
    return rows


def met_changes(world: LabWorld, visits: Visits) -> Booleans:
    """For each visit whether it found another version than the previous visit of that page."""
    return np.asarray(compiled(_met)(world.offsets, world.times, visits.page, visits.at))


def _by_page(world: LabWorld, visits: Visits) -> tuple[Integers, Floats]:
    """The visits of page i are at[starts[i]:starts[i + 1]], in order of time."""
    order = np.argsort(visits.page, kind="stable")
    counts = np.bincount(visits.page, minlength=world.pages)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    return starts, visits.at[order]


def _ratio(part: float, whole: float, empty: float) -> float:
    return float(part / whole) if whole > 0 else empty


def _walk(
    offsets: Integers, times: Floats, begins: Floats, ends: Floats, starts: Integers, at: Floats
) -> tuple[Floats, Floats, Floats]:
    """Per page the seconds during which its copy was current, and its age summed over time; the delays of all
    caught changes. A page without a copy is as old as the time since it started."""
    pages = len(begins)
    fresh = np.zeros(pages)
    stale = np.zeros(pages)
    delays = np.empty(min(len(times), len(at)))
    caught = 0
    for page in range(pages):
        change, last = offsets[page], offsets[page + 1]
        missed = begins[page]  # since when the copy is out of date; infinite while it is current
        since = begins[page]
        for visit in range(starts[page], starts[page + 1] + 1):
            closing = visit == starts[page + 1]
            now = ends[page] if closing else at[visit]
            if now < begins[page] or (now > ends[page] and not closing):
                continue
            if missed == np.inf and change < last and times[change] <= now:
                missed = times[change]
            fresh[page] += max(0.0, min(now, missed) - since)
            if missed < now:
                stale[page] += (now - missed) * (now - missed) / 2
            if closing:
                break
            met = change
            while change < last and times[change] <= now:
                change += 1
            if change > met:
                delays[caught] = now - times[change - 1]
                caught += 1
            missed = np.inf
            since = now
    return fresh, stale, delays[:caught]


def _met(offsets: Integers, times: Floats, page: Integers, at: Floats) -> Booleans:
    change = offsets[:-1].copy()
    seen = np.zeros(len(offsets) - 1, np.bool_)
    met = np.zeros(len(at), np.bool_)
    for visit in range(len(at)):
        here = page[visit]
        before = change[here]
        while change[here] < offsets[here + 1] and times[change[here]] <= at[visit]:
            change[here] += 1
        met[visit] = seen[here] and change[here] > before
        seen[here] = True
    return met
