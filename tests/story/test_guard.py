"""No page can lead a crawl to an address that is not public."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import NamedTuple

import pytest
import uvloop

from levada.collection.crawling import open_crawl
from levada.collection.starts import seeds
from levada.core.errors import BadUrl
from levada.core.folder import DataFolder
from levada.core.reasons import Reason
from levada.core.records import PageRecord, PageState
from levada.core.reports import Report
from levada.core.settings import CrawlSettings, GuardSettings, PolitenessSettings, Settings
from levada.pages.urls import canonical
from levada.store.sqlite import SqliteStore
from tests.fetch.servers import Answer, canary, web
from tests.story.private_addresses import FORBIDDEN_SCHEMES, GOOD, REDIRECTS, doors, spelled

REFUSALS = {Reason.ADDRESS, Reason.BAD_URL, Reason.SCHEME, Reason.PROTOCOL}  # protocol: two Locations at once


class Crawled(NamedTuple):
    """A crawl of the maze, after it ended."""

    store: SqliteStore
    report: Report
    front: str
    canary: int
    reached: int
    asked: set[str]  # paths that the maze was asked for

    def page(self, url: str) -> PageRecord:
        record = self.store.page(canonical(url, self.front))
        assert record is not None, f"{url} is not known"
        return record

    def refused(self) -> dict[Reason, int]:
        """In all, by reason, as the sites keep it."""
        counts: dict[Reason, int] = {}
        for site in self.store.sites():
            for reason, number, _ in site.refused:
                counts[reason] = counts.get(reason, 0) + number
        return counts


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = DataFolder(tmp_path_factory.mktemp("guard"))
    answers: dict[str, Answer] = {}
    with canary() as (port, reached), web(answers) as server:
        answers.update(doors(server.port, port))
        _prove_that_it_sings(port)
        assert reached() >= 1
        report = uvloop.run(_crawl(folder, server.address))
        asked = {exchange.path for exchange in server.exchanges}
        with closing(SqliteStore.open_reader(folder.database)) as store:
            yield Crawled(store, report, f"{server.url}/", port, reached(), asked)


async def _crawl(folder: DataFolder, address: str) -> Report:
    settings = Settings(
        crawl=CrawlSettings(scope="any", near_duplicate_run=10_000),
        politeness=PolitenessSettings(delay=0, max_concurrent=8),
        guard=GuardSettings(allow=(address,)),
    )
    async with open_crawl(folder, settings, seeds([f"http://{address}/"]), once=True) as work:
        return await work.run()


def _prove_that_it_sings(port: int) -> None:
    """The canary can be reached, on every address that this machine gives it."""
    for address in ("127.0.0.1", "127.0.0.2", "::1"):
        with suppress(OSError):
            socket.create_connection((address, port), timeout=5).close()


def test_nothing_reaches_the_canary(crawled: Crawled) -> None:
    assert crawled.reached == 0
    assert crawled.report.stopped == "done"


def test_the_neighbours_are_stored(crawled: Crawled) -> None:
    for path in ["/", *(f"/good/{i}" for i in range(GOOD))]:
        assert crawled.page(path).state is PageState.LIVE, path
    for i in range(len(spelled(crawled.canary))):
        assert crawled.page(f"/named/{i}").state is PageState.LIVE


def test_every_spelling_of_an_address_is_refused_with_a_reason(crawled: Crawled) -> None:
    unreadable = 0
    urls = spelled(crawled.canary)
    assert len(urls) >= 40
    for url in urls:
        try:
            record = crawled.page(url)
        except BadUrl:
            unreadable += 1
            continue
        assert (record.state, record.reason) == (PageState.REFUSED, Reason.ADDRESS), url
        assert crawled.page(canonical("/", record.url)).reason is Reason.ADDRESS, f"the front page of {url}"
    assert 0 < unreadable < len(urls) // 2
    assert crawled.refused()[Reason.BAD_URL] >= unreadable


def test_every_form_of_redirect_ends_with_a_reason(crawled: Crawled) -> None:
    assert len(REDIRECTS) >= 12
    for path in REDIRECTS:
        assert path in crawled.asked
        record = crawled.page(path)
        if record.state is not PageState.ELSEWHERE:
            assert record.reason in REFUSALS, path
            continue
        assert record.reason is Reason.REDIRECTED, path
        location = REDIRECTS[path][1].format(canary=crawled.canary).split("\r\n")[0]
        target = crawled.page(canonical(location, record.url))
        assert target.url.startswith(crawled.front) or target.reason is Reason.ADDRESS, path


@pytest.mark.parametrize("way", ["link", "redirect", "base", "canonical", "refresh"])
def test_no_other_scheme_is_spoken(way: str, crawled: Crawled) -> None:
    for i, url in enumerate(FORBIDDEN_SCHEMES):
        record = crawled.page(f"/scheme/{way}/{i}")
        if way == "redirect":
            assert record.state is PageState.REFUSED, url
            assert record.reason in REFUSALS, url
        else:
            assert record.state is PageState.LIVE, url


def test_what_a_head_leads_to_is_refused(crawled: Crawled) -> None:
    at = f"http://127.0.0.1:{crawled.canary}"
    for name in ("meta-refresh", "based", "feed-there", "next", "canonical"):
        assert crawled.page(f"{at}/{name}").reason is Reason.ADDRESS, name
    for name in (
        "meta-refresh",
        "refresh-header",
        "link-header",
        "location-of-200",
        "base",
        "feed",
        "next",
        "frames",
    ):
        assert crawled.page(f"/head/{name}").state is PageState.LIVE, name


def test_what_a_listing_names_or_leads_to_is_refused(crawled: Crawled) -> None:
    at = f"http://127.0.0.1:{crawled.canary}"
    for name in ("in-sitemap", "index", "in-feed", "sitemap-away", "feed-away", "sitemap-there"):
        assert crawled.page(f"{at}/{name}").reason is Reason.ADDRESS, name
    for path in ("/sitemap.xml", "/sitemap-index.xml", "/sitemap-away.xml", "/feed.xml", "/feed-away.xml"):
        assert path in crawled.asked


def test_a_robots_txt_elsewhere_closes_its_site(crawled: Crawled) -> None:
    port = crawled.front.split(":")[-1]
    assert crawled.page(f"http://robots-there.localhost:{port}").reason is Reason.ADDRESS
    assert crawled.page(f"http://sitemap-there.localhost:{port}").state is PageState.LIVE


def test_only_http_addresses_are_held_and_only_known_reasons_recorded(crawled: Crawled) -> None:
    ways = ("link", "redirect", "base", "canonical", "refresh", "sitemap", "sitemap index", "feed")
    visible = [url for url in FORBIDDEN_SCHEMES if not url.startswith("javascript:")]  # never meant to be a page
    assert crawled.refused()[Reason.SCHEME] >= len(ways) * len(visible)
    assert Reason.INTERNAL not in crawled.report.failed
    assert all(site.site for site in crawled.store.sites())
    assert all(document.url.startswith("http://") for document in crawled.store.scan())
