"""Autoscaling of live queues: stages, pools and queues put together from a plan."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

import msgspec

from levada.core.clock import SystemClock
from levada.core.errors import UsageError
from levada.core.protocols import Clock
from levada.core.reports import Round
from levada.engines.rabbitmq.queues import RabbitmqWatch
from levada.scale.autoscaler import Autoscaler, Stage
from levada.scale.pools import LocalProcesses, RemoteWorkers, WorkerPool, parse_command
from levada.scale.reports import WorkerReports, read_report
from levada.scale.sampler import StageSampler
from levada.scale.statistics import JobStatistics
from levada.stages import Chain, SizingRule, live_rule

_MOST_STAGES = 100
_MOST_REMOTE = 1_000  # workers of a stage that runs elsewhere


class StagePlan(msgspec.Struct, frozen=True):
    """One stage as it is named on the command line; `command` runs a worker, or names a Deployment.

    With `most` 0 no worker is started here: those that run elsewhere do the work. `reports` is the name by which its
    workers report, if that is not its own.
    """

    name: str
    queue: str
    least: int
    most: int
    command: str = ""
    capacity: float = math.inf
    reports: str = ""

    @property
    def reported_as(self) -> str:
        return self.reports or self.name


class ControlPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `levada control` is told; `options` of the controller have one value, or one per stage."""

    url: str
    stages: tuple[StagePlan, ...]
    controller: str = "feed-forward"
    options: tuple[tuple[str, tuple[float, ...]], ...] = ()
    budget: int | None = None
    period: float = 1.0
    grace: float = 30.0
    assumed: float = 1.0
    keda: tuple[str, int] | None = None
    kubernetes: bool = False


def parse_stage(text: str, *, may_be_remote: bool = False) -> StagePlan:
    """`name=queue,least,most,command`; the command may hold commas. A remote stage has at most 0 workers here."""
    name, equals, rest = text.partition("=")
    queue, least, most, command = [*(part.strip() for part in rest.split(",", 3)), "", "", "", ""][:4]
    if not (equals and name.strip() and queue and least and most):
        raise UsageError(f"--stage {text[:200]!r} is not of the form name=queue,least,most,command")
    try:
        limits = int(least), int(most)
    except ValueError:
        raise UsageError(f"--stage {name}: least and most are whole numbers, not {least!r} and {most!r}") from None
    if not 0 <= limits[0] <= limits[1] or (limits[1] < 1 and not may_be_remote):
        raise UsageError(f"--stage {name}: workers must be 0 <= least <= most, not {least} to {most}")
    if len(queue.encode()) > 255 or len(name.strip()) > 200:
        raise UsageError(f"--stage {name[:50]}: a queue's name has at most 255 bytes, a stage's 200 letters")
    return StagePlan(name.strip(), queue, *limits, command)


async def autoscale(
    plan: ControlPlan,
    stop: asyncio.Event,
    *,
    seconds: float | None = None,
    on_round: Callable[[Round], None] = lambda done: None,
) -> None:
    """Scale the stages of the plan until `stop` is set, or for so many seconds."""
    async with open_control(plan, on_round=on_round) as autoscaler:
        await until_stopped(autoscaler.run(), stop, seconds, autoscaler.stop)


async def until_stopped(
    work: Coroutine[None, None, object], stop: asyncio.Event, seconds: float | None, *ends: Callable[[], None]
) -> None:
    """Await `work`; when `stop` is set or the time is up, call `ends`, which make it finish."""

    async def wait() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)
        for end in ends:
            end()

    waiting = asyncio.ensure_future(wait())
    try:
        await work
    finally:
        waiting.cancel()


@asynccontextmanager
async def open_control(
    plan: ControlPlan,
    *,
    on_round: Callable[[Round], None] = lambda done: None,
    hold: Callable[[bool], None] = lambda held: None,
    on_workers: Callable[[str, int], None] = lambda stage, workers: None,
    leads: Callable[[], bool] = lambda: True,
) -> AsyncIterator[Autoscaler]:
    """An autoscaler that is ready to run; on leaving, local workers finish their jobs and stop.

    `on_workers` is called with how many workers of a stage report, wherever they run. Of several processes that scale
    the same Deployments, the one that `leads` does.
    """
    clock = SystemClock()
    rules = _rules(plan)
    reports = WorkerReports(silence=max(10.0, 5 * plan.period))

    def hear(body: bytes) -> None:
        report = read_report(body)
        if report is not None:
            reports.add(report, clock.monotonic())

    async with AsyncExitStack() as closing:
        make_pool = await _pools(plan, clock, reports, closing)
        stages = []
        for each, rule in zip(plan.stages, rules, strict=True):
            reports.expect(each.reported_as)

            def reported(at: float, each: StagePlan = each) -> JobStatistics | None:
                found = reports.statistics(each.reported_as, at)
                on_workers(each.name, found.workers if found is not None else 0)
                return found

            pool = (
                make_pool(each, rule.startup)
                if each.most
                else RemoteWorkers(partial(reports.workers, each.reported_as))
            )
            closing.push_async_callback(pool.close)
            sampler = StageSampler(each.capacity, plan.assumed)
            stages.append(Stage(each.name, pool, rule, queue=each.queue, reported=reported, sampler=sampler))
        queues = RabbitmqWatch(plan.url, clock, hear=hear)
        closing.push_async_callback(queues.close)
        yield Autoscaler(stages, clock, queues=queues, budget=plan.budget, on_round=on_round, on_hold=hold)


def _rules(plan: ControlPlan) -> list[SizingRule]:
    if not 1 <= len(plan.stages) <= _MOST_STAGES:
        raise UsageError(f"name 1 to {_MOST_STAGES} stages: --stage name=queue,least,most,command")
    for what in ("name", "queue"):
        if len({getattr(stage, what) for stage in plan.stages}) < len(plan.stages):
            raise UsageError(f"two stages have the same {what}")
    for key, values in plan.options:
        if len(values) not in (1, len(plan.stages)):
            raise UsageError(f"{key}: one value, or one for each of the {len(plan.stages)} stages")
    rules = []
    for place, stage in enumerate(plan.stages):
        own = {key: values[place] if len(values) > 1 else values[0] for key, values in plan.options}
        most = stage.most or _MOST_REMOTE  # it is said how many there should be
        rules.append(live_rule(plan.controller, stage.least, most, {"period": plan.period, **own}))
    Chain(rules, plan.budget)  # refuses a budget that is too small before anything is started
    return rules


async def _pools(
    plan: ControlPlan, clock: Clock, reports: WorkerReports, closing: AsyncExitStack
) -> Callable[[StagePlan, float], WorkerPool]:
    """A function that makes a stage's pool (KEDA, Kubernetes or this machine), given its seconds to start."""
    if plan.keda is not None:
        from levada.scale.keda import DesiredSizes, KedaPool, KedaServer

        sizes = DesiredSizes()
        server = KedaServer(sizes, *plan.keda)
        await server.start()
        closing.push_async_callback(server.stop)
        return lambda stage, startup: KedaPool(stage.name, sizes, max(1, stage.least), clock, startup)
    if plan.kubernetes:
        from levada.scale.kubernetes import KubernetesApi, KubernetesPool

        api = KubernetesApi()
        return lambda stage, startup: KubernetesPool(stage.command.removeprefix("deployment/"), api, clock, startup)
    commands = {stage.name: parse_command(stage.command) for stage in plan.stages if stage.most}
    return lambda stage, startup: LocalProcesses(
        stage.name,
        commands[stage.name],
        clock,
        grace=plan.grace,
        startup=startup,
        is_busy=partial(reports.is_busy, stage.reported_as),
        on_end=partial(reports.ended, stage.reported_as),
        environment={"LEVADA_RABBITMQ": plan.url},
    )
