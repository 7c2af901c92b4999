"""The report's three stages at a fiftieth of its times, on a real RabbitMQ, under the simulator's controller."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from levada.lab.stages.loads import steps
from levada.lab.stages.model import Model, StageModel
from levada.lab.stages.running import follow
from tests.servers.rabbitmq import Server
from tests.story.live_stages import PERIOD, SCANNER, SERVICES, LiveRun, live_rules, live_run
from tests.story.sleeping_workers import CAPACITY

pytest_plugins = ["tests.servers.fixtures"]

MOST = (20, 100)
LEVELS = (0.06, 0.2, 0.1)  # scanners: 30, 100 and 50 jobs per second, which a machine of two cores carries easily
EACH = 4.0  # seconds


def simulated() -> Any:
    stages = tuple(
        StageModel(service=time, capacity=CAPACITY, entry=0.001 / 50, poll=0.002 / 50) for time in SERVICES
    )
    seconds = EACH * len(LEVELS)
    model = Model(stages=stages, load=steps(LEVELS, seconds), seconds=seconds, interval=SCANNER, hold=True)
    return follow(model, live_rules(MOST))


def reached(at: list[float], workers: list[int], begin: float, target: float) -> float:
    """Seconds after a step until there are about as many as the simulator settles at."""
    near = max(3.0, 0.3 * target)
    for time, count in zip(at, workers, strict=True):
        if time >= begin and abs(count - target) <= near:
            return time - begin
    return float("inf")


async def steps_of(run: LiveRun) -> None:
    for level in LEVELS:
        await run.make(level, EACH)
    assert await run.drained(10.0)


def test_workers_follow_the_load_as_the_simulator_says(rabbitmq: str, tmp_path: Path) -> None:
    course = simulated()

    async def story() -> LiveRun:
        async with live_run(rabbitmq, f"live-{tmp_path.name}", tmp_path / "done.db", MOST) as run:
            await steps_of(run)
            return run

    run = asyncio.run(story())
    assert run.stored() == (run.made, run.made)
    at = [each.at - run.rounds[0].at for each in run.rounds]
    if median(later - earlier for earlier, later in pairwise(at)) > 3 * PERIOD:
        pytest.skip("nothing was lost; but this machine is too busy for two seconds to mean anything")
    for place in range(2):
        assert max(each.stages[place].queue or 0 for each in run.rounds) <= CAPACITY / 2
        live = [each.stages[place].wanted for each in run.rounds]
        for number in range(len(LEVELS)):
            begin = EACH * number
            settled = (course.at >= begin + EACH / 2) & (course.at < begin + EACH)
            target = float(course.on[settled, place].mean())
            in_simulator = reached(list(course.at), list(course.on[:, place]), begin, target)
            assert reached(at, live, begin, target) <= in_simulator + 2.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[Server, str]]:
    if not Server.installed():
        pytest.skip("rabbitmq is not installed: run tests/servers/install.sh as root, or install it yourself")
    server = Server()
    folder = tmp_path / "broker"
    folder.mkdir()
    try:
        yield server, server.start(folder)
    finally:
        server.stop()


# RabbitMQ (3.10) notes only after some seconds where a new quorum queue's log lies: one that dies before has no
# leader ever after, and has to be deleted by hand. Queues of a system that runs are older.
_SETTLED = 8.0


def test_killing_workers_and_the_broker_loses_nothing_and_doubles_nothing(
    broker: tuple[Server, str], tmp_path: Path
) -> None:
    server, address = broker

    async def story() -> None:
        async with live_run(address, "killed", tmp_path / "done.db", MOST) as run:
            making = asyncio.create_task(run.make(0.1, _SETTLED + 2.0))
            await run.stores(20)
            await asyncio.sleep(_SETTLED)
            for crew in run.crews:
                assert crew.process is not None
                crew.process.kill()
                await crew.process.wait()
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.revive)
            await making
            held = [each for each in run.rounds if each.trouble]
            assert len({tuple(stage.wanted for stage in each.stages) for each in held}) == 1
            await run.make(0.1, 1.0)
            assert await run.drained(40.0)
            kept, brought = run.stored()
            assert brought >= kept == run.made > 40  # some came twice, and are there once

    asyncio.run(story())
