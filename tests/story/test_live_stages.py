"""The report's three stages at a fiftieth of its times, on a real RabbitMQ, under the simulator's controller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from levada.lab.stages.model import Model, StageModel, steps
from levada.lab.stages.runs import follow
from tests.needs import missing
from tests.servers.rabbitmq import Server
from tests.story.live_stages import SCANNER, SERVICES, LiveRun, live_rules, live_run
from tests.story.simulated_workers import CAPACITY

pytest_plugins = ["tests.servers.fixtures"]

MOST = (20, 100)
LEVELS = (0.06, 0.2, 0.1)  # scanners: 30, 100 and 50 jobs per second, which a machine of two cores carries easily
EACH = 4.0  # seconds of each load, in the simulator
STEADY = 9  # rounds: their median is what the controller wants
PATIENCE = 80.0  # seconds, before a test is given up


def simulated() -> Any:
    stages = tuple(StageModel(service=time, capacity=CAPACITY, entry=0.001 / 50, poll=0.002 / 50) for time in SERVICES)
    seconds = EACH * len(LEVELS)
    model = Model(stages=stages, load=steps(LEVELS, seconds), seconds=seconds, interval=SCANNER, hold=True)
    return follow(model, live_rules(MOST))


def settled_at(course: Any, number: int) -> list[float]:
    """The workers of each stage that the simulator settles at with this load."""
    late = (course.at >= EACH * (number + 0.5)) & (course.at < EACH * (number + 1))
    return [float(course.on[late, place].mean()) for place in range(2)]


def follows(run: LiveRun, targets: list[float]) -> bool:
    """Whether the live controller wants about as many workers of each stage as the simulator settles at."""
    latest = run.rounds[-STEADY:]
    if len(latest) < STEADY:
        return False
    wanted = [median(each.stages[place].wanted for each in latest) for place in range(2)]
    return all(abs(count - target) <= max(3.0, 0.3 * target) for count, target in zip(wanted, targets, strict=True))


@pytest.mark.timeout(300)
def test_workers_follow_the_load_as_the_simulator_says(rabbitmq: str, tmp_path: Path) -> None:
    course = simulated()

    async def story() -> LiveRun:
        async with live_run(rabbitmq, f"live-{tmp_path.name}", tmp_path / "done.db", MOST) as run:
            for number, level in enumerate(LEVELS):
                run.rounds.clear()
                async with asyncio.timeout(PATIENCE):
                    await run.make(level, partial(follows, run, settled_at(course, number)))
                for place in range(2):
                    assert max(each.stages[place].queue or 0 for each in run.rounds) <= CAPACITY / 2
            assert await run.drained(PATIENCE)
            return run

    run = asyncio.run(story())
    assert run.stored() == (run.made, run.made)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[Server, str]]:
    if not Server.installed():
        missing("rabbitmq is not installed: run tests/servers/install.sh as root, or install it yourself")
    server = Server()
    folder = tmp_path / "broker"
    folder.mkdir()
    try:
        yield server, server.start(folder)
    finally:
        server.stop()


@pytest.mark.timeout(300)
def test_killing_workers_and_the_broker_loses_nothing_and_doubles_nothing(
    broker: tuple[Server, str], tmp_path: Path
) -> None:
    server, address = broker

    async def story() -> None:
        async with live_run(address, "killed", tmp_path / "done.db", MOST) as run:
            revived = asyncio.Event()
            making = asyncio.create_task(run.make(0.1, revived.is_set))
            async with asyncio.timeout(PATIENCE):
                await run.stores(20)
                while not server.has_noted(run.queues):  # noqa: ASYNC110 - in a file: nothing tells us
                    await asyncio.sleep(0.05)
            for pool in run.pools:
                assert pool.process is not None
                pool.process.kill()
                await pool.process.wait()
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.revive)
            revived.set()
            await making
            held = [each for each in run.rounds if each.trouble]
            assert len({tuple(stage.wanted for stage in each.stages) for each in held}) == 1
            enough = run.made + 40
            await run.make(0.1, lambda: run.made >= enough)
            assert await run.drained(PATIENCE)
            kept, brought = run.stored()
            assert brought >= kept == run.made > 40  # some came twice, and are there once

    asyncio.run(story())
