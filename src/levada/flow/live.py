"""How does a running crawl stand just now, for other processes? A small record, written anew every second."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

import msgspec

from levada.flow.balance import MethodLoad
from levada.flow.progress import Progress
from levada.flow.staffing import StageView
from levada.ports import Clock
from levada.records import Standing

__all__ = ["LiveBoard", "LiveStatus", "StageMoment", "Watched"]

_SECOND = 1.0  # of the wall
_REMEMBERED = 60  # moments of each stage
_PACE = 10  # moments over which pages per second are reckoned


class StageMoment(msgspec.Struct, frozen=True, array_like=True):
    """How a stage was a while ago."""

    queue: int
    busy: int
    on: int
    wanted: int


class LiveStatus(msgspec.Struct, frozen=True):
    pid: int
    at: float  # world time
    speed: float  # seconds of the world per second
    pages_per_second: float  # of the wall, over the last few seconds
    visits: int
    fetched: int
    stored: int
    unvisited: int
    due: int
    believed_current: float | None
    per_hour: int  # the budget; 0: none
    budget_used: float | None  # share of what it allowed since the crawl began
    failed: dict[str, int]  # by reason
    refused: dict[str, int]
    stages: tuple[StageView, ...] = ()
    history: dict[str, tuple[StageMoment, ...]] = {}  # by stage, a moment per second, the latest last
    balance: MethodLoad | None = None  # of the count workers
    paused: bool = False
    held: bool = False  # a queue is so full that nothing more is leased


class Watched(Protocol):
    """A crawl, on one machine or on several, as whoever looks sees it."""

    @property
    def clock(self) -> Clock: ...

    @property
    def speed(self) -> float: ...

    @property
    def progress(self) -> Progress: ...

    @property
    def standing(self) -> Standing: ...

    @property
    def per_hour(self) -> int: ...

    @property
    def paused(self) -> bool: ...

    @property
    def held(self) -> bool: ...

    def stage_views(self) -> tuple[StageView, ...]: ...


class LiveBoard:
    """`show` gets the status every second; what it does with it must be cheap."""

    def __init__(
        self,
        pid: int,
        show: Callable[[LiveStatus], None],
        balance: Callable[[], MethodLoad | None] = lambda: None,
    ) -> None:
        self._pid = pid
        self._show = show
        self._balance = balance
        self._visits: deque[tuple[float, int]] = deque(maxlen=_PACE + 1)
        self._history: dict[str, deque[StageMoment]] = {}

    async def run(self, crawl: Watched) -> None:
        """Until cancelled."""
        while True:
            self._show(self.status(crawl))
            await crawl.clock.sleep(_SECOND * crawl.speed)

    def status(self, crawl: Watched) -> LiveStatus:
        now, progress, standing, views = crawl.clock.now(), crawl.progress, crawl.standing, crawl.stage_views()
        self._remember(views)
        return LiveStatus(
            pid=self._pid,
            at=now,
            speed=crawl.speed,
            pages_per_second=self._pace(crawl.clock.monotonic() / crawl.speed, progress.visits),
            visits=progress.visits,
            fetched=progress.fetched,
            stored=standing.stored,
            unvisited=standing.unvisited,
            due=standing.due,
            believed_current=progress.beliefs.share(now),
            per_hour=crawl.per_hour,
            budget_used=_used(progress.fetched, crawl.per_hour, now - progress.started),
            failed=dict(progress.failed.most_common()),
            refused=dict(progress.refused.most_common()),
            stages=views,
            history={name: tuple(moments) for name, moments in self._history.items()},
            balance=self._balance(),
            paused=crawl.paused,
            held=crawl.held,
        )

    def _remember(self, views: tuple[StageView, ...]) -> None:
        for view in views:
            moments = self._history.setdefault(view.name, deque(maxlen=_REMEMBERED))
            moments.append(StageMoment(view.queue, view.busy, view.on, view.wanted))

    def _pace(self, wall: float, visits: int) -> float:
        self._visits.append((wall, visits))
        then, before = self._visits[0]
        return (visits - before) / (wall - then) if wall > then else 0.0


def _used(fetched: int, per_hour: int, seconds: float) -> float | None:
    return fetched / (per_hour * seconds / 3600.0) if per_hour and seconds > 0 else None
