"""Local transport: fetch slots, parser children and commits in the process of the crawl."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence

from levada.core.protocols import Parser
from levada.core.reasons import Reason
from levada.core.records import Lease, VisitResult
from levada.core.reports import StageSummary, StageView
from levada.core.settings import Settings
from levada.crawl.commits import Commits, FollowUp
from levada.crawl.hooks import PageHooks
from levada.crawl.scheduler import Scheduler
from levada.crawl.transport import Transport, UnderWay
from levada.crawl.visits import Fetched, Visited, Visitor
from levada.scale.autoscaler import Autoscaler, Stage, stage_rule
from levada.scale.pools import FetchSlots, InProcess

_SLOTS_AT_FIRST = 16  # until the autoscaler knows how long answers take
_WAITING = 4  # this part of all bytes may wait to be parsed or committed before fetching waits


class LocalTransport(Transport):
    """Visits pages in the process of the crawl.

    `stage_pools` are the stages after fetch that have workers; with None, all slots are always in use and nothing
    scales. A lease may end before its visit does. If the frontier has leased the page to this process again, the
    visit is committed under the new lease: only here are the leases of a page and its commit in one process.
    """

    def __init__(
        self,
        parser: Parser,
        *,
        on_committed: Callable[[Sequence[VisitResult]], None] = lambda visits: None,
        stage_pools: Sequence[Stage] | None = None,
        hooks: PageHooks | None = None,
    ) -> None:
        self._parser = parser
        self._listener = on_committed
        self._stage_pools = stage_pools
        self._hooks = hooks
        self._autoscaler: Autoscaler | None = None
        self._parsing = 0

    def attach(self, scheduler: Scheduler) -> None:
        ports, settings = scheduler.ports, scheduler.settings
        clock, speed, stages = ports.clock, settings.clock.speed, settings.stages
        self._scheduler, self._open, self._progress = scheduler, scheduler.open, scheduler.progress
        self._clock = clock
        self.slots = settings.fetch.slots
        self._most_bytes = settings.fetch.max_buffered_bytes // _WAITING
        self._visitor = Visitor(ports.fetcher, self._parser, ports.policy, clock, settings.politeness.agent)
        self._commits = Commits(
            ports, settings, scheduler.executor, scheduler.link_filter, self._committed, self._hooks
        )
        politeness_queue = scheduler.politeness_queue
        self._slots = FetchSlots(settings.fetch.slots, clock, speed, lambda: politeness_queue.startable(clock.now()))
        if self._stage_pools is not None:
            rule = stage_rule("fetch", stages, self._slots.most, settings.plugins)
            fetch = Stage("fetch", InProcess(self._slots), rule)
            self._slots.resize(_SLOTS_AT_FIRST)
            self._autoscaler = Autoscaler([fetch, *self._stage_pools], clock, speed=speed, budget=stages.budget or None)

    def settings_changed(self, settings: Settings) -> None:
        self._most_bytes = settings.fetch.max_buffered_bytes // _WAITING
        self._visitor.agent = settings.politeness.agent
        self._commits.settings_changed(settings)

    @property
    def held(self) -> bool:
        return self._autoscaler is not None and self._autoscaler.hold_source

    def has_room(self) -> bool:
        """Whether another fetch may begin: a slow parser, or too many bytes that wait, slows the fetching down."""
        slots = self._slots
        return (
            slots.free and slots.under_way + self._parsing < 2 * slots.most and self._open.held_bytes < self._most_bytes
        )

    def begin(self) -> None:
        self._slots.begin()

    def put_back(self) -> None:
        self._slots.end()

    async def visit(self, lease: Lease, refused: Reason | None) -> None:
        """Make the whole visit and add its result to the next commit."""
        rule = self._scheduler.rules.visit_rule(lease.page.url)
        if refused is None:
            fetched = await self._visitor.fetch(lease, rule)
        else:
            fetched = Fetched(lease, self._clock.now(), refused=refused)
        if not await self._scheduler.answered(fetched):
            self._slots.end()
            await self._scheduler.put_back(lease)
            return
        self._open.weigh(lease, len(fetched.response.body) if fetched.response is not None else 0)
        self._slots.end()
        self._parsing += 1
        self._scheduler.pump()
        visited = await self._visitor.read(fetched, rule)
        self._progress.answered(visited)
        result = await self._commits.decide(visited)
        self._parsing -= 1
        self._commits.put(self._open.under_newest(result))

    async def refuse(self, lease: Lease, reason: Reason) -> None:
        result = await self._commits.decide(Visited(Fetched(lease, self._clock.now(), refused=reason)))
        self._commits.put(self._open.under_newest(result))

    def beside(self) -> Iterator[Coroutine[None, None, None]]:
        if self._autoscaler is not None:
            yield self._autoscaler.run(self._scheduler.pump, lambda: self._scheduler.paused)

    async def run(self) -> None:
        await self._commits.run()

    def finish(self) -> None:
        self._commits.finish()

    def under_way(self) -> UnderWay:
        return UnderWay(self._slots.under_way, self._parsing, len(self._commits))

    def stage_views(self) -> tuple[StageView, ...]:
        return self._autoscaler.views if self._autoscaler is not None else ()

    async def summary(self) -> tuple[StageSummary, ...]:
        return await self._autoscaler.summary() if self._autoscaler is not None else ()

    def _committed(self, visits: Sequence[VisitResult], accepted: Sequence[bool]) -> None:
        committed = []
        for result, is_stored in zip(visits, accepted, strict=True):
            renewed = result if is_stored else self._open.under_newest(result)
            if renewed is not result:  # its lease ended on the way to the store and was renewed
                self._commits.put(renewed)
                continue
            self._open.close(result.lease)
            if is_stored:
                committed.append(result)
        for result in committed:
            self._progress.committed(result)
            # Due when the crawl began, because a crawl with `once` takes only what was due then.
            if work := self._commits.follow_up(result, self._progress.started):
                self._scheduler.start_and_finish(self._follow(work))
        self._listener(committed)
        self._scheduler.pump()
        self._scheduler.look_again()

    async def _follow(self, work: FollowUp) -> None:
        if await work():
            self._scheduler.look_again()
