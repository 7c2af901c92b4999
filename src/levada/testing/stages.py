"""Contract suites of the stages: the controller, which says how many workers one gets, and their pool."""

from __future__ import annotations

import asyncio
import math
from contextlib import AbstractAsyncContextManager
from inspect import isawaitable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.stages import Controller, SizingRule, StageSample
from levada.testing.common import in_loop, properties

_PATIENCE = 30.0  # seconds for a change of size before a test fails
_property = properties()
Steps = list[tuple[float, int, int, int, int]]  # seconds, jobs waiting, busy workers, jobs arrived, jobs done
_counts = [st.integers(0, most) for most in (10_000, 60, 500, 500)]
_steps = st.lists(st.tuples(st.floats(0.01, 30.0), *_counts), max_size=40)


class ControllerContract:
    """The number of workers stays within its limits, and samples that make no sense change nothing.

    ```python
    class TestMyController(ControllerContract):
        def make(self, least: int, most: int) -> SizingRule:
            return my_rule(least=least, most=most)
    ```
    """

    def make(self, least: int, most: int) -> SizingRule:
        raise NotImplementedError

    @staticmethod
    def targets(rule: SizingRule, steps: Steps) -> list[int]:
        """The workers wanted after each step."""
        controller, found = Controller(rule), []
        at, arrived, done = 0.0, 0, 0
        for seconds, queue, busy, came, went in steps:
            at, arrived, done = at + seconds, arrived + came, done + went
            sample = StageSample(at=at, queue=queue, on=10, busy=busy, arrived=arrived, done=done)
            found.append(controller.workers_wanted(sample))
        return found

    @_property
    @given(_steps)
    def test_the_workers_wanted_are_within_the_limits(self, steps: Steps) -> None:
        assert all(2 <= wanted <= 50 for wanted in self.targets(self.make(2, 50), steps))

    @_property
    @given(_steps)
    def test_the_same_samples_give_the_same_workers(self, steps: Steps) -> None:
        assert self.targets(self.make(1, 50), steps) == self.targets(self.make(1, 50), steps)

    @_property
    @given(st.lists(st.builds(StageSample, **dict.fromkeys(("at", "queue", "on", "busy", "done"), st.floats()))))
    def test_no_sample_can_break_it(self, samples: list[StageSample]) -> None:
        controller = Controller(self.make(1, 20))
        assert all(1 <= controller.workers_wanted(sample) <= 20 for sample in samples)

    @pytest.mark.parametrize(
        "nonsense",
        [
            {"queue": math.nan},
            {"queue": -1.0},
            {"busy": math.inf},
            {"at": math.nan},
            {"at": 0.5},
            {"at": 1e12},
            {"done": 0.0},
            {"capacity": 0.0},
        ],
        ids=str,
    )
    def test_nonsense_holds_the_last_safe_size(self, nonsense: dict[str, float]) -> None:
        controller = Controller(self.make(1, 100))
        good = [
            StageSample(at=at, queue=20.0, on=10.0, busy=10.0, arrived=100 + 10 * at, done=90 + 10 * at)
            for at in (1.0, 2.0, 3.0)
        ]
        wanted = [controller.workers_wanted(each) for each in good][-1]
        assert not controller.trouble
        assert controller.workers_wanted(msgspec.structs.replace(good[-1], **({"at": 4.0} | nonsense))) == wanted
        assert controller.trouble

    def test_a_rule_names_its_limits_and_every_decision_has_a_reason(self) -> None:
        rule = self.make(3, 7)
        assert rule.name
        assert (rule.least, rule.most) == (3, 7)
        controller = Controller(rule)
        assert controller.why
        for at in range(5):
            controller.workers_wanted(StageSample(at=float(at), queue=10.0, on=3.0, busy=3.0))
            assert controller.why


class WorkforceContract:
    """A pool has the wanted size, within its limits, and a worker that is removed finishes its job.

    ```python
    class TestMyPool(WorkforceContract):
        most = 4

        @asynccontextmanager
        async def make(self) -> AsyncIterator[Workforce]:
            async with MyPool(most=4) as pool:
                yield pool
    ```
    """

    least = 0
    most = 4
    """The limits of the pools of `make`; other sizes are cut to them."""
    bounded = True
    """Whether the pool itself keeps to `most`, or only its controller."""

    def make(self) -> AbstractAsyncContextManager[Any]:
        """A new pool; closed when the block ends."""
        raise NotImplementedError

    async def job(self, pool: Any) -> None:
        """Give the pool one job, and wait for it. Pools that see no jobs need not override it."""

    async def poll(self, pool: Any) -> Any:
        seen = pool.poll()
        return await seen if isawaitable(seen) else seen

    async def resize(self, pool: Any, wanted: int) -> None:
        done = pool.resize(wanted)
        if isawaitable(done):
            await done

    async def reach(self, pool: Any, wanted: int, size: int) -> None:
        """Ask for the size each round, as an autoscaler does, until the pool has it."""
        async with asyncio.timeout(_PATIENCE):
            await self.resize(pool, wanted)
            while (await self.poll(pool)).on != size:
                await asyncio.sleep(0.005)
                await self.resize(pool, wanted)

    @in_loop
    async def test_as_many_are_on_as_were_wanted(self) -> None:
        async with self.make() as pool:
            for wanted in (self.least, self.most, max(self.least, 1), self.most, self.least):
                await self.reach(pool, wanted, wanted)

    @in_loop
    async def test_a_size_outside_the_limits_is_cut_to_them(self) -> None:
        async with self.make() as pool:
            for wanted, size in ((-3, self.least), (10**6 if self.bounded else self.most, self.most)):
                await self.reach(pool, wanted, size)

    @in_loop
    async def test_the_same_size_again_starts_no_worker(self) -> None:
        async with self.make() as pool:
            for _ in range(5):
                await self.resize(pool, self.most)
                assert (await self.poll(pool)).on <= self.most
            await self.reach(pool, self.most, self.most)

    @in_loop
    async def test_no_figure_is_negative_and_starting_workers_count_as_on(self) -> None:
        async with self.make() as pool:
            for wanted in (self.most, self.least, self.most):
                await self.resize(pool, wanted)
                seen = await self.poll(pool)
                assert all(getattr(seen, name) >= 0 for name in seen.__struct_fields__)
                assert seen.starting <= seen.on

    @in_loop
    async def test_jobs_are_done_while_the_pool_shrinks_and_grows(self) -> None:
        async with self.make() as pool:
            await self.resize(pool, self.most)
            jobs = [asyncio.ensure_future(self.job(pool)) for _ in range(20)]
            counts = []
            for wanted in (self.least, self.most, self.least, max(self.least, 1)):
                await asyncio.sleep(0)
                await self.resize(pool, wanted)
                seen = await self.poll(pool)
                counts.append((getattr(seen, "arrived", 0), getattr(seen, "done", 0)))
            async with asyncio.timeout(_PATIENCE):
                await asyncio.gather(*jobs)
            assert counts == sorted(counts)
            assert all(done <= arrived for arrived, done in counts)
