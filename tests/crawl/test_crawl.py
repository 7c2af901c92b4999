"""The loop itself: errors, endings, leases, waiting; nothing hangs, spins or leaks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from levada.core.errors import LevadaError, StoreDamaged, StoreError, StoreFull
from levada.core.reasons import Reason
from levada.core.records import (
    DiscoveredBy,
    FoundUrl,
    Lease,
    ParsedPage,
    RawPage,
    Request,
    Response,
    SiteRecord,
    VisitResult,
)
from levada.crawl.engine import Crawl
from levada.crawl.executor import StoreExecutor
from levada.parser.inline import InlineParser
from levada.store.base import StoreLimits
from levada.store.memory import MemoryStore
from levada.testing.store.visits import first
from tests.crawl.simulated_crawl import DAY, HOUR, World, page, run_simulated, status, text

HOME = "http://a.test/"


def wide_web(count: int = 30) -> dict[str, Response]:
    web = {HOME: page("home", *(f"/{n}" for n in range(count)))}
    return web | {f"{HOME}{n}": page(f"page {n}") for n in range(count)}


class FullStore(MemoryStore):
    """Its disk is full from the nth operation of a kind on."""

    def __init__(self, operation: str, after: int, error: StoreError) -> None:
        super().__init__(limits=StoreLimits())
        self._operation = operation
        self._left = after
        self._error = error

    def _reach(self, operation: str) -> None:
        if operation == self._operation:
            self._left -= 1
            if self._left < 0:
                raise self._error

    def commit(self, visits: Sequence[VisitResult]) -> list[bool]:
        self._reach("settle")
        return super().commit(visits)

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        self._reach("lease")
        return super().lease(now, limit, seconds, due)

    def save(self, record: SiteRecord) -> None:
        self._reach("save")
        super().save(record)

    def add(self, found: Sequence[FoundUrl], refused: object, now: float, *, found_on: int | None = None) -> int:
        self._reach("add")
        return super().add(found, [], now, found_on=found_on)

    def has_room(self) -> None:
        """From now on."""
        self._operation = ""


@pytest.mark.parametrize(("operation", "after"), [("settle", 0), ("settle", 3), ("lease", 0), ("lease", 2), ("add", 1)])
def test_an_error_of_the_store_ends_the_crawl_with_that_error_and_leases_are_given_back(
    operation: str, after: int
) -> None:
    store = FullStore(operation, after, StoreFull("the disk is full"))
    world = World(wide_web(), store=store)
    with pytest.raises(StoreFull, match="the disk is full"):
        world.crawl(HOME)
    assert store.stats(world.clock.now()).leased == 0
    store._operation = "none"
    world.crawl(HOME)
    assert len(world.stored()) == 31


def test_an_error_while_giving_back_does_not_hide_why_the_crawl_ended() -> None:
    class Broken(FullStore):
        def release(self, leases: Sequence[Lease]) -> None:
            raise StoreDamaged("not readable")

    world = World(wide_web(), store=Broken("settle", 2, StoreFull("the disk is full")))
    with pytest.raises(StoreFull):
        world.crawl(HOME)


def test_a_parser_that_does_not_start_ends_the_crawl() -> None:
    class Missing(InlineParser):
        async def parse(self, page: RawPage) -> ParsedPage:
            raise LevadaError("the parser child does not start")

    world = World(wide_web(), parser=Missing())
    with pytest.raises(LevadaError, match="does not start"):
        world.crawl(HOME)
    assert world.store.stats(world.clock.now()).leased == 0


def test_a_fault_of_our_own_is_recorded_with_its_page_and_the_crawl_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Faulty(InlineParser):
        async def parse(self, page: RawPage) -> ParsedPage:
            if page.url == f"{HOME}3":
                raise KeyError("a bug")
            return await super().parse(page)

    def fault(request: Request) -> Response:
        raise RuntimeError("another bug")

    world = World({**wide_web(), f"{HOME}4": fault}, parser=Faulty())
    report = world.crawl(HOME)
    assert report.failed == {"internal": 2}
    assert {world.page(f"{HOME}{n}").reason for n in (3, 4)} == {Reason.INTERNAL}
    assert len(world.stored()) == 29
    assert "a bug" in caplog.text


class CountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__(limits=StoreLimits(delay=1.0))
        self.leases = 0

    def lease(self, now: float, limit: int, seconds: float, due: float | None = None) -> list[Lease]:
        self.leases += 1
        return super().lease(now, limit, seconds, due)


def test_a_crawl_with_nothing_to_do_does_not_spin() -> None:
    store = CountingStore()
    world = World({HOME: page("home")}, store=store)
    world.crawl(HOME, seconds=DAY)
    idle = DAY / 60
    assert idle / 2 < store.leases < idle * 1.2
    assert world.page(HOME).visits > 5


def test_a_page_that_is_due_is_visited_when_it_is_due() -> None:
    world = World({HOME: page("home")}, '[revisit]\npolicy = "fixed"\nfirst = 3600.0')
    world.crawl(HOME, seconds=6 * HOUR)
    visits = [at for at, url in world.asked(HOME) if url == HOME]
    late = [at - before - HOUR for before, at in pairwise(visits) if at - before < 1.19 * HOUR]
    assert all(0 <= each < 2.0 for each in late)


def test_a_late_result_is_refused_and_the_crawl_is_not_held_up_by_it() -> None:
    world = World({HOME: page("home")}, "[crawl]\nsitemaps = false")
    taken: list[Lease] = []

    def become_slow() -> None:
        world.web.seconds = 800.0

    def lease_elsewhere() -> None:
        taken.extend(world.store.lease(world.clock.now(), 10, 600.0))

    def settle_elsewhere() -> None:
        world.store.commit([first(each, world.clock.now(), "what the other saw") for each in taken])

    report = world.crawl(HOME, meanwhile={0.5: become_slow, 600.0: lease_elsewhere, 700.0: settle_elsewhere})
    assert [each.page.url for each in taken] == [HOME]
    assert report.stopped == "done"
    assert (report.fetched, report.new) == (1, 0)
    document = world.store.document(HOME)
    assert document is not None
    assert document.text == "what the other saw"


def test_a_visit_that_takes_longer_than_its_lease_is_made_once_and_stored() -> None:
    world = World(wide_web(3), "[crawl]\nsitemaps = false", seconds=2000.0)
    report = world.crawl(HOME)
    asked = [url for _, url in world.asked()]
    assert report.stopped == "done"
    assert len(asked) == len(set(asked)) == 5
    assert len(world.stored()) == 4


def test_leases_that_end_while_pages_wait_are_taken_again_and_nothing_is_asked_twice() -> None:
    robots = status(200, b"User-agent: *\nCrawl-delay: 60\n", content_type="text/plain")
    world = World({**wide_web(40), f"{HOME}robots.txt": robots}, limits=StoreLimits())
    report = world.crawl(HOME)
    asked = [url for _, url in world.asked()]
    assert report.stopped == "done"
    assert len(asked) == len(set(asked))
    assert len(world.stored()) == 41


def test_stopping_one_crawl_leaves_another_in_the_same_loop_alone() -> None:
    one, two = World(wide_web()), World(wide_web())
    two.clock, two.web._clock = one.clock, one.clock

    async def both() -> None:
        crawls: list[Crawl] = []
        for world in (one, two):
            world.store.add([FoundUrl(HOME, "a.test", how=DiscoveredBy.SEED, admit=True)], [], world.clock.now())
            crawls.append(world.make_crawl())
        running = [asyncio.create_task(crawl.run()) for crawl in crawls]
        await one.clock.sleep(5.05)
        crawls[0].stop()
        await asyncio.gather(*running)

    run_simulated(one.clock, both)
    assert len(one.stored()) < 10
    assert len(two.stored()) == 31


def test_a_crawl_that_is_cancelled_gives_its_leases_back() -> None:
    world = World(wide_web())

    async def cancelled() -> None:
        world.store.add([FoundUrl(HOME, "a.test", how=DiscoveredBy.SEED, admit=True)], [], world.clock.now())
        running = asyncio.create_task(world.make_crawl().run())
        await world.clock.sleep(5.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run_simulated(world.clock, cancelled)
    assert world.store.stats(world.clock.now()).leased == 0
    world.crawl(HOME)
    assert len(world.stored()) == 31


def test_stopping_before_the_start_ends_at_once() -> None:
    world = World(wide_web())

    async def stopped() -> str:
        crawl = world.make_crawl()
        crawl.stop("changed my mind")
        return (await crawl.run()).stopped

    assert run_simulated(world.clock, stopped) == "changed my mind"
    assert world.asked() == []


def test_large_bodies_wait_for_the_parser_before_more_are_fetched() -> None:
    held = most = 0
    size = 200_000

    class Slow(InlineParser):
        async def parse(self, page: RawPage) -> ParsedPage:
            nonlocal held
            await world.clock.sleep(30.0)
            parsed = await super().parse(page)
            held -= 1
            return parsed

    def large(request: Request) -> Response:
        nonlocal held, most
        held += 1
        most = max(most, held)
        return page(request.url, words=text(request.url, 3_000) + "x" * size)

    sites = [f"http://s{n}.test/" for n in range(60)]
    web = dict.fromkeys(sites, large)
    settings = f"[fetch]\nslots = 8\nmax_buffered_bytes = {6 * size}\n[crawl]\nsitemaps = false"
    world = World(web, settings, parser=Slow())
    report = world.crawl(*sites)
    assert report.new == 60
    assert most <= 8 + 3


def test_work_goes_through_a_thread_of_its_own_and_errors_come_back() -> None:
    async def work() -> None:
        executor = StoreExecutor()
        try:
            assert await executor.run(divmod, 7, 2) == (3, 1)
            with pytest.raises(ZeroDivisionError):
                await executor.run(divmod, 1, 0)
        finally:
            executor.close()

    asyncio.run(work())


def test_a_crawl_with_the_real_keeper_and_clock_ends_too() -> None:
    from levada.core.clock import SystemClock
    from levada.crawl.commits import CrawlPorts
    from levada.crawl.local_transport import LocalTransport
    from levada.freshness import PageEstimates, RuleRevisit, Scale, revisit_rule

    world = World(wide_web(5), "[politeness]\ndelay = 0.0", seconds=0.0)
    store = world.store
    store.add([FoundUrl(HOME, "a.test", how=DiscoveredBy.SEED, admit=True)], [], 0.0)
    fetcher = world.web
    policy = RuleRevisit(revisit_rule("ema"), PageEstimates(Scale.between(60.0, 86_400.0)))
    ports = CrawlPorts(SystemClock(), store, store, store, policy, store, fetcher)

    async def run() -> None:
        report = await Crawl(ports, world.settings, LocalTransport(InlineParser()), once=True).run()
        assert report.pages == 6

    asyncio.run(run())


def test_robots_txt_is_asked_for_once_however_many_pages_wait_for_it() -> None:
    world = World(wide_web(), "[politeness]\ndelay = 0.0\nmax_concurrent = 10", seconds=3.0)
    world.store.add([FoundUrl(f"{HOME}{n}", "a.test") for n in range(20)], [], world.clock.now())
    world.crawl(HOME)
    assert len([url for _, url in world.asked() if url.endswith("robots.txt")]) == 1
    assert len(world.stored()) == 31


def test_robots_txt_is_followed_through_redirects_and_a_loop_counts_as_none() -> None:
    web = wide_web(3)
    web[f"{HOME}robots.txt"] = status(301, location="/real.txt")
    web[f"{HOME}real.txt"] = status(200, b"User-agent: *\nDisallow: /1\n", content_type="text/plain")
    world = World(web)
    world.crawl(HOME)
    assert f"{HOME}1" not in {url for _, url in world.asked()}
    assert world.store.stats(world.clock.now()).refused == {Reason.ROBOTS: 1}
    web[f"{HOME}real.txt"] = status(301, location="/robots.txt")
    looping = World(web)
    looping.crawl(HOME)
    assert len(looping.stored()) == 4


@pytest.mark.parametrize(("redirects", "is_obeyed"), [(5, True), (6, False)])
def test_a_robots_txt_behind_five_redirects_is_obeyed_and_behind_six_counts_as_none(
    redirects: int, is_obeyed: bool
) -> None:
    names = [f"{HOME}robots.txt", *(f"{HOME}hop{n}.txt" for n in range(redirects))]
    web = {name: status(301, location=target) for name, target in pairwise(names)}
    world = World(wide_web(3) | web | {names[-1]: status(200, b"User-agent: *\nDisallow: /1\n")})
    world.crawl(HOME)
    assert (f"{HOME}1" not in world.stored()) is is_obeyed


@pytest.mark.parametrize("location", ["ftp://a.test/robots.txt", "file:///robots.txt", "about:blank", "http://[::1"])
def test_a_robots_txt_that_leads_where_nobody_can_follow_counts_as_none(location: str) -> None:
    world = World(wide_web(3) | {f"{HOME}robots.txt": status(301, location=location)})
    world.crawl(HOME)
    assert len(world.stored()) == 4


def test_a_robots_txt_that_a_proxy_has_changed_is_obeyed() -> None:
    world = World(wide_web(3) | {f"{HOME}robots.txt": status(203, b"User-agent: *\nDisallow: /1\n")})
    world.crawl(HOME)
    assert f"{HOME}1" not in world.stored()


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("Sitemap: HTTP://A.TEST:80/Map.xml#x", "http://a.test/Map.xml"),
        ("Sitemap: http://elsewhere.test/map.xml", None),
        ("Sitemap: file:///etc/passwd", "http://a.test/sitemap.xml"),
        ("Sitemap: http://[::1", "http://a.test/sitemap.xml"),
    ],
)
def test_sitemaps_named_by_robots_txt_are_spelt_our_way_and_kept_in_scope(line: str, asked: str | None) -> None:
    world = World({HOME: page("home"), f"{HOME}robots.txt": status(200, line.encode(), content_type="text/plain")})
    world.crawl(HOME)
    others = [url for _, url in world.asked() if url not in (HOME, f"{HOME}robots.txt")]
    assert others == ([asked] if asked else [])


def test_failures_that_were_under_way_together_count_as_one_reason_to_rest() -> None:
    web = wide_web(40) | {f"{HOME}{n}": status(500) for n in range(40)}
    world = World(web, "[politeness]\ndelay = 0.0\nmax_concurrent = 30", seconds=5.0)
    world.crawl(HOME)
    record = world.store.site("a.test")
    assert record is not None
    assert record.rest_until - world.clock.now() <= 300.0


def test_all_links_of_an_index_are_found_and_name_the_page_that_has_them() -> None:
    world = World({HOME: page("home", *(f"/page/{n}" for n in range(4_500)))})
    world.crawl(HOME, max_pages=1)
    assert {world.page(f"{HOME}page/{n}").found_on for n in range(4_500)} == {world.page(HOME).id}


def test_an_index_whose_links_could_not_all_be_stored_is_visited_again() -> None:
    store = FullStore("add", 3, StoreFull("the disk is full"))  # after start, sitemaps, and 2,000 links
    world = World({HOME: page("home", *(f"/page/{n}" for n in range(6_500)))}, store=store)
    with pytest.raises(StoreFull):
        world.crawl(HOME, max_pages=1)
    assert (world.page(HOME).visits, store.stats(0.0).unvisited) == (0, 2 + 2_000)
    store.has_room()
    world.crawl(HOME, max_pages=1)
    assert (world.page(HOME).visits, store.stats(0.0).unvisited) == (1, 1 + 6_500)
