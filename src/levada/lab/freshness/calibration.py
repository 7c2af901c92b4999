"""Calibration of the estimated share of current pages: a world replayed with the crawler's own policy.

One fetch per gap of the budget goes to the page that has been due longest, or to a new one in turn. At given moments
the estimate is compared with the share of the stored pages that really is current. Nothing is compiled: what decides
here is what decides in a crawl, with the dates that servers send.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from statistics import fmean

import msgspec
from msgspec.structs import replace

from levada.core.records import DiscoveredBy, Outcome, PageKind, PageRecord, PageState, Signals, Visit
from levada.freshness import LearnedRevisit, PageEstimates, Scale
from levada.lab.freshness.worlds import LabWorld


class Document(msgspec.Struct, frozen=True):
    """A page of a replay: when it comes and goes, and when it changes, in seconds."""

    url: str
    site: str
    begins: float
    changes: Sequence[float]  # rising
    ends: float = inf
    created: float | None = None  # then its server sends Last-Modified, and 304 if nothing changed


class CalibrationPoint(msgspec.Struct, frozen=True):
    at: float
    estimated: float
    actual: float
    pages: int  # that are stored
    visits: int
    chance: float = 0.0  # the standard deviation of the actual share, if each page is current as likely as is said

    @property
    def gap(self) -> float:
        """The estimate less the actual share, in percentage points."""
        return 100.0 * (self.estimated - self.actual)


class _Replay:
    def __init__(self, documents: Sequence[Document], policy: LearnedRevisit) -> None:
        self.documents = documents
        self.policy = policy
        self.pages = [
            PageRecord(n, each.url, each.site, PageKind.PAGE, PageState.NEW, DiscoveredBy.LINK, 1, 0, each.begins)
            for n, each in enumerate(documents)
        ]
        self.stored: dict[int, float] = {}  # the last visit of each stored page
        self.planned: dict[int, float] = {}
        self.visits = 0
        self._of_site: dict[str, list[int]] = {}
        for n, each in enumerate(documents):
            self._of_site.setdefault(each.site, []).append(n)

    def visit(self, number: int, now: float) -> Iterable[int]:
        """Visit a page; returns the pages that are planned anew."""
        document, page = self.documents[number], self.pages[number]
        if now >= document.ends:
            self.policy.estimates.forget(page)
            self.stored.pop(number, None)
            return ()
        version = bisect_right(document.changes, now)
        outcome = Outcome.FIRST
        if number in self.stored:
            changed = version > bisect_right(document.changes, self.stored[number])
            outcome = Outcome.CHANGED if changed else Outcome.UNCHANGED
        modified = document.changes[version - 1] if version else document.created
        dated = modified if document.created is not None else None
        visit = Visit(now, outcome, 0.8, Signals.NOTHING if dated is None else _signals(outcome))
        plan = self.policy.plan(page, visit, dated)
        self.pages[number] = replace(
            page,
            state=PageState.LIVE,
            visits=page.visits + 1,
            history=(*page.history, visit)[-10:],
            interval=plan.interval,
            memory=plan.memory,
        )
        self.stored[number] = now
        self.visits += 1
        self.planned[number] = now + plan.interval
        return (number, *(self._brought_forward(document.site, now) if plan.site_changed else ()))

    def _brought_forward(self, site: str, now: float) -> Iterator[int]:
        """The other pages of a site that changed together with one of them, as in a crawl."""
        for each in self._of_site[site]:
            planned, wanted = (
                self.planned.get(each, -inf),
                self.policy.visit_after_hint(self.pages[each], Signals.NOTHING),
            )
            if planned > now and wanted is not None and max(now, wanted) < planned:
                self.planned[each] = max(now, wanted)
                yield each

    def look(self, at: float) -> CalibrationPoint | None:
        """The estimate beside the actual share; None while nothing is stored."""
        held = [(self.documents[number].changes, then) for number, then in self.stored.items()]
        estimated = self.policy.estimates.share(at)
        if not held or estimated is None:
            return None
        current = sum(bisect_right(changes, at) == bisect_right(changes, then) for changes, then in held)
        chance = self.policy.estimates.chance_deviation(at)
        return CalibrationPoint(at, estimated, current / len(held), len(held), self.visits, chance)


def _signals(outcome: Outcome) -> Signals:
    if outcome is Outcome.UNCHANGED:
        return Signals.NOT_MODIFIED
    return Signals.DATED | Signals.DATE_MOVED if outcome is Outcome.CHANGED else Signals.DATED


def calibrate(
    documents: Sequence[Document], policy: LearnedRevisit, gap: float, moments: Sequence[float]
) -> list[CalibrationPoint]:
    """Crawl these pages with at most one fetch per `gap` seconds, and look at each of the moments, in order."""
    replay = _Replay(documents, policy)
    new = [(each.begins, number) for number, each in enumerate(documents)]
    heapq.heapify(new)
    due: list[tuple[float, int]] = []
    points: list[CalibrationPoint | None] = []
    slot = min((begins for begins, _ in new), default=inf)
    turn = 0
    while len(points) < len(moments):
        while due and replay.planned.get(due[0][1]) != due[0][0]:  # planned anew since
            heapq.heappop(due)
        now = max(slot, min(new[0][0] if new else inf, due[0][0] if due else inf))
        if now >= moments[len(points)]:
            points.append(replay.look(moments[len(points)]))
            continue
        turn += 1
        first = bool(new) and new[0][0] <= now and (turn % 2 == 0 or not due or due[0][0] > now)
        _, number = heapq.heappop(new if first else due)
        replay.planned.pop(number, None)
        for each in replay.visit(number, now):
            heapq.heappush(due, (replay.planned[each], each))
        slot = now + gap
    return [point for point in points if point is not None]


_LOOKS = 10  # in each of the periods


def replayed(world: LabWorld, visits: int, periods: int = 12) -> list[CalibrationPoint]:
    """A world crawled with so many visits to each page, looked at ten times in each of the equal periods."""
    documents = [
        Document(f"/{n}", f"s{world.sites[n]}", begins, world.changes_of(n).tolist(), ends)
        for n, (begins, ends) in enumerate(zip(world.begins.tolist(), world.ends.tolist(), strict=True))
    ]
    gap = world.horizon / (visits * world.pages)
    policy = LearnedRevisit(PageEstimates(Scale.between(60.0, 30 * 86_400.0)), per_hour=3600.0 / gap)
    looks = _LOOKS * periods
    return calibrate(documents, policy, gap, [world.horizon * (n + 0.5) / looks for n in range(looks)])


def worst_period(points: Sequence[CalibrationPoint], periods: int = 12) -> float:
    """The mean gap of the period in which it is largest; points are missing at the beginning."""
    missing = _LOOKS * periods - len(points)
    grouped: dict[int, list[float]] = {}
    for n, point in enumerate(points, missing):
        grouped.setdefault(n // _LOOKS, []).append(point.gap)
    return max((fmean(gaps) for gaps in grouped.values()), key=abs, default=0.0)


def curve(points: Sequence[CalibrationPoint], unit: float = 60.0) -> str:
    """The points as lines of text, with the time in this unit after 0."""
    lines = ["    time  estimated  actual    gap  chance   pages   visits"]
    lines += [
        f"{each.at / unit:8.1f}  {each.estimated:9.1%}  {each.actual:6.1%}  {each.gap:+5.1f}  {100 * each.chance:6.1f}"
        f"  {each.pages:6}  {each.visits:7}"
        for each in points
    ]
    return "\n".join(lines)
