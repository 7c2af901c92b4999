"""Contract suite of the worker pool: the workers of one stage, which grow and shrink on demand."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from inspect import isawaitable
from typing import Any

from levada.testing.common import in_loop

_PATIENCE = 30.0  # seconds for a change of size before a test fails


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
