"""Job queues of a real RabbitMQ: confirms, back-pressure, redelivery, queues that vanish."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable

import aio_pika
import pytest

from levada.core.clock import SystemClock
from levada.core.errors import BrokerAway, BrokerError, UsageError
from levada.engines.rabbitmq.connection import place
from levada.engines.rabbitmq.jobs import QueueJob, RabbitmqJobs
from levada.engines.rabbitmq.queues import RabbitmqWatch
from tests.servers.private import free_ports
from tests.servers.proxy import cuttable

pytest_plugins = ["tests.servers.fixtures"]


class Ends:
    """Both ends of a queue of its own."""

    def __init__(self, url: str, capacity: int = 0) -> None:
        self.queue = f"jobs-{secrets.token_hex(4)}"
        self.jobs = RabbitmqJobs(url, SystemClock(), {self.queue: capacity}, seconds=5.0)
        self.heard: list[bytes] = []
        self.watch = RabbitmqWatch(url, SystemClock(), seconds=5.0, hear=self.heard.append)


def with_ends(url: str, story: Callable[[Ends], Awaitable[None]], capacity: int = 0) -> None:
    async def run() -> None:
        ends = Ends(url, capacity)
        try:
            async with asyncio.timeout(40.0):
                await story(ends)
        finally:
            await ends.jobs.close()
            await ends.watch.close()

    asyncio.run(run())


async def waiting(ends: Ends) -> tuple[float, float]:
    (look,) = await ends.watch.poll([ends.queue])
    assert look is not None
    return look.waiting, look.consumers


async def until(asked: Callable[[], Awaitable[bool]]) -> None:
    while not await asked():  # noqa: ASYNC110
        await asyncio.sleep(0.02)


def test_what_waits_in_a_queue_is_taken_back(rabbitmq: str) -> None:
    async def story(ends: Ends) -> None:
        for n in range(3):
            await ends.jobs.publish(ends.queue, b"%d" % n, str(n))
        assert await ends.jobs.drain(ends.queue) == [b"0", b"1", b"2"]
        assert await ends.jobs.drain(ends.queue) == []

    with_ends(rabbitmq, story)


def test_a_full_queue_says_so_and_takes_more_when_there_is_room(rabbitmq: str) -> None:
    async def story(ends: Ends) -> None:
        accepted = [await ends.jobs.publish(ends.queue, b"x", str(n)) for n in range(8)]
        assert accepted[:3] == [True] * 3
        assert accepted[-1] is False  # a quorum queue may take one or two above its limit
        done: list[str] = []
        stopping = asyncio.Event()

        async def job(taken: QueueJob) -> None:
            done.append(taken.id)

        working = asyncio.create_task(ends.jobs.work(ends.queue, job, stopping))
        await ends.jobs.put(ends.queue, b"x", "last")
        await until(lambda: _is("last" in done))
        stopping.set()
        await working
        assert done == [str(n) for n in range(8) if accepted[n]] + ["last"]

    with_ends(rabbitmq, story, capacity=3)


async def _is(value: bool) -> bool:
    return value


def test_a_worker_told_to_stop_finishes_its_job_and_takes_no_other(rabbitmq: str) -> None:
    async def story(ends: Ends) -> None:
        for n in range(5):
            await ends.jobs.put(ends.queue, b"x", str(n))
        stopping, begun, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
        done: list[str] = []

        async def job(taken: QueueJob) -> None:
            begun.set()
            await go_on.wait()
            done.append(taken.id)

        working = asyncio.create_task(ends.jobs.work(ends.queue, job, stopping))
        await begun.wait()
        stopping.set()
        go_on.set()
        await working
        assert done == ["0"]
        await until(lambda: _four_left(ends))

    async def _four_left(ends: Ends) -> bool:
        return await waiting(ends) == (4, 0)

    with_ends(rabbitmq, story)


def test_a_job_that_failed_comes_again_and_says_so(rabbitmq: str) -> None:
    async def story(ends: Ends) -> None:
        await ends.jobs.put(ends.queue, b"x", "one")
        seen: list[bool] = []
        stopping = asyncio.Event()

        async def job(taken: QueueJob) -> None:
            seen.append(taken.again)
            if len(seen) == 1:
                raise BrokerAway("what it led to could not be passed on")
            stopping.set()

        await ends.jobs.work(ends.queue, job, stopping)
        assert seen == [False, True]

    with_ends(rabbitmq, story)


def test_a_queue_that_vanishes_is_told_as_none_and_made_anew_by_whoever_publishes(rabbitmq: str) -> None:
    async def story(ends: Ends) -> None:
        await ends.jobs.open()
        assert await waiting(ends) == (0, 0)
        async with await aio_pika.connect(rabbitmq) as connection:
            channel = await connection.channel()
            await channel.queue_delete(ends.queue)
        assert await ends.watch.poll([ends.queue]) == [None]
        await ends.jobs.put(ends.queue, b"x", "1")
        assert await waiting(ends) == (1, 0)

    with_ends(rabbitmq, story)


def test_reports_are_heard(rabbitmq: str) -> None:
    async def story(ends: Ends) -> None:
        await ends.jobs.open()
        await waiting(ends)
        await ends.jobs.report(b"hello")
        await until(lambda: _is(b"hello" in ends.heard))

    with_ends(rabbitmq, story)


def test_a_queue_of_another_kind_is_one_clear_line(rabbitmq: str) -> None:
    async def story(ends: Ends) -> None:
        async with await aio_pika.connect(rabbitmq) as connection:
            channel = await connection.channel()
            await channel.declare_queue(ends.queue, durable=True)
        with pytest.raises(BrokerError, match="exists with other settings"):
            await ends.jobs.open()

    with_ends(rabbitmq, story)


def test_a_cut_connection_loses_no_job(rabbitmq: str) -> None:
    port = int(rabbitmq.rsplit(":", 1)[1].strip("/"))

    async def run() -> None:
        async with cuttable(port, [4_000, 4_000, 6_000, 10**9]) as near:
            ends = Ends(rabbitmq.replace(str(port), str(near)))
            stopping, done = asyncio.Event(), set()

            async def job(taken: QueueJob) -> None:
                done.add(taken.id)
                if len(done) == 60:
                    stopping.set()

            async def offer(number: int) -> None:
                while True:
                    try:
                        if await ends.jobs.publish(ends.queue, b"x" * 100, str(number)):
                            return
                    except BrokerAway:
                        await asyncio.sleep(0.05)

            async with asyncio.timeout(40.0):
                working = asyncio.create_task(ends.jobs.work(ends.queue, job, stopping))
                for number in range(60):
                    await offer(number)
                await working
            await ends.jobs.close()
            assert len(done) == 60

    asyncio.run(run())


def test_a_worker_waits_for_a_broker_that_is_not_there_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        (port,) = free_ports(1)
        jobs = RabbitmqJobs(f"amqp://guest:guest@127.0.0.1:{port}/", SystemClock(), {"q": 0})
        stopping = asyncio.Event()

        async def job(taken: QueueJob) -> None: ...

        working = [asyncio.create_task(jobs.work("q", job, stopping)) for _ in range(3)]
        asyncio.get_running_loop().call_later(0.5, stopping.set)
        async with asyncio.timeout(20.0):
            await asyncio.gather(*working)

    asyncio.run(run())
    assert [record.name for record in caplog.records if "trying again" in record.message] == [
        "levada.engines.rabbitmq.jobs"
    ]


def test_nobody_there_is_told_as_away_again_and_again_without_dialling_each_time() -> None:
    async def run() -> None:
        (port,) = free_ports(1)
        watch = RabbitmqWatch(f"amqp://guest:guest@127.0.0.1:{port}/", SystemClock())
        for _ in range(3):
            with pytest.raises(BrokerAway, match=f"127.0.0.1:{port} does not answer"):
                await watch.poll(["q"])
        await watch.close()

    asyncio.run(run())


@pytest.mark.parametrize("url", ["", "http://localhost/", "amqp://localhost:x/"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="amqp://"):
        RabbitmqWatch(url, SystemClock())


@pytest.mark.parametrize(
    "url",
    ["http://u:s3cret@h:1/", "amqp://u:s3@cr/et@h:1/", "amqp://u:s3@cret@h/", "amqp://u:s3#cret@h/", "h:5672"],
)
def test_no_piece_of_a_password_is_taken_for_the_brokers_place(url: str) -> None:
    with pytest.raises(UsageError, match="a broker's address") as caught:
        place(url)
    assert "cr" not in str(caught.value)


def test_many_jobs_are_under_way_at_once_and_each_is_acknowledged_when_it_is_done(rabbitmq: str) -> None:
    async def story(ends: Ends) -> None:
        for n in range(5):
            await ends.jobs.put(ends.queue, b"x", str(n))
        stopping, go_on = asyncio.Event(), asyncio.Event()
        begun: list[str] = []
        done: list[str] = []

        async def job(taken: QueueJob) -> None:
            begun.append(taken.id)
            if taken.id == "0":
                await go_on.wait()
            done.append(taken.id)

        working = asyncio.create_task(ends.jobs.work(ends.queue, job, stopping, at_once=3))
        await until(lambda: _is(len(done) == 4))
        assert done == ["1", "2", "3", "4"], "the first one holds up no other"
        stopping.set()
        await asyncio.sleep(0)
        assert not working.done(), "told to stop, it finishes what it has"
        go_on.set()
        await working
        await until(lambda: _none_left(ends))

    async def _none_left(ends: Ends) -> bool:
        return await waiting(ends) == (0, 0)

    with_ends(rabbitmq, story)


def test_a_queue_for_one_alone_says_so_to_a_second_consumer(rabbitmq: str) -> None:
    async def story(ends: Ends) -> None:
        stopping = asyncio.Event()

        async def job(taken: QueueJob) -> None: ...

        first = asyncio.create_task(ends.jobs.work(ends.queue, job, stopping, alone=True))
        await until(lambda: _is_consumed(ends))
        other = RabbitmqJobs(rabbitmq, SystemClock(), {ends.queue: 0}, seconds=5.0)
        with pytest.raises(BrokerError, match="is for one alone"):
            await other.work(ends.queue, job, stopping, alone=True)
        stopping.set()
        await first
        await ends.jobs.close()
        stopping.clear()
        second = asyncio.create_task(other.work(ends.queue, job, stopping, alone=True))
        await until(lambda: _is_consumed(ends))  # the first one has gone
        stopping.set()
        await second
        await other.close()

    async def _is_consumed(ends: Ends) -> bool:
        (look,) = await ends.watch.poll([ends.queue])
        return look is not None and look.consumers == 1

    with_ends(rabbitmq, story)
