"""Actual freshness of a crawler's collection, counted by the bundled web.

A stored copy is current while the page has not changed since its last visit. Freshness is the share of page-time
during which that held; a page without a copy is not current. The age of a copy is the time since the first change
that it misses (0 while current), averaged over the page-time during which there was a copy. A change is caught if
a visit came before the next one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from levada.demo.world import DemoWorld, Page

Visits = Iterable[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class ActualFreshness:
    pages: int
    fetches: int  # of these pages, after t0
    freshness: float  # share of page-time, 0 to 1
    fresh_at_end: float  # share of pages at t1
    changes: int  # that happened
    caught: int  # that a visit met
    mean_age: float  # seconds


@dataclass(slots=True)
class _Tally:
    current: float = 0.0
    held: float = 0.0
    age: float = 0.0
    caught: int = 0

    def add_copy(self, changes: Sequence[float], visit: float, begin: float, end: float) -> None:
        """A copy taken at `visit` that was the stored one from `begin` to `end`."""
        missed = bisect_right(changes, visit)
        stale_from = changes[missed] if missed < len(changes) else end
        self.held += end - begin
        self.current += max(0.0, min(stale_from, end) - begin)
        if stale_from < end:
            since = max(stale_from, begin)
            self.age += ((end - stale_from) ** 2 - (since - stale_from) ** 2) / 2


def _visits_by_page(world: DemoWorld, visits: Visits) -> dict[int, list[float]]:
    """Times of visits by page number, in order; addresses outside the world are left out."""
    by_url: dict[str, int | None] = {}
    times: dict[int, list[float]] = {}
    for url, at in visits:
        if url not in by_url:
            page = world.find(url)
            by_url[url] = None if page is None else page.number
        number = by_url[url]
        if number is not None:
            times.setdefault(number, []).append(at)
    for moments in times.values():
        moments.sort()
    return times


def measure(
    world: DemoWorld, visits: Visits, t0: float, t1: float, pages: Iterable[Page] | None = None
) -> ActualFreshness:
    """The actual freshness of a crawl with these visits (address, time); earlier visits are its copies at `t0`."""
    return _measure(world, _visits_by_page(world, visits), t0, t1, world.pages if pages is None else tuple(pages))


def _measure(
    world: DemoWorld, visits: Mapping[int, Sequence[float]], t0: float, t1: float, pages: Sequence[Page]
) -> ActualFreshness:
    if not t1 > t0:
        raise ValueError(f"the time measured must be longer than nothing: from {t0} to {t1}")
    tally = _Tally()
    fetches = changes = fresh = 0
    for page in pages:
        times = world.changes_between(page, world.origin - 1.0, t1)
        moments = visits.get(page.number, ())
        changes += len(times) - bisect_right(times, t0)
        fetches += bisect_right(moments, t1) - bisect_right(moments, t0)
        fresh += _is_fresh(times, moments, t1)
        _follow(tally, times, moments, t0, t1)
    whole = max(1, len(pages)) * (t1 - t0)
    return ActualFreshness(
        pages=len(pages),
        fetches=fetches,
        freshness=tally.current / whole,
        fresh_at_end=fresh / max(1, len(pages)),
        changes=changes,
        caught=tally.caught,
        mean_age=tally.age / tally.held if tally.held else 0.0,
    )


def _follow(tally: _Tally, changes: Sequence[float], visits: Sequence[float], t0: float, t1: float) -> None:
    """One page's life from t0 to t1: each visit's copy lasts until the next."""
    first = max(0, bisect_right(visits, t0) - 1)
    last = bisect_right(visits, t1)
    for i in range(first, last):
        end = visits[i + 1] if i + 1 < last else t1
        tally.add_copy(changes, visits[i], max(visits[i], t0), end)
        if i > 0 and visits[i] > t0:
            tally.caught += bisect_right(changes, visits[i]) > bisect_right(changes, visits[i - 1])


def _is_fresh(changes: Sequence[float], visits: Sequence[float], t: float) -> bool:
    seen = bisect_right(visits, t)
    return seen > 0 and bisect_right(changes, visits[seen - 1]) == bisect_right(changes, t)


def fresh_at(world: DemoWorld, visits: Visits, t: float, pages: Iterable[Page] | None = None) -> float:
    """The share of pages whose stored copy is current at this instant."""
    chosen = world.pages if pages is None else tuple(pages)
    times = _visits_by_page(world, visits)
    fresh = sum(
        _is_fresh(world.changes_between(page, world.origin - 1.0, t), times.get(page.number, ()), t) for page in chosen
    )
    return fresh / max(1, len(chosen))


def first_visits(visits: Visits) -> list[tuple[str, float]]:
    """Only the first visit to each address: the pass that found the pages."""
    first: dict[str, float] = {}
    for url, at in visits:
        first[url] = min(at, first.get(url, at))
    return list(first.items())


def round_robin(
    world: DemoWorld, t0: float, t1: float, fetches: int, pages: Iterable[Page] | None = None, *, first: Visits = ()
) -> ActualFreshness:
    """The actual freshness of a crawler that visits the pages in turn, evenly over time, with this many fetches.

    With `first` (the other crawler's first pass) it starts from the same copies at the same cost, and goes round
    with what is left of its fetches in what is left of the time: only the choice of revisits differs then.
    """
    chosen = world.pages if pages is None else tuple(pages)
    times = _visits_by_page(world, first)
    spent = sum(t0 < at <= t1 for moments in times.values() for at in moments)
    begin = max((at for moments in times.values() for at in moments if at <= t1), default=t0)
    begin = max(begin, t0)
    left = max(0, fetches - spent)
    # Pages are taken in the order of their first copies, the oldest first.
    order = sorted(chosen, key=lambda page: (times.get(page.number, [t0])[0], page.number))
    for turn in range(left if order else 0):
        at = begin + (t1 - begin) * (turn + 1) / (left + 1)
        times.setdefault(order[turn % len(order)].number, []).append(at)
    return _measure(world, times, t0, t1, chosen)
