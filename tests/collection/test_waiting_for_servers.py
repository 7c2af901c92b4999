"""Servers that are away are waited for, and it is said once."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import TypeVar, cast

import pytest

from levada.collection.components import learn_again
from levada.collection.machines.waiting import PatientExecutor, Readiness, fact, persistently
from levada.core.errors import BrokerAway, StoreAway, StoreError, StoreFull
from levada.core.protocols import RevisitPolicy
from levada.core.records import PageRecord
from levada.crawl.executor import StoreExecutor
from tests.crawl.simulated_crawl import START, run_simulated
from tests.manual_clock import ManualClock

T = TypeVar("T")
AWAY = "PostgreSQL at db:5432/levada (schema levada) is away"


class Server:
    """Away for the first calls."""

    def __init__(self, *troubles: Exception) -> None:
        self._troubles = list(troubles)
        self.calls = 0

    def call(self) -> str:
        self.calls += 1
        if self._troubles:
            raise self._troubles.pop(0)
        return "done"


class InlineExecutor(PatientExecutor):
    """Without a thread: the clock moves only while everybody waits for it."""

    async def _call(self, operation: Callable[[], T]) -> T:
        await asyncio.sleep(0)
        return operation()


def with_executor(story: Callable[[InlineExecutor], Awaitable[T]], readiness: Readiness, *, patient: bool = True) -> T:
    clock = ManualClock(START)

    async def whole() -> T:
        executor = InlineExecutor(clock, readiness, patient=patient)
        try:
            return await story(executor)
        finally:
            executor.close()

    return run_simulated(clock, whole)


def test_a_call_is_made_again_until_the_server_answers_and_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    away = [StoreAway(f"{AWAY}: start again when the server runs")] * 20
    server, readiness = Server(*away, StoreFull("no space left")), Readiness()
    readiness.note("start")
    assert with_executor(lambda executor: executor.run(server.call), readiness) == "done"
    assert server.calls == 22
    assert [record.message for record in caplog.records] == [f"waiting: {AWAY}", "going on: the store"]
    assert readiness.trouble == ""


def test_while_it_waits_it_is_not_ready_and_told_to_end_it_ends() -> None:
    server, readiness = Server(*[StoreAway(f"{AWAY}: start again")] * 1_000), Readiness()
    readiness.note("start")

    async def story(executor: InlineExecutor) -> None:
        waiting = asyncio.ensure_future(executor.run(server.call))
        for _ in range(10):
            await executor._clock.sleep(1.0)
        assert readiness.trouble == AWAY
        executor.give_up()
        with pytest.raises(StoreAway):
            await waiting

    with_executor(story, readiness)
    assert server.calls < 20, "it waits longer and longer"


@pytest.mark.parametrize("patient", [True, False])
def test_what_waiting_cannot_cure_is_raised_at_once(patient: bool) -> None:
    server = Server(StoreError("password authentication failed") if patient else StoreAway(AWAY))
    with pytest.raises(StoreError):
        with_executor(lambda executor: executor.run(server.call), Readiness(), patient=patient)
    assert server.calls == 1


def attempts(*troubles: Exception) -> tuple[int, Readiness]:
    """How often it was tried to open what these say is away, and whether it is ready in the end."""
    clock, server, readiness = ManualClock(START), Server(*troubles), Readiness()

    async def attempt(is_open: Callable[[], None]) -> None:
        server.call()
        is_open()

    run_simulated(clock, lambda: persistently(attempt, asyncio.Event(), readiness, clock))
    return server.calls, readiness


def test_a_process_starts_when_its_servers_have_started(caplog: pytest.LogCaptureFixture) -> None:
    calls, readiness = attempts(StoreAway(f"{AWAY}: x"), BrokerAway("RabbitMQ does not answer"), StoreAway(AWAY))
    assert calls == 4
    assert readiness.trouble == ""
    assert sum("waiting" in record.message for record in caplog.records) == 1


def test_a_process_that_is_refused_does_not_start() -> None:
    with pytest.raises(StoreError, match="password"):
        attempts(StoreAway(AWAY), StoreError("password authentication failed"))


def test_told_to_stop_it_waits_for_nobody() -> None:
    clock, stop, readiness = ManualClock(START), asyncio.Event(), Readiness()

    async def attempt(is_open: Callable[[], None]) -> None:
        raise StoreAway(AWAY)

    async def story() -> None:
        waiting = asyncio.ensure_future(persistently(attempt, stop, readiness, clock))
        await clock.sleep(60.0)
        stop.set()
        await waiting

    run_simulated(clock, story)
    assert readiness.trouble == AWAY


def test_what_a_user_should_do_is_left_out_where_we_do_it() -> None:
    assert fact(StoreAway("PostgreSQL is away (no route): start again when the server runs; x")) == (
        "PostgreSQL is away (no route)"
    )


def test_what_others_stored_is_read_on_the_thread_of_the_store_and_learnt_where_the_estimates_are_used() -> None:
    used: list[str] = []

    class Sample:
        def live_pages(self) -> int:
            return 0

        def sample(self, one_in: int) -> Iterator[PageRecord]:
            used.append(threading.current_thread().name)
            return iter(())

    class Estimates:
        def learn(self, pages: Sequence[PageRecord], one_in: int) -> None:
            used.append(threading.current_thread().name)

    async def story() -> None:
        executor = StoreExecutor()
        policy = SimpleNamespace(estimates=Estimates())
        await learn_again(cast(RevisitPolicy, policy), Sample(), executor)
        executor.close()

    asyncio.run(story())
    assert used == ["store_0", threading.current_thread().name]
