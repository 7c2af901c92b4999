"""Transport: how pages that are admitted reach those who visit them, and how the answers come back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING

import msgspec

from levada.core.protocols import Frontier
from levada.core.reasons import Reason
from levada.core.records import Lease
from levada.core.reports import StageSummary, StageView
from levada.core.settings import Settings

if TYPE_CHECKING:
    from levada.crawl.scheduler import Scheduler


class UnderWay(msgspec.Struct, frozen=True):
    """Pages between the politeness queue and the store."""

    fetching: int = 0
    parsing: int = 0
    to_commit: int = 0


class Transport(ABC):
    """How admitted pages reach a visitor, and how the answers come back.

    For every page the scheduler calls `begin` when its turn comes, then either `visit` or `put_back`. The transport
    reports the end with `answered`, `returned` or `lapsed`, and closes the lease.
    """

    poll = 60.0
    """Seconds after which the frontier is asked again although there was no news of new pages."""

    refill = 1
    """Pages are leased when fewer than this many times the fetch slots wait."""

    slots = 1
    """Exchanges that may be under way, by all who visit pages."""

    delay_from_answer = False
    """Whether the delay of a site counts from its answer, because a request may leave long after its turn began."""

    @property
    @abstractmethod
    def held(self) -> bool:
        """Whether leasing waits because a queue is full."""

    @abstractmethod
    def attach(self, scheduler: Scheduler) -> None:
        """Connect to the scheduler; called once, before anything else."""

    def settings_changed(self, settings: Settings) -> None:  # noqa: B027 -- workers elsewhere keep theirs
        """Make visits by these settings from now on, where that is possible."""

    def owns(self, site: str) -> bool:
        """Whether this scheduler may ask a site now, where several share the sites."""
        return True

    def lease(
        self, frontier: Frontier, now: float, limit: int, seconds: float, due: float | None
    ) -> Callable[[], list[Lease]]:
        """What leases pages of the sites of this scheduler, on the thread of the store."""
        return lambda: frontier.lease(now, limit, seconds, due)

    @abstractmethod
    def has_room(self) -> bool:
        """Whether the turn of another page may begin."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def put_back(self) -> None:
        """End a turn that was used for robots.txt."""

    @abstractmethod
    async def visit(self, lease: Lease, refused: Reason | None) -> None:
        """Have this page visited, or its refusal committed."""

    @abstractmethod
    async def refuse(self, lease: Lease, reason: Reason) -> None:
        """Have the refusal of a page committed that has no turn of its site."""

    @abstractmethod
    async def run(self) -> None:
        """Run until `finish`; what has gathered is committed or sent first."""

    @abstractmethod
    def finish(self) -> None: ...

    @abstractmethod
    def under_way(self) -> UnderWay: ...

    @abstractmethod
    def stage_views(self) -> tuple[StageView, ...]: ...

    async def summary(self) -> tuple[StageSummary, ...]:
        return ()

    def unsent(self, leases: list[Lease]) -> list[Lease]:
        """Those of the leases that no worker elsewhere has: they are released when the crawl ends."""
        return leases

    def beside(self) -> Iterable[Coroutine[None, None, None]]:
        """What else runs until the crawl ends; it is cancelled then."""
        return ()
