"""A crawl by several workers over a transport that loses, repeats and delays messages, in simulated time."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.collection.live import LiveStatusWriter
from levada.core.commands import AddSeeds, ChangeBudget, DropSite, Pause, Resume
from levada.core.errors import BrokerAway
from levada.core.protocols import Frontier
from levada.core.reasons import Reason
from levada.core.records import (
    CollectionStats,
    DiscoveredBy,
    FoundUrl,
    Lease,
    PageKind,
    PageRecord,
    PageState,
    ParsedPage,
    Response,
)
from levada.core.reports import Round, StageRound
from levada.crawl.commits import CommitPorts, CrawlPorts, Overview
from levada.crawl.distributed.catalog_worker import CatalogWorker
from levada.crawl.distributed.fetch_worker import FetchWorker
from levada.crawl.distributed.messages import (
    FetchAnswer,
    FetchAnswers,
    QueueNames,
    ToFetch,
    ToStore,
    pack,
    read_message,
    without_body,
)
from levada.crawl.distributed.transport import RabbitmqTransport
from levada.crawl.engine import Crawl
from levada.crawl.visits import Fetched, Visited, Visitor
from levada.pages.urls import site_of
from tests.crawl.simulated_crawl import START, World, _InlineKeeper, ema_policy, page, run_simulated, status
from tests.in_memory import MemoryCommandQueue

NAMES = QueueNames("0123456789abcdef")
LONG = 3_000.0  # seconds of the simulated world


class Line:
    """Queues in memory; `troubled` is asked what becomes of each message."""

    def __init__(self, capacity: int, troubled: Callable[[], str]) -> None:
        self.queues: dict[str, deque[tuple[bytes, bool]]] = defaultdict(deque)
        self._capacity = capacity
        self._troubled = troubled
        self.news = asyncio.Event()
        self.is_away = False
        self.most = 0
        self.sent: Counter[str] = Counter()

    async def publish(self, queue: str, body: bytes) -> bool:
        await asyncio.sleep(0)
        if self.is_away:
            raise BrokerAway("away")
        if queue == NAMES.fetch and len(self.queues[queue]) >= self._capacity:
            return False
        self.sent[queue] += 1
        what = self._troubled()
        for _ in range({"lost": 0, "twice": 2}.get(what, 1)):
            self.queues[queue].append((body, what == "again"))
        self.most = max(self.most, len(self.queues[NAMES.fetch]))
        self.news.set()
        return True

    async def put(self, queue: str, body: bytes) -> None:
        assert await self.publish(queue, body)

    async def work(self, queue: str, job: Callable[[bytes, bool], Awaitable[None]]) -> None:
        while True:
            while not self.queues[queue]:
                self.news.clear()
                await self.news.wait()
            await job(*self.queues[queue].popleft())

    async def work_many(self, queue: str, job: Callable[[bytes, bool], Awaitable[None]]) -> None:
        """Every message at once, as it comes."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                while not self.queues[queue]:
                    self.news.clear()
                    await self.news.wait()
                tasks.create_task(job(*self.queues[queue].popleft()))  # type: ignore[arg-type]


class Several:
    def __init__(self, world: Web, capacity: int = 100, troubled: Callable[[], str] = lambda: "") -> None:
        self.world = world
        self.line = Line(capacity, troubled)
        self.executor = _InlineKeeper()
        world.store.add(
            [FoundUrl(url, site_of(url), how=DiscoveredBy.SEED, admit=True) for url in world.starts], [], START
        )
        self.commands, policy = MemoryCommandQueue(), ema_policy()
        store = world.store
        ports = CrawlPorts(world.clock, store, store, store, policy, store, world.web, self.commands)
        self.transport = RabbitmqTransport(NAMES, self.line.publish)
        self.crawl = Crawl(ports, world.settings, self.transport, executor=self.executor, watch=1.0)

    def run(self, seconds: float = LONG, meanwhile: Callable[[], Awaitable[None]] | None = None) -> None:
        async def story() -> None:
            jobs: list[asyncio.Future[object]] = [asyncio.ensure_future(self.crawl.run())]
            jobs.append(asyncio.create_task(self.line.work(NAMES.answers, self.transport.receive)))
            for fetcher in [self._fetcher() for _ in range(3)]:
                jobs.append(asyncio.create_task(fetcher.run()))
                jobs.append(asyncio.create_task(self.line.work_many(NAMES.fetch, fetcher)))
            for _ in range(2):
                worker = self._catalog()
                jobs.append(asyncio.create_task(worker.run()))
                jobs.append(asyncio.create_task(self.line.work(NAMES.catalog, worker)))
            if meanwhile is not None:
                jobs.append(asyncio.ensure_future(meanwhile()))
            await self.world.clock.sleep(seconds)
            self.crawl.stop()
            await jobs[0]
            for job in jobs:
                job.cancel()
            results = await asyncio.gather(*jobs, return_exceptions=True)
            assert [each for each in results if isinstance(each, Exception)] == []

        run_simulated(self.world.clock, story)
        self.executor.close()

    def _fetcher(self) -> FetchWorker:
        world = self.world
        visitor = Visitor(world.web, world._parser, ema_policy(), world.clock, "levada")
        return FetchWorker(visitor, world.clock, NAMES, self.line.put)

    def _catalog(self) -> CatalogWorker:
        store = self.world.store
        ports = CommitPorts(self.world.clock, store, store, store, ema_policy(first=86_400.0))
        return CatalogWorker(ports, self.world.settings, NAMES.collection, self.executor)


class Web(World):
    """Two sites of pages that name each other, one page closed by robots.txt."""

    def __init__(self, settings: str = "[politeness]\ndelay = 1\n") -> None:
        web: dict[str, Response] = {}
        self.starts: tuple[str, ...] = ("http://a.example/", "http://b.example/")
        self.expected = []
        for site in ("a.example", "b.example"):
            web[f"http://{site}/robots.txt"] = status(200, b"User-agent: *\nDisallow: /closed\n")
            names = [f"/{n}" for n in range(12)]
            for name in ["/", *names]:
                web[f"http://{site}{name}"] = page(f"{site} {name}", *names, "/closed")
                self.expected.append(f"http://{site}{name}")
        super().__init__(web, f"[crawl]\nsitemaps = false\n{settings}")


def visits_of(world: Web) -> list[tuple[int, int]]:
    found = [world.store.page(url) for url in world.expected]
    return [(each.visits, each.version) for each in found if each is not None]


def assert_all_once(world: Web) -> None:
    assert visits_of(world) == [(1, 1)] * len(world.expected)
    closed = world.store.page("http://a.example/closed")
    assert closed is None or closed.state in (PageState.REFUSED, PageState.NEW)
    assert not any("closed" in url for _, url in world.web.times)


def assert_polite(world: Web, delay: float) -> None:
    by_site = defaultdict(list)
    for at, url in world.web.times:
        by_site[site_of(url)].append(at)
    for times in by_site.values():
        assert min(later - earlier for earlier, later in pairwise(times)) >= delay - 1e-6


def test_everything_is_stored_once_and_sites_are_asked_politely() -> None:
    world = Web()
    Several(world).run(300.0)
    assert_all_once(world)
    assert_polite(world, 1.0)
    assert len(world.web.times) == len(world.expected) + 2


def test_many_pages_go_into_one_message_where_sites_need_no_delay() -> None:
    world = Web("[politeness]\ndelay = 0\nmax_concurrent = 8\n")
    several = Several(world)
    several.run(60.0)
    assert_all_once(world)
    assert several.transport.handed_out == len(world.expected)
    assert several.line.sent[NAMES.fetch] < len(world.expected)


def test_a_pause_stops_the_handing_out_and_a_resume_goes_on() -> None:
    world = Web()
    several = Several(world)

    async def meanwhile() -> None:
        await world.clock.sleep(4.0)
        several.commands.submit(Pause())
        await world.clock.sleep(100.0)
        assert several.crawl.paused
        several.commands.submit(Resume())

    several.run(300.0, meanwhile)
    assert_all_once(world)
    assert_polite(world, 1.0)
    assert not [at for at, _ in world.web.times if START + 8.0 < at < START + 104.0]


def test_a_site_that_is_dropped_is_not_handed_out_until_somebody_adds_it_again() -> None:
    world = Web()
    several = Several(world)

    async def meanwhile() -> None:
        await world.clock.sleep(4.0)
        several.commands.submit(DropSite("b.example"))
        await world.clock.sleep(200.0)
        several.commands.submit(AddSeeds(("http://b.example/",)))

    several.run(600.0, meanwhile)
    asked = [at - START for at, url in world.web.times if site_of(url) == "b.example"]
    assert not [at for at in asked if 8.0 < at < 204.0]
    assert_all_once(world)


def test_a_budget_that_is_ordered_holds_for_what_is_handed_out() -> None:
    world = Web("[politeness]\ndelay = 0\n")
    several = Several(world)
    several.commands.submit(ChangeBudget(360))
    several.run(100.0)
    assert several.crawl.per_hour == 360
    assert 8 <= len(world.web.times) <= 16  # one in ten seconds, and robots.txt besides


def test_a_crawl_on_several_machines_can_be_watched() -> None:
    world = Web()
    several = Several(world)
    shown = []

    async def meanwhile() -> None:
        decided = Round(0.0, (StageRound("fetch", 3.0, None, 2, 4, "because"),), hold_source=False)
        several.transport.views = tuple(each.view() for each in decided.stages)
        await world.clock.sleep(200.0)
        shown.append(LiveStatusWriter(7, lambda status: None).status(several.crawl))

    several.run(300.0, meanwhile)
    (status_,) = shown
    assert (status_.pid, status_.visits, status_.stored) == (7, len(world.expected) + 2, len(world.expected))
    assert status_.fetched == len(world.expected)
    assert status_.failed == {"robots": 2}
    (stage,) = status_.stages
    assert (stage.name, stage.queue, stage.busy, stage.on, stage.wanted) == ("fetch", 3, 0, 2, 4)
    assert not status_.paused


def test_messages_that_come_twice_store_nothing_twice() -> None:
    world = Web()
    Several(world, troubled=lambda: "twice").run(600.0)
    assert_all_once(world)


def test_a_message_that_was_handed_out_before_goes_back_to_the_scheduler() -> None:
    world, chance = Web(), random.Random(1)
    Several(world, troubled=lambda: "again" if chance.random() < 0.5 else "").run(1_000.0)
    assert_all_once(world)
    assert_polite(world, 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_lost_messages_only_mean_that_leases_run_out(seed: int) -> None:
    world, chance = Web("[politeness]\ndelay = 1\n[store]\nlease_seconds = 60\n"), random.Random(seed)
    Several(world, troubled=lambda: chance.choice(["", "", "", "lost", "twice", "again"])).run(6_000.0)
    assert_all_once(world)


def test_loss_of_all_that_the_broker_holds_is_harmless() -> None:
    world = Web("[politeness]\ndelay = 1\n[store]\nlease_seconds = 60\n")
    several = Several(world)

    async def lose() -> None:
        await world.clock.sleep(5.0)
        for queue in several.line.queues.values():
            queue.clear()

    several.run(1_500.0, lose)
    assert_all_once(world)


def test_a_full_queue_holds_the_scheduler_back_and_loses_nothing() -> None:
    world = Web("[politeness]\ndelay = 0\nmax_concurrent = 1\n")
    several = Several(world, capacity=1)
    several.run(300.0)
    assert_all_once(world)
    assert several.line.most <= 1


def test_a_broker_that_is_away_for_a_minute_stops_nothing_for_good(caplog: pytest.LogCaptureFixture) -> None:
    world = Web()
    several = Several(world)
    several.line.is_away = True

    async def come_back() -> None:
        await world.clock.sleep(60.0)
        several.line.is_away = False

    several.run(400.0, come_back)
    assert_all_once(world)
    assert sum("no pages are sent to the workers" in record.message for record in caplog.records) == 1


def test_nothing_is_handed_out_while_the_source_is_held() -> None:
    world = Web()
    several = Several(world)
    several.transport.hold(True)
    several.run(60.0)
    assert world.web.times == []


def test_more_pages_may_be_on_their_way_the_more_workers_report() -> None:
    transport = Several(Web()).transport
    for _ in range(4 * transport.slots):
        transport.begin()
    assert not transport.has_room()
    transport.set_workers(20)
    for _ in range(20 * 64):
        assert transport.has_room()
        transport.begin()


def test_the_whole_collection_is_looked_at_over_a_connection_of_its_own() -> None:
    world = Web()
    several = Several(world)
    scheduler, looks = several.crawl._scheduler, Looks(world.store.stats)
    overview = Overview(cast(Frontier, looks), several.executor)
    scheduler.ports = msgspec.structs.replace(scheduler.ports, overview=overview)

    def no_look(now: float) -> CollectionStats:
        raise AssertionError("leases and commits wait for it")

    world.store.stats = no_look  # type: ignore[method-assign]
    several.run(100.0)
    assert looks.count > 50, "one a second"


class Looks:
    def __init__(self, stats: Callable[[float], CollectionStats]) -> None:
        self._stats = stats
        self.count = 0

    def stats(self, now: float) -> CollectionStats:
        self.count += 1
        return self._stats(now)


def test_a_site_that_says_how_long_to_wait_is_left_alone_by_all_workers() -> None:
    world = Web()
    world.web.script("http://a.example/", status(503, retry_after="120"), page("hello"))
    Several(world).run(100.0)
    assert sum("a.example" in url for _, url in world.web.times) == 2  # robots.txt and the page


def test_a_site_is_asked_once_at_a_time_though_its_robots_txt_outlasts_a_lease() -> None:
    world = Web("[politeness]\ndelay = 1\nrobots_ttl = 60\n[store]\nlease_seconds = 20\n")
    world.starts = (*world.starts, "https://a.example/")
    world.web.script("https://a.example/", page("the same by TLS"))
    world.web.script("https://a.example/robots.txt", status(404))
    world.web.slow = {f"{scheme}://a.example/robots.txt": 25.0 for scheme in ("http", "https")}
    Several(world).run(400.0)
    assert world.web.at_once["a.example"] == 1
    assert {"http://a.example/", "https://a.example/"} <= world.stored()


@pytest.mark.parametrize("seconds", [59.7, 60.2, 60.7, 75.0])
def test_a_visit_that_outlasts_its_lease_is_made_again_and_stored_once(seconds: float) -> None:
    world = Web("[politeness]\ndelay = 1\n[store]\nlease_seconds = 60\n")
    world.web.slow = {"http://a.example/": seconds}

    async def hurry() -> None:
        await world.clock.sleep(30.0)
        world.web.slow = {}

    several = Several(world)
    several.run(400.0, hurry)
    assert_all_once(world)
    assert len(several.crawl._scheduler.open) == 0


def lease(token: int = 7) -> Lease:
    record = PageRecord(
        1,
        "http://a.example/",
        "a.example",
        PageKind.PAGE,
        PageState.NEW,
        DiscoveredBy.SEED,
        0,
        0,
        START,
        sketch=b"s",
    )
    return Lease(record, token, START + 60.0)


def visited(size: int = 0) -> Visited:
    response = Response("http://a.example/", 200, (("etag", "x"),), b"body")
    parsed = ParsedPage(PageKind.PAGE, content_zstd=random.Random(1).randbytes(size))
    return Visited(Fetched(lease(), START, response), b"digest", parsed)


def test_messages_come_back_as_they_were() -> None:
    (packed,) = pack(NAMES.collection, [without_body(visited())])
    message = read_message(ToStore, packed, NAMES.collection)
    assert message is not None
    assert message.visits == (without_body(visited()),)
    assert message.visits[0].fetched.response is not None
    assert message.visits[0].fetched.response.body == b""


def test_large_visits_are_parted_and_one_that_is_too_large_is_told_as_such() -> None:
    assert len(list(pack(NAMES.collection, [visited(5 << 20)] * 3))) == 3
    (packed,) = pack(NAMES.collection, [visited(17 << 20)])
    message = read_message(ToStore, packed, NAMES.collection)
    assert message is not None
    assert message.visits[0].fetched.response is not None
    assert message.visits[0].fetched.response.reason is Reason.BYTES


def test_a_message_of_another_collection_or_format_is_not_read() -> None:
    body = msgspec.msgpack.encode(ToFetch(collection=NAMES.collection, leases=(lease(),)))
    assert read_message(ToFetch, body, NAMES.collection) is not None
    assert read_message(ToFetch, body, "f" * 16) is None
    other = msgspec.msgpack.encode(ToFetch(format=9, collection=NAMES.collection, leases=()))
    assert read_message(ToFetch, other, NAMES.collection) is None
    many = msgspec.msgpack.encode(FetchAnswers(collection=NAMES.collection, answers=(FetchAnswer(1, None),) * 1_001))
    assert read_message(FetchAnswers, many, NAMES.collection) is None


@given(st.binary(max_size=400))
def test_no_bytes_break_the_reading_of_messages(body: bytes) -> None:
    for kind in (ToFetch, ToStore, FetchAnswers):
        read_message(kind, body, NAMES.collection)


def test_hostile_bytes_in_every_queue_change_nothing() -> None:
    world = Web()
    several = Several(world)
    for queue in (NAMES.fetch, NAMES.catalog, NAMES.answers):
        several.line.queues[queue].extend([(b"\xff" * 100, False), (b"\x91" * 5_000, True), (b"", False)])
    several.run(300.0)
    assert_all_once(world)
