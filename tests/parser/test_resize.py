"""Parser children come and go while pages are read: every page is answered once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from random import Random
from struct import pack

from levada.core.errors import ParserDied
from levada.core.records import ParsedPage
from levada.parser.pool import ParserPool
from tests.parser.test_pool import ODD, in_pool, is_alive, outcomes, raw


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - of another process: nothing tells us
            await asyncio.sleep(0.005)


def resized(work: Callable[[ParserPool], Awaitable[None]], children: int = 4) -> None:
    in_pool(work, lambda: ParserPool(children, program=ODD))


def test_children_are_started_before_anybody_needs_them_if_somebody_says_so() -> None:
    async def work(pool: ParserPool) -> None:
        pool.resize(2)
        assert pool.poll().on == 2
        await until(lambda: pool.poll().starting == 0)
        assert len(pool.pids()) == 2
        pool.resize(99)
        assert pool.poll().on == 4

    resized(work)


def test_a_child_that_is_to_go_finishes_its_pages_first() -> None:
    async def work(pool: ParserPool) -> None:
        names = [f"page {n}" for n in range(60)]
        asked = asyncio.gather(*(pool.parse(raw(name)) for name in names))
        await until(lambda: pool.poll().busy > 0)
        pids = pool.pids()
        pool.resize(0)
        answers = await asked
        assert [answer.title for answer in answers] == names
        pool.resize(0)
        await until(lambda: not any(map(is_alive, pids)))
        assert pool.poll().on == 0
        assert (pool.poll().arrived, pool.poll().done) == (60, 60)

    resized(work)


def test_a_child_that_has_gone_is_replaced_as_soon_as_a_page_comes() -> None:
    async def work(pool: ParserPool) -> None:
        await pool.parse(raw("one"))
        first = pool.pids()
        pool.resize(0)
        await until(lambda: not pool.pids())
        assert (await pool.parse(raw("two"))).title == "two"
        assert len(pool.pids()) == 1
        assert pool.pids() != first

    resized(work)


def test_one_that_still_works_and_is_wanted_again_needs_no_start() -> None:
    async def work(pool: ParserPool) -> None:
        await pool.parse(raw("one"))
        pids = pool.pids()
        asked = asyncio.gather(*(pool.parse(raw(f"page {n}")) for n in range(40)))
        await asyncio.sleep(0)
        pool.resize(0)
        assert pool.poll().on <= 1
        pool.resize(1)
        assert pool.pids()[0] == pids[0]
        await asked
        assert pids[0] in pool.pids()

    resized(work, children=1)


def test_idle_children_go_first() -> None:
    async def work(pool: ParserPool) -> None:
        pool.resize(3)
        await until(lambda: pool.poll().starting == 0 and len(pool.pids()) == 3)
        waiting = asyncio.ensure_future(pool.parse(raw("wait")))
        await until(lambda: pool.poll().busy == 1)
        pool.resize(1)
        await until(lambda: len(pool.pids()) == 1)
        assert pool.poll().busy == 1
        waiting.cancel()

    resized(work)


def test_what_is_measured_adds_up() -> None:
    async def work(pool: ParserPool) -> None:
        await outcomes(pool, *(f"page {n}" for n in range(100)))
        busy = pool.poll()
        assert (busy.arrived, busy.done, busy.queue, busy.busy) == (100, 100, 0, 0)
        assert busy.work > 0
        pool.resize(0)
        await until(lambda: not pool.pids())
        assert pool.poll().work >= busy.work  # what those did that have gone counts

    resized(work)


def test_a_child_that_lies_about_its_work_is_not_believed() -> None:
    async def work(pool: ParserPool) -> None:
        await pool.parse(raw("one"))
        (child,) = pool._children
        before = pool.poll().work
        for lie in (float("nan"), float("inf"), -1.0, 1e300):
            os.pwrite(child._progress_marker.fileno(), pack("<d", lie), 8)
            assert before <= pool.poll().work < 60.0

    resized(work, children=1)


def test_children_that_cannot_start_are_no_stampede(capfd: object) -> None:
    async def work(pool: ParserPool) -> None:
        pool.resize(2)
        await until(lambda: pool.poll().on == 0)
        for _ in range(20):
            pool.resize(2)
            assert pool.poll().on == 0

    in_pool(work, lambda: ParserPool(2, program=("-c", "raise SystemExit(3)")))


def test_under_load_with_kills_every_page_is_answered_once() -> None:
    """Some hundred pages; now and then the pool is resized, a child is killed, or a page kills its own."""
    chance = Random(7)

    async def work(pool: ParserPool) -> None:
        names = [f"kill{n}" if n % 150 == 149 else f"page {n}" for n in range(600)]
        counted = [0] * len(names)
        answers: list[ParsedPage | BaseException | None] = [None] * len(names)

        async def ask(place: int) -> None:
            try:
                answers[place] = await pool.parse(raw(names[place]))
            except ParserDied as death:
                answers[place] = death
            counted[place] += 1

        asked = [asyncio.create_task(ask(place)) for place in range(len(names))]
        killed = 0
        while any(not task.done() for task in asked):
            await asyncio.sleep(0.02)
            if chance.random() < 0.3:
                pool.resize(chance.randrange(0, 4))
            ready = [child.process.pid for child in (*pool._children, *pool._leaving) if child.is_ready]
            if killed < 4 and ready and chance.random() < 0.1:
                os.kill(chance.choice(ready), signal.SIGKILL)
                killed += 1
        assert counted == [1] * len(names)
        dead = {place for place, answer in enumerate(answers) if isinstance(answer, ParserDied)}
        own = {place for place, name in enumerate(names) if name.startswith("kill")}
        assert own <= dead
        assert len(dead - own) <= killed  # at most the one page that a child was reading when it was killed
        for place, answer in enumerate(answers):
            assert place in dead or (isinstance(answer, ParsedPage) and answer.title == names[place])
        assert (pool.poll().arrived, pool.poll().done, pool.poll().queue) == (600, 600, 0)

    resized(work)
