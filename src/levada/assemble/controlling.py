"""Stages named on a command line in, a control loop over live queues out."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import msgspec

from levada.adapters.local_processes import LocalProcesses, parse_command
from levada.adapters.rabbitmq_watch import RabbitmqWatch
from levada.clock import SystemClock
from levada.errors import UsageError
from levada.flow.control import ControlLoop, Crew, Round, StageWatch
from levada.ports import Clock
from levada.stages import Chain, rule_named
from levada.stages.observing import StageObserver
from levada.stages.reports import ReportBook, read_report

__all__ = ["ControlPlan", "StagePlan", "open_control", "parse_stage"]

_MOST_STAGES = 100


class StagePlan(msgspec.Struct, frozen=True):
    """`command` is what runs a worker: words of a command, or the name of a Deployment."""

    name: str
    queue: str
    least: int
    most: int
    command: str = ""
    capacity: float = math.inf


class ControlPlan(msgspec.Struct, frozen=True, kw_only=True):
    """`options` of the controller: a value for all stages, or one for each."""

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


def parse_stage(text: str) -> StagePlan:
    """`name=queue,least,most,command`; the command may hold commas."""
    name, equals, rest = text.partition("=")
    queue, least, most, command = [*(part.strip() for part in rest.split(",", 3)), "", "", "", ""][:4]
    if not (equals and name.strip() and queue and least and most):
        raise UsageError(f"--stage {text[:200]!r} is not of the form name=queue,least,most,command")
    try:
        limits = int(least), int(most)
    except ValueError:
        raise UsageError(f"--stage {name}: least and most are whole numbers, not {least!r} and {most!r}") from None
    if not 0 <= limits[0] <= limits[1] or limits[1] < 1:
        raise UsageError(f"--stage {name}: workers must be 0 <= least <= most, not {least} to {most}")
    if len(queue.encode()) > 255 or len(name.strip()) > 200:
        raise UsageError(f"--stage {name[:50]}: a queue's name has at most 255 bytes, a stage's 200 letters")
    return StagePlan(name.strip(), queue, *limits, command)


@asynccontextmanager
async def open_control(
    plan: ControlPlan,
    *,
    clock: Clock | None = None,
    on_round: Callable[[Round], None] = lambda done: None,
    hold: Callable[[bool], None] = lambda held: None,
) -> AsyncIterator[ControlLoop]:
    """A loop that is ready to run; on leaving, local workers finish their jobs and stop."""
    clock = clock or SystemClock()
    chain = _chain(plan)
    book = ReportBook(silence=max(10.0, 5 * plan.period))
    async with AsyncExitStack() as closing:
        startups = {
            stage.name: each.rule.startup for stage, each in zip(plan.stages, chain.controllers, strict=True)
        }
        crew_of = await _crews(plan, clock, book, closing, startups)
        watches = []
        for stage in plan.stages:
            book.expect(stage.name)
            crew = crew_of(stage)
            closing.push_async_callback(crew.close)
            observer = StageObserver(stage.capacity, plan.assumed)
            watches.append(StageWatch(stage.name, stage.queue, crew, observer, partial(book.look, stage.name)))

        def hear(body: bytes) -> None:
            report = read_report(body)
            if report is not None:
                book.hear(report, clock.monotonic())

        queues = RabbitmqWatch(plan.url, clock, hear=hear)
        closing.push_async_callback(queues.close)
        yield ControlLoop(watches, chain, queues, clock, plan.period, on_round=on_round, hold=hold)


def _chain(plan: ControlPlan) -> Chain:
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
        rules.append(rule_named(plan.controller, stage.least, stage.most, {"period": plan.period, **own}))
    return Chain(rules, plan.budget)


async def _crews(
    plan: ControlPlan, clock: Clock, book: ReportBook, closing: AsyncExitStack, startups: Mapping[str, float]
) -> Callable[[StagePlan], Crew]:
    """Who runs the workers: KEDA, Kubernetes, or we ourselves."""
    if plan.keda is not None:
        from levada.adapters.keda import KedaServer, KedaWishes
        from levada.adapters.keda.wishes import KedaCrew

        wishes = KedaWishes()
        server = KedaServer(wishes, *plan.keda)
        await server.start()
        closing.push_async_callback(server.stop)
        return lambda stage: KedaCrew(stage.name, wishes, max(1, stage.least), clock, startups[stage.name])
    if plan.kubernetes:
        from levada.adapters.kubernetes_scale import KubernetesApi, KubernetesCrew

        api = KubernetesApi()
        return lambda stage: KubernetesCrew(
            stage.command.removeprefix("deployment/"), api, clock, startups[stage.name]
        )
    commands = {stage.name: parse_command(stage.command) for stage in plan.stages}
    environment = {"LEVADA_RABBITMQ": plan.url}
    return lambda stage: LocalProcesses(
        stage.name,
        commands[stage.name],
        clock,
        grace=plan.grace,
        startup=startups[stage.name],
        is_busy=partial(book.is_busy, stage.name),
        on_end=partial(book.ended, stage.name),
        environment=environment,
    )
