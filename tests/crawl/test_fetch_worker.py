"""A fetch worker with many messages in hand, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from levada.core.errors import BrokerAway
from levada.core.records import DiscoveredBy, Lease, PageKind, PageRecord, PageState
from levada.crawl.distributed.fetch_worker import FetchWorker
from levada.crawl.distributed.messages import FetchAnswer, FetchAnswers, QueueNames, ToFetch, ToStore, read_message
from levada.crawl.visits import Visitor
from tests.crawl.simulated_crawl import START, World, ema_policy, page, run_simulated

NAMES = QueueNames("0123456789abcdef")
SLOTS = 4


def lease(number: int) -> Lease:
    site = f"s{number}.example"
    record = PageRecord(number, f"http://{site}/", site, PageKind.PAGE, PageState.NEW, DiscoveredBy.SEED, 0, 0, START)
    return Lease(record, number, START + 10_000.0)


class Bench:
    """A worker of four slots whose pages take a second each, and what it sends."""

    def __init__(self, pages: int) -> None:
        self.world = World({lease(n).page.url: page(f"page {n}") for n in range(pages)}, seconds=1.0)
        clock = self.world.clock
        visitor = Visitor(self.world.web, self.world._parser, ema_policy(), clock, "levada")
        self.worker = FetchWorker(visitor, clock, NAMES, self._send, slots=SLOTS)
        self.stored: dict[int, float] = {}  # by token: when it was sent to the catalog
        self.answers: dict[int, FetchAnswer] = {}
        self.to: dict[int, str] = {}
        self.is_away = False

    async def _send(self, queue: str, body: bytes) -> None:
        await asyncio.sleep(0)
        if self.is_away:
            raise BrokerAway("away")
        if queue == NAMES.catalog:
            message = read_message(ToStore, body, NAMES.collection)
            assert message is not None
            for visited in message.visits:
                self.stored[visited.fetched.lease.token] = self.world.clock.now() - START
            return
        told = read_message(FetchAnswers, body, NAMES.collection)
        assert told is not None
        for answer in told.answers:
            assert answer.at is None or answer.token in self.stored, "answered before it was safe"
            self.answers[answer.token] = answer
            self.to[answer.token] = queue

    def message(self, *numbers: int, again: bool = False, until: float = 0.0, answers: str = "") -> Awaitable[None]:
        leases = tuple(lease(number) for number in numbers)
        body = ToFetch(collection=NAMES.collection, leases=leases, until=until, answers=answers)
        return self.worker(msgspec.msgpack.encode(body), again)

    def run(self, story: Callable[[], Awaitable[None]]) -> None:
        async def whole() -> None:
            running = asyncio.ensure_future(self.worker.run())
            await story()
            running.cancel()

        run_simulated(self.world.clock, whole)


def test_a_slow_page_holds_up_no_other_message() -> None:
    bench = Bench(30)
    bench.world.web.slow = {lease(0).page.url: 500.0}

    async def story() -> None:
        slow, *others = [asyncio.ensure_future(bench.message(2 * n, 2 * n + 1)) for n in range(15)]
        await asyncio.gather(*others)
        assert not slow.done()
        assert set(bench.answers) == set(range(1, 30)), "the neighbour in the message of the slow page waits for it"
        await slow

    bench.run(story)
    assert bench.stored[0] >= 500.0
    assert max(at for token, at in bench.stored.items() if token) < 100.0


def test_as_many_pages_are_fetched_at_once_as_there_are_slots_and_no_more() -> None:
    bench = Bench(40)
    most = 0

    async def look() -> None:
        nonlocal most
        while True:
            most = max(most, sum(bench.world.web._under_way.values()))
            await bench.world.clock.sleep(0.25)

    async def story() -> None:
        looking = asyncio.ensure_future(look())
        await asyncio.gather(*(bench.message(n) for n in range(40)))
        looking.cancel()

    bench.run(story)
    assert most == SLOTS
    assert len(bench.answers) == 40


def test_a_message_is_done_when_all_of_its_pages_are_sent_on() -> None:
    bench = Bench(3)

    async def story() -> None:
        bench.is_away = True
        message = asyncio.ensure_future(bench.message(0, 1, 2))
        await bench.world.clock.sleep(60.0)
        assert not message.done()
        assert bench.stored == {}
        bench.is_away = False
        await message
        assert set(bench.stored) == set(bench.answers) == {0, 1, 2}

    bench.run(story)
    assert len(bench.world.web.times) == 3, "what was fetched is not fetched again"


def test_while_nothing_can_be_sent_on_no_more_is_held_than_twice_the_slots() -> None:
    bench = Bench(40)

    async def story() -> None:
        bench.is_away = True
        messages = [asyncio.ensure_future(bench.message(n)) for n in range(40)]
        await bench.world.clock.sleep(100.0)
        assert len(bench.world.web.times) == 2 * SLOTS
        bench.is_away = False
        await asyncio.gather(*messages)

    bench.run(story)
    assert len(bench.stored) == 40


def test_told_to_stop_it_finishes_what_is_under_way_and_gives_the_rest_back() -> None:
    bench = Bench(10)

    async def story() -> None:
        message = asyncio.ensure_future(bench.message(*range(10)))
        await bench.world.clock.sleep(0.5)
        bench.worker.stop()
        await message

    bench.run(story)
    assert len(bench.world.web.times) == len(bench.stored) == SLOTS
    assert sum(answer.at is None for answer in bench.answers.values()) == 10 - SLOTS


def test_pages_that_come_again_or_too_late_are_given_back_to_the_scheduler_that_sent_them() -> None:
    bench = Bench(4)

    async def story() -> None:
        await bench.message(0, again=True, answers="mine")
        await bench.message(1, until=START - 1.0)
        await bench.message(2, until=START + 1.0)

    bench.run(story)
    assert bench.to == {0: "mine", 1: NAMES.answers, 2: NAMES.answers}
    assert {token: answer.at is None for token, answer in bench.answers.items()} == {0: True, 1: True, 2: False}
    assert bench.answers[1].here >= START, "by which the scheduler sees clocks that differ"
