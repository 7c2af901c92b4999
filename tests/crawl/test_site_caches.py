"""The small caches of a crawl: leases in flight, sites, links, waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.core.errors import SettingsError
from levada.core.reasons import Reason
from levada.core.records import (
    DiscoveredBy,
    FoundUrl,
    Lease,
    Link,
    Outcome,
    PageKind,
    PageRecord,
    PageState,
    Refusal,
    Response,
    Visit,
    VisitResult,
)
from levada.core.settings import CrawlSettings, PolitenessSettings, parse_settings
from levada.crawl.executor import StoreExecutor
from levada.crawl.in_flight import InFlightLeases
from levada.crawl.link_filter import LinkFilter
from levada.crawl.robots import RobotsCache
from levada.crawl.sites import SiteCache, doubling, http_date, retry_after
from levada.pages.robots import RobotsRules
from levada.store.memory import MemoryStore
from tests.manual_clock import ManualClock
from tests.scripted_web import MemoryFetcher

PAGE = PageRecord(1, "http://a.test/", "a.test", PageKind.PAGE, PageState.NEW, DiscoveredBy.SEED, 0, 0, 0.0)


def lease(token: int, page: PageRecord = PAGE) -> Lease:
    return Lease(page, token, 100.0)


def result(under: Lease) -> VisitResult:
    return VisitResult(under, Visit(1.0, Outcome.FAILED), PageState.FAILED, None, 2.0)


def test_a_lease_of_a_page_that_we_hold_renews_it() -> None:
    held = InFlightLeases()
    assert held.take(lease(1))
    held.weigh(lease(1), 500)
    assert not held.take(lease(2))
    assert held.renewed(lease(1)) == lease(2)
    assert held.under_newest(result(lease(1))).lease == lease(2)
    held.close(lease(1))
    assert (len(held), held.held_bytes) == (1, 500)
    held.close(lease(2))
    assert (len(held), held.held_bytes) == (0, 0)


def test_a_page_that_somebody_else_visited_meanwhile_is_visited_anew() -> None:
    held = InFlightLeases()
    held.take(lease(1))
    later = lease(2, replace(PAGE, visits=1))
    assert held.take(later)
    assert held.renewed(lease(1)) is None
    assert held.under_newest(result(lease(1))).lease == lease(1)
    held.close(lease(1))
    assert held.drain() == [later]


def in_book(work: Callable[[SiteCache], Awaitable[None]], store: MemoryStore) -> None:
    async def run() -> None:
        executor = StoreExecutor()
        try:
            await work(SiteCache(store, executor, PolitenessSettings(), {"admitted.test"}))
        finally:
            executor.close()

    asyncio.run(run())


def test_a_site_rests_longer_each_time_it_fails_after_a_rest() -> None:
    async def work(book: SiteCache) -> None:
        now, rests = 0.0, []
        for _ in range(20):
            until = await book.failed("a.test", now)
            if until is not None:
                rests.append(until - now)
                now = until
        assert rests[:3] == [300.0, 600.0, 1200.0]
        assert rests == sorted(rests)
        assert rests[-1] == 86_400.0
        assert await book.failed("a.test", now - 1.0) == now
        await book.answered("a.test")
        assert await book.failed("a.test", now) is None

    in_book(work, MemoryStore())


def test_a_site_does_not_rest_longer_each_time_for_a_proxy_that_is_not_its_own() -> None:
    async def work(book: SiteCache) -> None:
        now, rests = 0.0, []
        for _ in range(5):
            until = await book.failed("a.test", now, at_once=True, steady=True)
            assert until is not None
            rests.append(until - now)
            now = until
        assert rests == [300.0] * 5
        assert await book.failed("a.test", now) == now + 600.0

    in_book(work, MemoryStore())


def test_an_answer_does_not_take_back_a_rest_that_was_asked_for() -> None:
    store = MemoryStore()

    async def work(book: SiteCache) -> None:
        await book.failed("a.test", 0.0)
        await book.back_off("a.test", 500.0)
        await book.back_off("a.test", 100.0)
        await book.answered("a.test")

    in_book(work, store)
    record = store.site("a.test")
    assert record is not None
    assert (record.rest_until, record.failures) == (500.0, 0)


def test_an_admission_is_never_taken_back() -> None:
    store = MemoryStore()

    async def work(book: SiteCache) -> None:
        await book.get("admitted.test")
        store.add([FoundUrl("http://admitted.test/", "admitted.test", admit=True)], [], 0.0)
        await book.back_off("admitted.test", 10.0)

    in_book(work, store)
    record = store.site("admitted.test")
    assert record is not None
    assert record.admitted


def test_failures_counted_at_the_same_time_are_all_counted() -> None:
    async def work(book: SiteCache) -> None:
        await asyncio.gather(*(book.failed("a.test", 0.0) for _ in range(4)))
        assert (await book.get("a.test")).failures == 4

    in_book(work, MemoryStore())


def test_a_link_is_taken_once_and_again_if_the_visit_that_named_it_was_refused() -> None:
    link_filter = LinkFilter(CrawlSettings(scope="any"), [])
    link = "http://b.test/deep"
    for _ in range(2):
        found, _ = link_filter.select(PAGE, [link], [], nofollow=False)
        assert [each.url for each in found] == ["http://b.test/", "http://b.test/deep"]
        assert link_filter.select(PAGE, [link], [], nofollow=False) == ([], [])
        link_filter.withdraw(found)
    found, _ = link_filter.select(PAGE, [link], [], nofollow=False)
    link_filter.stored(found)
    assert link_filter.select(PAGE, [link], [], nofollow=False) == ([], [])
    found, _ = link_filter.select(PAGE, ["http://b.test/other"], [], nofollow=False)
    assert [each.url for each in found] == ["http://b.test/other"]


def test_of_plain_and_of_marked_links_only_the_new_ones_are_taken() -> None:
    link_filter = LinkFilter(CrawlSettings(), ["a.test"])
    pages = [f"http://a.test/{n}" for n in range(4)]
    feeds = [Link(f"http://a.test/feed{n}", kind=PageKind.FEED) for n in range(2)]
    link_filter.select(PAGE, pages[:2], feeds[:1], nofollow=False)
    assert link_filter.select(PAGE, pages[:2], feeds[:1], nofollow=False) == ([], [])
    ad = Link("http://a.test/ad", nofollow=True)
    found, refused = link_filter.select(PAGE, pages, [*feeds, ad], nofollow=False)
    assert [(each.url, each.kind) for each in found] == [
        ("http://a.test/feed1", PageKind.FEED),
        ("http://a.test/2", PageKind.PAGE),
        ("http://a.test/3", PageKind.PAGE),
    ]
    assert refused == [Refusal("http://a.test/ad", PAGE.site, Reason.NOFOLLOW)]
    found, _ = link_filter.select(PAGE, [ad.url], [], nofollow=False)
    assert [each.url for each in found] == [ad.url]  # another page vouches for it


def test_a_page_that_asks_for_it_has_none_of_its_links_followed() -> None:
    link_filter = LinkFilter(CrawlSettings(), ["a.test"])
    feed = Link("http://a.test/feed", kind=PageKind.FEED)
    found, refused = link_filter.select(PAGE, ["http://a.test/1"], [feed], nofollow=True)
    assert (found, {each.reason for each in refused}) == ([], {Reason.NOFOLLOW})
    assert {each.url for each in refused} == {"http://a.test/1", "http://a.test/feed"}


def test_what_a_sieve_remembers_is_bounded() -> None:
    link_filter = LinkFilter(CrawlSettings(scope="any"), [], most_known=100)
    for n in range(1_000):
        link_filter.stored([FoundUrl(f"http://s{n}.test/", f"s{n}.test", how=DiscoveredBy.FRONT)])
    assert len(link_filter._known) <= 101
    assert len(link_filter._fronts) <= 101


@pytest.mark.parametrize("reason", [Reason.SCOPE, Reason.NOFOLLOW, Reason.DEPTH])
def test_an_address_is_refused_each_time_and_told_once(reason: Reason) -> None:
    link_filter = LinkFilter(CrawlSettings(max_depth=1), ["a.test"])
    site = "b.test" if reason is Reason.SCOPE else "a.test"
    urls = [f"http://{site}/{n}" for n in range(10)]
    links, marked = ([], [Link(url, nofollow=True) for url in urls]) if reason is Reason.NOFOLLOW else (urls, [])
    page = replace(PAGE, depth=1) if reason is Reason.DEPTH else PAGE
    found, refused = link_filter.select(page, links, marked, nofollow=False)
    assert (found, [each.reason for each in refused]) == ([], [reason] * 10)
    assert link_filter.select(page, links, marked, nofollow=False) == ([], [])


@pytest.mark.parametrize("kept", [1, 10])
def test_what_a_robots_txt_said_holds_until_another_is_read(kept: int) -> None:
    async def nothing(origin: str, rules: RobotsRules) -> None:
        pass

    async def work(book: SiteCache) -> None:
        answers = [Response("", 200, body=f"User-agent: *\nDisallow: /{path}".encode()) for path in ("old", "new")]
        web = MemoryFetcher({"http://a.test/robots.txt": answers, "http://b.test/robots.txt": Response("", 404)})
        clock = ManualClock()
        robots = RobotsCache(web, book, clock, PolitenessSettings(), nothing, most_kept=kept)
        urls = ("http://a.test/old", "http://a.test/new", "http://b.test/old")
        assert [robots.closes(url) for url in urls] == [False, False, False]  # no word is no
        for closed in ((True, False, False), (False, True, False)):
            for _ in range(2):
                assert tuple([(await robots.verdict(url)).reason is Reason.ROBOTS for url in urls]) == closed
            await robots.verdict(urls[0])
            assert tuple(robots.closes(url) for url in urls[:2]) == closed[:2]
            clock.advance(2 * PolitenessSettings().robots_ttl)

    in_book(work, MemoryStore())


def test_a_robots_txt_counts_as_read_only_once_its_sitemaps_are_held() -> None:
    """Killed in between, the next crawl must read it again: nobody else names the sitemaps."""
    store = MemoryStore()
    remembered: list[bool] = []

    async def news(origin: str, rules: RobotsRules) -> None:
        site = store.site("a.test")
        remembered.append(bool(site and site.robots))

    async def work(book: SiteCache) -> None:
        web = MemoryFetcher({"http://a.test/robots.txt": Response("", 200, body=b"Sitemap: http://a.test/map.xml")})
        robots = RobotsCache(web, book, ManualClock(), PolitenessSettings(), news)
        assert (await robots.verdict("http://a.test/")).asked
        assert remembered == [False]
        site = store.site("a.test")
        assert site is not None
        assert site.robots

    in_book(work, store)


@given(st.floats(0.001, 1e6), st.integers(-5, 10**6), st.floats(0.001, 1e7), st.text(max_size=20))
def test_a_wait_is_positive_and_near_its_bounds(first: float, times: int, most: float, name: str) -> None:
    url = "http://a.test/" + name.encode("ascii", "ignore").decode()
    wait = doubling(first, times, most, url)
    assert 0.9 * min(first, most) <= wait * 1.000001
    assert wait <= 1.1 * most * 1.000001
    assert wait == doubling(first, times, most, url)


@given(st.text(max_size=40) | st.none(), st.floats(0, 4e9))
def test_any_retry_after_is_understood_or_passed_over(value: str | None, now: float) -> None:
    wait = retry_after(value, now, 86_400.0)
    assert wait is None or 0.0 <= wait <= 86_400.0


@pytest.fixture
def far_from_greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "TRT-3")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_greenwich")
@pytest.mark.parametrize(
    "written",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 -0000",
    ],
)
def test_a_date_means_the_same_moment_wherever_the_machine_stands(written: str) -> None:
    assert http_date(written) == 784_111_777.0


@pytest.mark.parametrize(
    "toml",
    [
        "[revisit]\nceiling = inf",
        "[revisit]\nfirst = nan",
        "[politeness]\ndelay = -1",
        "[politeness]\ndelay = nan",
        "[revisit]\nfloor = 7200.0",
        "[fetch]\nslotz = 3",
        "[fetching]",
        "not toml",
    ],
)
def test_a_setting_that_makes_no_sense_is_an_error(toml: str) -> None:
    with pytest.raises(SettingsError, match="the test"):
        parse_settings(toml, "the test")
