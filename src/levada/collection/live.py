"""Live status of a running crawl, rewritten every second for other processes."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from levada.core.balance import MethodLoad
from levada.core.reports import StageView

if TYPE_CHECKING:
    from levada.core.folder import DataFolder
    from levada.crawl.engine import Crawl

_SECOND = 1.0  # wall clock
_REMEMBERED = 60  # moments of each stage
_PACE = 10  # moments over which pages per second are computed
_SILENT = 10.0  # seconds without a write after which a crawl of another machine counts as dead


class StageMoment(msgspec.Struct, frozen=True, array_like=True):
    """A stage at one moment of the last minute."""

    queue: int
    busy: int
    on: int
    wanted: int


class LiveStatus(msgspec.Struct, frozen=True):
    """What a running crawl writes about itself."""

    pid: int
    at: float  # world time
    speed: float  # seconds of the world per second
    pages_per_second: float  # wall clock, over the last few seconds
    visits: int
    fetched: int
    stored: int
    unvisited: int
    due: int
    believed_current: float | None
    per_hour: int  # the budget; 0: none
    budget_used: float | None  # share of the budget since the crawl began
    failed: dict[str, int]  # by reason
    refused: dict[str, int]
    stages: tuple[StageView, ...] = ()
    history: dict[str, tuple[StageMoment, ...]] = {}  # by stage, a moment per second, the latest last
    balance: MethodLoad | None = None  # of the count workers
    paused: bool = False
    held: bool = False  # leasing waits because a queue is full
    plugin_failures: dict[str, int] = {}  # by setting and name
    offline: float | None = None  # since when nothing answers, because the network is down


class LiveStatusWriter:
    """Passes the status to `show` every second; `show` must be cheap."""

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

    async def run(self, crawl: Crawl) -> None:
        """Show the status every second until cancelled."""
        while True:
            self._show(self.status(crawl))
            await crawl.clock.sleep(_SECOND * crawl.speed)

    def status(self, crawl: Crawl) -> LiveStatus:
        now, progress, stats, views = crawl.clock.now(), crawl.progress, crawl.stats, crawl.stage_views()
        allowed = crawl.per_hour * (now - progress.started) / 3600.0
        for view in views:
            moments = self._history.setdefault(view.name, deque(maxlen=_REMEMBERED))
            moments.append(StageMoment(view.queue, view.busy, view.on, view.wanted))
        return LiveStatus(
            pid=self._pid,
            at=now,
            speed=crawl.speed,
            pages_per_second=self._pace(crawl.clock.monotonic() / crawl.speed, progress.visits),
            visits=progress.visits,
            fetched=progress.fetched,
            stored=stats.stored,
            unvisited=stats.unvisited,
            due=stats.due,
            believed_current=progress.estimates.share(now),
            per_hour=crawl.per_hour,
            budget_used=progress.fetched / allowed if allowed > 0 else None,
            failed=dict(progress.failed.most_common()),
            refused=dict(progress.refused.most_common()),
            stages=views,
            history={name: tuple(moments) for name, moments in self._history.items()},
            balance=self._balance(),
            paused=crawl.paused,
            held=crawl.held,
            plugin_failures=progress.plugin_failures(),
            offline=crawl.offline,
        )

    def _pace(self, wall: float, visits: int) -> float:
        self._visits.append((wall, visits))
        then, before = self._visits[0]
        return (visits - before) / (wall - then) if wall > then else 0.0


class _Written(LiveStatus, frozen=True, kw_only=True):
    host: str


class _Host(msgspec.Struct):
    host: str = ""


def live_content(status: LiveStatus) -> bytes:
    """The JSON of a status, with the name of this machine."""
    return msgspec.json.encode(_Written(host=gethostname(), **structs.asdict(status)))


def live_file_writer(folder: DataFolder, balance: Callable[[], MethodLoad | None]) -> LiveStatusWriter:
    """Keeps the status of this process's crawl in its folder."""
    return LiveStatusWriter(os.getpid(), lambda status: folder.save_live(live_content(status)), balance)


def read_live(path: Path) -> LiveStatus | None:
    """The last written status; None if the process that wrote it is gone."""
    try:
        content, written_at = path.read_bytes(), path.stat().st_mtime
        status, host = msgspec.json.decode(content, type=LiveStatus), msgspec.json.decode(content, type=_Host).host
    except (OSError, msgspec.MsgspecError):
        return None
    if host not in ("", gethostname()):  # another machine shares the folder: its processes cannot be checked
        return status if time.time() - written_at < _SILENT else None
    try:
        os.kill(status.pid, 0)  # a killed crawl leaves its last status behind
    except PermissionError:
        return status  # it runs for another user
    except (OSError, OverflowError):
        return None
    return status
