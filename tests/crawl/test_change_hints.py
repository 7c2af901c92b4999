"""Change hints of sitemaps and feeds: pages are visited sooner, as far as the source is trusted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from levada.core.records import (
    ChangeHint,
    DiscoveredBy,
    Link,
    Outcome,
    PageKind,
    ParsedPage,
    Request,
    Response,
    Signals,
)
from levada.crawl.change_hints import ChangeHintStep, hints_of, signals_of
from levada.crawl.executor import StoreExecutor
from levada.freshness import LearnedRevisit, PageEstimates, Scale
from levada.store.memory import MemoryStore
from tests.crawl.simulated_crawl import DAY, HOUR, START, World, page, run_simulated, status
from tests.crawl.test_outcome import known, stored
from tests.scripted_web import Answer

HOME = "http://a.test/"
SITEMAP = "http://a.test/sitemap.xml"


def learned(per_hour: float = 2.0) -> LearnedRevisit:
    return LearnedRevisit(PageEstimates(Scale.between(300.0, 30 * DAY)), per_hour=per_hour)


def sitemap(dates: dict[str, float]) -> Response:
    entries = "".join(
        f"<url><loc>{url}</loc><lastmod>{datetime.fromtimestamp(at, UTC).isoformat()}</lastmod></url>"
        for url, at in dates.items()
    )
    body = f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{entries}</urlset>"
    return Response("", 200, (("content-type", "application/xml"),), body.encode())


def test_a_page_that_a_sitemap_names_as_changed_is_visited_soon_after_and_the_visit_says_so() -> None:
    pages = [f"http://a.test/{n}" for n in range(6)]
    dates = dict.fromkeys(pages, START - DAY)

    def reading(request: Request) -> Response:
        """Each names one more page as changed a moment ago."""
        dates[min(dates, key=lambda url: dates[url])] = world.clock.now() - 60.0
        return sitemap(dates)

    robots = Response("", 200, (), f"User-agent: *\nSitemap: {SITEMAP}\n".encode())
    web: dict[str, Answer] = {url: page(url) for url in pages}
    web |= {HOME: page("home", *pages), "http://a.test/robots.txt": robots, SITEMAP: reading}
    world = World(web, "[revisit]\nfloor = 600.0", policy=learned())
    world.crawl(HOME, seconds=3 * DAY)
    told = [result for result in world.commits if result.visit.said & Signals.SITEMAP]
    assert told
    readings_at = [at for at, url in world.web.times if url == SITEMAP]
    for result in told:
        assert any(at <= result.visit.at for at in readings_at)
        assert result.lease.page.told & Signals.SITEMAP


def test_hearing_brings_forward_only_what_was_told_of_since_its_last_visit() -> None:
    pages = [f"http://a.test/{n}" for n in range(4)]
    world = World({url: page(url) for url in pages}, policy=(policy := learned()))
    world.crawl(*pages)
    store = world.store
    planned = {url: known_page(store, url).next_visit or 0.0 for url in pages}
    now = world.clock.now()
    hints = [ChangeHint(pages[3], now + 60.0, Signals.SITEMAP), ChangeHint(pages[1], START - DAY, Signals.SITEMAP)]
    heard = run_simulated(world.clock, lambda: ChangeHintStep(store, policy, InlineKeeper())(hints))
    assert heard == 1
    assert (known_page(store, pages[3]).next_visit or 0.0) < planned[pages[3]]
    assert known_page(store, pages[3]).told == Signals.SITEMAP
    for url in pages[:3]:
        assert known_page(store, url).next_visit == planned[url]
        assert known_page(store, url).told == Signals.NOTHING


def test_thousands_of_notices_are_heard_in_slices() -> None:
    class Counting(MemoryStore):
        asked: list[int] = []  # noqa: RUF012

        def outdated(self, hints):  # type: ignore[no-untyped-def]
            self.asked.append(len(hints))
            return super().outdated(hints)

    store = Counting()
    world = World({}, store=store, policy=(policy := learned()))
    hints = [ChangeHint(f"http://a.test/{n}", START, Signals.FEED) for n in range(1_234)]
    assert run_simulated(world.clock, lambda: ChangeHintStep(store, policy, InlineKeeper())(hints)) == 0
    assert sum(store.asked) == 1_234
    assert max(store.asked) <= 500


def test_what_the_server_says_is_read_from_its_answer() -> None:
    dated = stored(etag='"1"', last_modified="Mon, 01 Jan 2024 00:00:00 GMT", told=Signals.FEED)
    same = (("etag", '"1"'), ("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT"))
    moved = (("etag", '"2"'), ("last-modified", "Tue, 02 Jan 2024 00:00:00 GMT"))
    assert signals_of(dated, status(304), START + 2 * HOUR) == Signals.NOT_MODIFIED | Signals.FEED
    assert (
        signals_of(dated, Response("", 200, same), START + 2 * HOUR) == Signals.SAME_TAG | Signals.DATED | Signals.FEED
    )
    assert (
        signals_of(dated, Response("", 200, moved), START + 2 * HOUR)
        == Signals.DATED | Signals.DATE_MOVED | Signals.FEED
    )
    assert signals_of(dated, status(304), START + 60.0) == Signals.NOT_MODIFIED | Signals.FEED | Signals.EARLY
    assert signals_of(known(), Response("", 200, moved), START) == Signals.DATED


def test_where_there_is_no_tag_the_same_date_speaks_for_304() -> None:
    only_dated = stored(etag=None, last_modified="Mon, 01 Jan 2024 00:00:00 GMT")
    same = (("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT"),)
    moved = (("last-modified", "Tue, 02 Jan 2024 00:00:00 GMT"),)
    assert signals_of(only_dated, Response("", 200, same), START + 2 * HOUR) == Signals.SAME_TAG | Signals.DATED
    assert signals_of(only_dated, Response("", 200, moved), START + 2 * HOUR) == Signals.DATED | Signals.DATE_MOVED
    assert signals_of(stored(etag=None, last_modified=None), Response("", 200), START + 2 * HOUR) == Signals.NOTHING
    both = stored(etag='"1"', last_modified="Mon, 01 Jan 2024 00:00:00 GMT")
    assert signals_of(both, Response("", 200, (("etag", '"2"'), *same)), START + 2 * HOUR) == Signals.DATED


def test_dates_that_cannot_be_are_no_notices() -> None:
    dates = [None, -5.0, START, START + DAY]
    entries = tuple(Link(f"http://a.test/{n}", DiscoveredBy.SITEMAP, lastmod=at) for n, at in enumerate(dates))
    told = hints_of(ParsedPage(PageKind.SITEMAP, marked=entries), START + 1.0)
    assert [hint.at for hint in told] == [START]
    assert hints_of(ParsedPage(PageKind.PAGE, marked=entries), START) == ()


@pytest.mark.parametrize("pages", [1, 8])
@pytest.mark.parametrize(
    ("condition", "validator"),
    [
        ("If-None-Match", {"etag": '"always"'}),
        ("If-Modified-Since", {"last_modified": "Mon, 01 Jan 2024 00:00:00 GMT"}),
    ],
)
def test_a_server_that_says_304_to_everything_is_found_out_and_asked_for_whole_pages(
    condition: str, validator: dict[str, str], pages: int
) -> None:
    """It sends the same tag or date for every version: now and then, and then always, the page is fetched whole."""

    class Stubborn:
        version = 0

        def __call__(self, request: object) -> Response:
            self.version += 1
            conditional = any(name == condition for name, _ in getattr(request, "headers", ()))
            return status(304) if conditional else page(f"version {self.version}", **validator)

    site = Stubborn()
    urls = [f"http://a.test/{n}" for n in range(pages)]
    world = World(dict.fromkeys(urls, site), "[revisit]\nfloor = 600.0", policy=learned(per_hour=20))
    world.crawl(*urls, seconds=4 * DAY)
    later = [result.visit.outcome for result in world.commits[-50:]]
    assert later.count(Outcome.CHANGED) == len(later)


class InlineKeeper(StoreExecutor):
    async def run(self, operation, *args, **kwargs):  # type: ignore[no-untyped-def]
        return operation(*args, **kwargs)


def known_page(store: MemoryStore, url: str):  # type: ignore[no-untyped-def]
    record = store.page(url)
    assert record is not None
    return record
