"""Autoscaler: samples every stage, lets the chain decide, and resizes the worker pools.

One loop serves fetch slots, parser children and follower processes of a crawl, processes at a queue of RabbitMQ,
Deployments of Kubernetes, and KEDA. `levada.stages` decides the sizes; the loop adds one rule: the last worker of a
stage stays for a while after its last job, because starting it again costs more.

While the broker is away, a queue is missing or a sample is unsound, a stage keeps its size. That is logged once,
and once more when it is over. Pools get their size in every round, so a crashed worker is replaced.

All stages of a crawl use the controller of the settings. Our own controller also gets what is known about each stage's
workers. A fetch slot costs nothing and starts at once, so every page that waits for a slot gets one. A process takes a
moment to start, and a job is much shorter than that, so a queue is drained within a time instead.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from levada.core.clock import first_of
from levada.core.errors import BrokerError, LevadaError
from levada.core.protocols import Clock
from levada.core.reports import Round, StageRound, StageSummary, StageView, whole
from levada.core.settings import StagesSettings
from levada.scale.pools import InProcess, InProcessPool, WorkerPool
from levada.scale.sampler import StageSampler
from levada.scale.statistics import InProcessStatistics, JobStatistics, PoolStatistics, QueueStatistics
from levada.stages import Chain, SizingRule, StageSample, live_rule

log = logging.getLogger(__name__)


class Queues(Protocol):
    """The queues of a broker."""

    async def poll(self, names: Sequence[str]) -> list[QueueStatistics | None]:
        """The statistics for each name, None if there is no such queue; `BrokerError` if the broker is away."""
        ...


class Stage(msgspec.Struct, frozen=True):
    """A stage to scale: its workers, its sizing rule, and what is known about its jobs.

    The last worker stays for `idle` seconds after its last job. `queue` names the queue at the broker; it is empty
    for a pool that counts its own jobs. `reported` returns what the workers at that queue report at a given time.
    """

    name: str
    pool: WorkerPool
    rule: SizingRule
    idle: float = 0.0
    queue: str = ""
    reported: Callable[[float], JobStatistics | None] = lambda at: None
    sampler: StageSampler = msgspec.field(default_factory=StageSampler)


class _Seen(msgspec.Struct, frozen=True):
    """A stage in the current round; `trouble` says why its pool or its queue is unknown."""

    pool: PoolStatistics
    queue: float | None
    busy: float | None
    sample: StageSample
    trouble: str


class _History:
    """The rounds of one stage so far."""

    def __init__(self) -> None:
        self.is_decided = False  # whether any sample was sound
        self.trouble = ""
        self._rounds = self._sum = self._longest = self._decisions = self._most = 0
        self._least = sys.maxsize
        self._last = StageView("", 0, 0, 0, 0, 0)

    def add(self, view: StageView) -> None:
        self._rounds += 1
        self._sum += view.on
        self._least, self._most = min(self._least, view.on), max(self._most, view.on)
        self._longest = max(self._longest, view.queue)
        self._decisions += view.wanted != view.on
        self._last = view

    def summary(self, jobs: int) -> StageSummary:
        last = self._last
        return StageSummary(
            name=last.name,
            jobs=jobs,
            least=self._least,
            mean=round(self._sum / self._rounds, 2),
            most=self._most,
            longest_queue=self._longest,
            decisions=self._decisions,
            queue=last.queue,
            busy=last.busy,
            on=last.on,
            wanted=last.wanted,
            why=last.why,
        )


class Autoscaler:
    """Scales the stages of one chain, in the order in which a job passes them.

    All seconds are wall time: where the crawled world's time runs `speed` times as fast, workers do not. `budget`
    limits the workers of all stages together. `on_round` is called after every round, `on_hold` when the source
    must wait and when it may continue.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        clock: Clock,
        *,
        queues: Queues | None = None,
        speed: float = 1.0,
        budget: int | None = None,
        on_round: Callable[[Round], None] = lambda done: None,
        on_hold: Callable[[bool], None] = lambda held: None,
    ) -> None:
        self.stages = tuple(stages)
        self.views: tuple[StageView, ...] = ()
        self.hold_source = False
        self._chain = Chain([stage.rule for stage in stages], budget)
        self._clock = clock
        self._queues = queues
        self._speed = speed
        self._budget = budget
        self._on_round = on_round
        self._on_hold = on_hold
        self._at: float | None = None
        self._held = 0.0
        self._histories = [_History() for _ in stages]
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End `run` soon. A round in progress is finished, so no worker that is just being started is lost."""
        self._stopping.set()

    async def run(
        self, on_step: Callable[[], None] = lambda: None, is_paused: Callable[[], bool] = lambda: False
    ) -> None:
        """Run rounds until stopped or cancelled. `on_step` is called after each; missed rounds are skipped."""
        period = min(stage.rule.period for stage in self.stages) * self._speed
        due = self._clock.monotonic()
        while not self._stopping.is_set():
            await self.round(is_paused())
            on_step()
            due = max(due + period, self._clock.monotonic())
            await first_of(self._stopping, self._clock.sleep(due - self._clock.monotonic()))

    async def round(self, paused: bool = False) -> Round:
        """Sample, decide, resize. Time while the crawl is paused or the source held says nothing about rates."""
        queues, trouble = await self._poll_queues()
        at = self._clock.monotonic() / self._speed
        if self._at is not None and (paused or self.hold_source):
            self._held += max(0.0, at - self._at)
        self._at = at
        seen = [await self._observe(stage, queues, trouble, at) for stage in self.stages]
        sizes = self._chain.decide([each.sample for each in seen])
        if sizes.hold_source is not self.hold_source:
            self.hold_source = sizes.hold_source
            self._on_hold(self.hold_source)
        wanted = self._with_last_workers(sizes.wanted, seen, at)
        done = []
        for place, why in enumerate(sizes.why):
            if wanted[place] > sizes.wanted[place]:
                why += "; one stays a while"
            done.append(await self._apply(place, seen[place], wanted[place], why))
        self.views = tuple(each.view(now.pool.starting) for each, now in zip(done, seen, strict=True))
        for history, view in zip(self._histories, self.views, strict=True):
            history.add(view)
        result = Round(at, tuple(done), sizes.hold_source, trouble)
        self._on_round(result)
        return result

    async def summary(self) -> tuple[StageSummary, ...]:
        """How each stage was scaled. Jobs are counted now, and only by in-process pools."""
        if not self.views:
            return ()
        seen = [(await self._pool_statistics(stage))[0] for stage in self.stages]
        jobs = [whole(pool.done) if isinstance(pool, InProcessStatistics) else 0 for pool in seen]
        return tuple(each.summary(done) for each, done in zip(self._histories, jobs, strict=True))

    async def _poll_queues(self) -> tuple[dict[str, QueueStatistics | None], str]:
        names = [stage.queue for stage in self.stages if stage.queue]
        if self._queues is None or not names:
            return {}, ""
        try:
            return dict(zip(names, await self._queues.poll(names), strict=True)), ""
        except BrokerError as error:
            return {}, str(error)

    async def _observe(self, stage: Stage, queues: dict[str, QueueStatistics | None], trouble: str, at: float) -> _Seen:
        pool, wrong = await self._pool_statistics(stage)
        queue = queues.get(stage.queue)
        if stage.queue and queue is None:
            wrong = trouble or f"the queue {stage.queue} does not exist"
        jobs = stage.reported(at) if stage.queue else None
        sample = stage.sampler.sample(at, pool, queue, jobs, self._held)
        if isinstance(pool, InProcessStatistics):
            return _Seen(pool, pool.queue, pool.busy, sample, wrong)
        if queue is None:
            return _Seen(pool, None, None, sample, wrong)
        return _Seen(pool, sample.queue, sample.busy, sample, wrong)

    async def _pool_statistics(self, stage: Stage) -> tuple[PoolStatistics, str]:
        try:
            return await stage.pool.poll(), ""
        except (LevadaError, OSError) as error:
            return PoolStatistics(math.nan), str(error)

    def _with_last_workers(self, wanted: Sequence[int], seen: Sequence[_Seen], at: float) -> list[int]:
        kept = list(wanted)
        for place, (stage, now) in enumerate(zip(self.stages, seen, strict=True)):
            if not kept[place] and now.pool.on >= 1 and at - stage.sampler.worked_at < stage.idle:
                kept[place] = 1
        return kept if self._budget is None or sum(kept) <= self._budget else list(wanted)

    async def _apply(self, place: int, seen: _Seen, wanted: int, why: str) -> StageRound:
        stage, history, unsound = self.stages[place], self._histories[place], self._chain.controllers[place].trouble
        history.is_decided = history.is_decided or not unsound
        failed = ""
        if history.is_decided or not seen.pool.on > wanted:
            failed = await self._resize(stage, wanted)
        else:  # nothing is known yet: it keeps its workers
            wanted = whole(seen.pool.on)
        trouble = seen.trouble or failed or unsound
        if trouble and not history.trouble:
            words = "stage %s: %s; its size is held" if seen.trouble else "stage %s keeps its size: %s"
            log.warning(words, stage.name, trouble)
        elif history.trouble and not trouble:
            log.info("stage %s is in order again", stage.name)
        history.trouble = trouble
        if seen.trouble:
            why = f"holds at {wanted}: {trouble}"
        return StageRound(stage.name, seen.queue, seen.busy, whole(seen.pool.on), wanted, why, trouble)

    async def _resize(self, stage: Stage, wanted: int) -> str:
        try:
            await stage.pool.resize(wanted)
        except (LevadaError, OSError) as error:  # a process that cannot be started now may be later
            return str(error)
        return ""


_STARTUP = {"fetch": 0.0, "parse": 0.3, "index": 0.5, "count": 0.5, "render": 1.0}  # seconds
# Jobs last milliseconds, so each sample is clear: patience would only be late.
_SLOT: dict[str, float] = {"spare": 1.0, "patience": 0.0, "drain": 0.0, "cooldown": 2.0}
_CHILD: dict[str, float] = {"patience": 0.0, "drain": 0.25, "cooldown": 3.0}
# One at most, and any job that waits needs it.
_WRITER: dict[str, float] = {"patience": 0.0, "drain": 0.0, "cooldown": 3.0}
# A tab costs far more than a fetch: pages wait a little for those that are there.
_TAB: dict[str, float] = {"patience": 0.0, "drain": 2.0, "cooldown": 5.0}
_OURS = {"fetch": _SLOT, "parse": _CHILD, "index": _WRITER, "count": _WRITER, "render": _TAB}


class _LimitedPool(InProcessPool, Protocol):
    most: int


PluginTables = Mapping[str, Mapping[str, Any]]


def stage_rule(stage: str, settings: StagesSettings, most: int, tables: PluginTables | None = None) -> SizingRule:
    """The rule of a stage with at most `most` workers; `UsageError` if the least is more than that.

    `tables` are the options of plug-ins by name.
    """
    options: dict[str, Any] = {"period": settings.period, "startup": _STARTUP[stage]}
    if settings.controller == "feed-forward":
        options |= _OURS[stage]
    # A crawl with few slots may have fewer than the usual least.
    least = {"fetch": min(settings.min_fetch, most), "parse": settings.min_parse}.get(stage, 0)
    return live_rule(settings.controller, least, most, options, (tables or {}).get(settings.controller))


def stages_after_fetch(
    settings: StagesSettings,
    parser: _LimitedPool,
    indexer: InProcessPool,
    counter: InProcessPool | None = None,
    tables: PluginTables | None = None,
    renderer: _LimitedPool | None = None,
) -> list[Stage]:
    """Parse, index and count, in the order in which a page passes them; and render, which few pages pass."""
    pools: list[tuple[str, InProcessPool, int]] = [("parse", parser, parser.most), ("index", indexer, 1)]
    if counter is not None:
        pools.append(("count", counter, 1))
    if renderer is not None:
        pools.append(("render", renderer, renderer.most))
    return [
        Stage(name, InProcess(pool), stage_rule(name, settings, most, tables), settings.idle)
        for name, pool, most in pools
    ]
