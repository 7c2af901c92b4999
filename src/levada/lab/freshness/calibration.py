"""Calibration of the estimated share of current pages: a world replayed with the crawler's own policy.

One fetch per gap of the budget goes to the page that has been due longest, or to a new one in turn. At given moments
the estimate is compared with the share of the stored pages that really is current. Nothing is compiled: what decides
here is what decides in a crawl, with the dates that servers send.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from math import inf

import msgspec
from msgspec.structs import replace

from levada.core.protocols import RevisitPolicy
from levada.core.records import DiscoveredBy, Outcome, PageKind, PageRecord, PageState, Signals, Visit


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

    @property
    def gap(self) -> float:
        """The estimate less the actual share, in percentage points."""
        return 100.0 * (self.estimated - self.actual)


class _Replay:
    def __init__(self, documents: Sequence[Document], policy: RevisitPolicy) -> None:
        self.documents = documents
        self.policy = policy
        self.pages = [
            PageRecord(n, each.url, each.site, PageKind.PAGE, PageState.NEW, DiscoveredBy.LINK, 1, 0, each.begins)
            for n, each in enumerate(documents)
        ]
        self.stored: dict[int, float] = {}  # the last visit of each stored page
        self.visits = 0

    def visit(self, number: int, now: float) -> float | None:
        """Visit a page; returns when it is due again, None if it is gone."""
        document, page = self.documents[number], self.pages[number]
        if now >= document.ends:
            self.policy.estimates.forget(page)
            self.stored.pop(number, None)
            return None
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
        return now + plan.interval

    def look(self, at: float) -> CalibrationPoint | None:
        """The estimate beside the actual share; None while nothing is stored."""
        held = [(self.documents[number].changes, then) for number, then in self.stored.items()]
        estimated = self.policy.estimates.share(at)
        if not held or estimated is None:
            return None
        current = sum(bisect_right(changes, at) == bisect_right(changes, then) for changes, then in held)
        return CalibrationPoint(at, estimated, current / len(held), len(held), self.visits)


def _signals(outcome: Outcome) -> Signals:
    if outcome is Outcome.UNCHANGED:
        return Signals.NOT_MODIFIED
    return Signals.DATED | Signals.DATE_MOVED if outcome is Outcome.CHANGED else Signals.DATED


def calibrate(
    documents: Sequence[Document], policy: RevisitPolicy, gap: float, moments: Sequence[float]
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
        now = max(slot, min(new[0][0] if new else inf, due[0][0] if due else inf))
        if now >= moments[len(points)]:
            points.append(replay.look(moments[len(points)]))
            continue
        turn += 1
        first = bool(new) and new[0][0] <= now and (turn % 2 == 0 or not due or due[0][0] > now)
        _, number = heapq.heappop(new if first else due)
        again = replay.visit(number, now)
        if again is not None:
            heapq.heappush(due, (again, number))
        slot = now + gap
    return [point for point in points if point is not None]


def curve(points: Sequence[CalibrationPoint], unit: float = 60.0) -> str:
    """The points as lines of text, with the time in this unit after 0."""
    lines = ["    time  estimated  actual    gap   pages   visits"]
    lines += [
        f"{each.at / unit:8.1f}  {each.estimated:9.1%}  {each.actual:6.1%}  {each.gap:+5.1f}"
        f"  {each.pages:6}  {each.visits:7}"
        for each in points
    ]
    return "\n".join(lines)
