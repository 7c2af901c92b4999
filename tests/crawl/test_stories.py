"""Whole crawls of small webs, days long in simulated time."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from msgspec.structs import replace

from levada.core.reasons import Reason
from levada.core.records import Outcome, PageState, ParsedPage, RawPage, Request, Response
from levada.core.search_records import Query
from levada.follow.index import catch_up
from levada.parser.inline import InlineParser
from levada.search.memory import MemoryIndex
from tests.crawl.simulated_crawl import DAY, HOUR, World, failing, page, status, text

HOME = "http://a.test/"
SITEMAP = "http://a.test/sitemap.xml"
ROBOTS = "http://a.test/robots.txt"


def sitemap(*urls: str) -> Response:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return status(200, f'<urlset xmlns="{space}">{entries}</urlset>'.encode(), content_type="application/xml")


def broken_off(code: int, reason: Reason) -> Response:
    """As the fetcher tells it: the head came, and of the body nothing is kept."""
    return Response("", code, (("content-type", "text/plain"),), reason=reason, detail="as the test says")


def small_web() -> dict[str, Response]:
    return {
        HOME: page("home", "/1", "/2"),
        HOME + "1": page("one", "/2"),
        HOME + "2": page("two", "/"),
    }


def named(canonical: str, title: str, *links: str) -> Response:
    return page(title, *links, head=f'<link rel="canonical" href="{canonical}">')


def test_pages_whose_canonical_address_holds_nothing_are_stored_in_the_same_crawl() -> None:
    """One leads back, two name each other, one is missing, one is forbidden; one is as it should be."""
    world = World(
        {
            HOME: page("home", "/s", "/a", "/lost", "/shut", "/print"),
            HOME + "s": named("/s/", "slash", "/deeper"),
            HOME + "s/": status(301, location="/s"),
            HOME + "deeper": page("deeper"),
            HOME + "a": named("/b", "one"),
            HOME + "b": named("/a", "other"),
            HOME + "lost": named("/missing", "lost"),
            HOME + "shut": named("/closed/", "shut"),
            HOME + "robots.txt": status(200, b"User-agent: *\nDisallow: /closed/", content_type="text/plain"),
            HOME + "print": named("/article", "print"),
            HOME + "article": page("article"),
        }
    )
    world.crawl(HOME)
    stored = {url.removeprefix(HOME) for url in world.stored()}
    assert stored - {"a", "b"} == {"", "s", "deeper", "lost", "shut", "article"}
    assert stored & {"a", "b"}
    assert world.page(HOME + "print").leads_to == HOME + "article"


@pytest.mark.parametrize("before", [status(301, location="/b"), named("/b", "content")], ids=["redirect", "canonical"])
def test_content_that_moves_back_to_where_it_was_named_from_is_not_lost_for_long(before: Response) -> None:
    """By then the page that led away is looked at every few weeks."""
    one, other = HOME + "a", HOME + "b"
    world = World({HOME: page("home", "/a", "/b"), one: before, other: page("content")})
    lost = []

    def look() -> None:
        if not world.stored() & {one, other}:
            lost.append(world.clock.now())

    events: dict[float, Callable[[], None]] = {day * DAY + 100: look for day in range(43, 54)}
    events[44 * DAY] = world.script(one, page("content"))
    events[44 * DAY + 1] = world.script(other, status(301, location="/a"))
    world.crawl(HOME, seconds=54 * DAY, meanwhile=events)
    assert lost == []
    assert one in world.stored()


class CountingParser(InlineParser):
    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[str] = Counter()

    async def parse(self, page: RawPage) -> ParsedPage:
        self.read[page.url] += 1
        return await super().parse(page)


def test_bytes_that_are_held_are_not_read_again_whatever_they_ask() -> None:
    parser = CountingParser()
    listed = sitemap(HOME)
    asking = replace(listed, headers=(*listed.headers, ("x-robots-tag", "noindex")))
    hidden = page("home", "/asked", head='<meta name="robots" content="noindex">')
    asked = page("asked", **{"x-robots-tag": "none"})
    world = World({HOME: hidden, HOME + "asked": asked, SITEMAP: asking}, parser=parser)
    world.crawl(HOME, seconds=10 * DAY)
    assert all(world.page(url).visits > 3 for url in (HOME, HOME + "asked", SITEMAP))
    assert parser.read == {HOME: 1, HOME + "asked": 1, SITEMAP: 1}


def test_once_visits_everything_once_and_ends() -> None:
    world = World(small_web())
    report = world.crawl(HOME)
    assert report.stopped == "done"
    assert world.stored() == {HOME, HOME + "1", HOME + "2"}
    assert [url for _, url in world.asked()].count(HOME) == 1


def test_a_start_page_that_answers_304_later_does_not_end_the_crawl() -> None:
    def home(request: Request) -> Response:
        conditional = any(name == "If-None-Match" for name, _ in request.headers)
        return status(304) if conditional else page("home", "/1", etag='"e"')

    world = World({HOME: home, HOME + "1": page("one")})
    world.crawl(HOME)
    world.web.script(HOME + "1", page("one", "/new", words=text("changed")))
    world.web.script(HOME + "new", page("new"))
    report = world.crawl(HOME, seconds=3 * HOUR)
    assert report.stopped == "interrupted"
    assert world.page(HOME).history[-1].outcome is Outcome.UNCHANGED
    assert world.page(HOME).version == 1
    assert {HOME, HOME + "1", HOME + "new"} <= world.stored()


def test_304_to_the_first_request_is_a_failure_and_the_sitemap_still_leads_on() -> None:
    world = World({HOME: status(304), SITEMAP: sitemap(HOME + "1"), HOME + "1": page("one")})
    report = world.crawl(HOME)
    assert report.failed == {"protocol": 1}
    assert world.page(HOME).state is PageState.FAILED
    assert world.stored() == {HOME + "1"}


@pytest.mark.parametrize(
    "answer", [status(500), status(404), status(200, b"<html>sorry</html>"), failing(Reason.BYTES)]
)
def test_a_sitemap_that_fails_deletes_nothing(answer: Response) -> None:
    web = small_web() | {SITEMAP: sitemap(HOME + "1", HOME + "hidden"), HOME + "hidden": page("hidden")}
    world = World(web)
    world.crawl(HOME)
    before = world.stored()
    assert HOME + "hidden" in before
    world.web.script(SITEMAP, answer)
    world.crawl(seconds=2 * DAY)
    assert before <= world.stored()


def test_a_vanished_page_leaves_search_keeps_its_versions_and_comes_back() -> None:
    world = World(small_web())
    world.crawl(HOME)
    index = MemoryIndex()

    def found() -> int:
        catch_up(world.store, index, 10)
        return index.search(Query("one7")).total

    assert found() == 1
    world.web.script(HOME + "1", status(404))
    world.crawl(seconds=2 * HOUR)
    assert world.page(HOME + "1").state is PageState.GONE
    assert world.page(HOME + "1").reason is Reason.GONE
    assert found() == 0
    assert HOME + "1" not in world.stored()
    assert len(world.store.versions(HOME + "1")) == 1
    world.web.script(HOME + "1", small_web()[HOME + "1"])
    world.crawl(seconds=3 * DAY)
    assert world.page(HOME + "1").state is PageState.LIVE
    assert found() == 1


def test_an_orphan_keeps_its_own_schedule_until_it_answers_404() -> None:
    world = World(small_web())
    world.crawl(HOME)
    world.web.script(HOME, page("home", words=text("nolinks")))
    world.web.script(HOME + "1", page("one", words=text("nolinks either")))
    world.crawl(seconds=12 * HOUR)
    orphan = world.page(HOME + "2")
    assert orphan.state is PageState.LIVE
    assert orphan.visits >= 3
    world.web.script(HOME + "2", status(404))
    world.crawl(seconds=2 * DAY)
    assert world.page(HOME + "2").state is PageState.GONE


def test_what_a_crawl_that_goes_once_leaves_because_its_site_rests_is_counted() -> None:
    broken, good = [f"/broken{n}" for n in range(6)], [f"/good{n}" for n in range(30)]
    answers = {HOME.rstrip("/") + path: status(500) for path in broken}
    answers |= {HOME.rstrip("/") + path: page(path) for path in good}
    world = World({HOME: page("home", *broken, *good), **answers}, "[politeness]\nmax_concurrent = 1")
    report = world.crawl(HOME)
    visited = len({url for _, url in world.asked()} & answers.keys())
    assert (report.stopped, report.unvisited) == ("done", len(answers) - visited)
    assert report.unvisited >= len(good) - 1


@pytest.mark.parametrize("trouble", [failing(Reason.CONNECT), status(500), status(503), failing(Reason.SECONDS)])
def test_a_site_that_is_down_for_a_day_rests_and_recovers_by_itself(trouble: Response) -> None:
    pages = {HOME + str(n): page(f"page {n}") for n in range(30)}
    web: dict[str, Response] = {HOME: page("home", *(f"/{n}" for n in range(30))), ROBOTS: status(404), **pages}
    web["http://b.test/"] = page("neighbour")
    world = World(web, "[politeness]\nrobots_ttl = 600_000.0")
    world.crawl(HOME, "http://b.test/")
    before = world.stored()
    world.clock.advance(HOUR)
    asked_before = len(world.asked(HOME))
    for url in web:
        if url.startswith(HOME):
            world.web.script(url, trouble)
    world.crawl(seconds=DAY)
    during = len(world.asked(HOME)) - asked_before
    assert 5 <= during <= 40
    assert world.stored() == before
    assert len(world.asked("http://b.test/")) > 5
    for url, answer in web.items():
        world.web.script(url, answer)
    world.crawl(seconds=3 * DAY)
    assert all(world.page(url).failures == 0 for url in before)
    assert all(world.page(url).state is PageState.LIVE for url in before)


@pytest.mark.parametrize(
    "trouble",
    [status(503), status(429), *(broken_off(200, reason) for reason in (Reason.PROTOCOL, Reason.SECONDS))],
)
def test_nothing_is_fetched_while_robots_txt_cannot_be_read(trouble: Response) -> None:
    world = World(small_web() | {ROBOTS: trouble})
    world.crawl(HOME, seconds=DAY)
    assert {url for _, url in world.asked()} == {ROBOTS}
    assert 3 <= len(world.asked()) <= 150
    assert world.page(HOME).reason is Reason.ROBOTS_UNREACHABLE
    world.web.script(ROBOTS, status(404))
    world.crawl(seconds=2 * DAY)
    assert world.stored() == {HOME, HOME + "1", HOME + "2"}


def answers_by_encoding(body: bytes) -> Callable[[Request], Response]:
    """As the fetcher tells of a Content-Encoding that is not true: nothing is kept, unless it was not to decode."""
    said = (("content-encoding", "gzip"),)

    def answered(request: Request) -> Response:
        if dict(request.headers).get("Accept-Encoding") == "identity":
            return Response("", 200, said, body)
        return Response("", 200, said, reason=Reason.PROTOCOL, detail="as the test says")

    return answered


@pytest.mark.parametrize("end", [b"", "# é".encode()[:-1]])
def test_a_robots_txt_that_is_not_encoded_as_it_says_is_read_as_it_stands(end: bytes) -> None:
    world = World(small_web())
    world.web.script(ROBOTS, answers_by_encoding(b"User-agent: *\nDisallow: /1\n" + end))
    world.crawl(HOME)
    assert world.stored() == {HOME, HOME + "2"}


def test_a_robots_txt_whose_compressed_bytes_are_broken_is_not_read_as_text() -> None:
    world = World(small_web())
    world.web.script(ROBOTS, answers_by_encoding(gzip.compress(b"User-agent: *\nDisallow: /1\n")[:-9]))
    world.crawl(HOME, seconds=HOUR)
    assert {url for _, url in world.asked()} == {ROBOTS}
    assert world.page(HOME).reason is Reason.ROBOTS_UNREACHABLE


def test_a_robots_txt_that_is_not_there_needs_no_body_to_say_so() -> None:
    world = World(small_web() | {ROBOTS: broken_off(404, Reason.PROTOCOL)})
    world.crawl(HOME)
    assert world.stored() == {HOME, HOME + "1", HOME + "2"}


def test_a_robots_txt_that_forbids_later_is_obeyed_and_what_is_stored_stays() -> None:
    world = World(small_web())
    world.crawl(HOME)
    world.web.script(ROBOTS, status(200, b"User-agent: *\nDisallow: /1\n", content_type="text/plain"))
    world.crawl(seconds=2 * DAY)
    read = [at for at, url in world.asked(ROBOTS)][1]
    assert not [url for at, url in world.asked() if at > read and url == HOME + "1"]
    assert world.page(HOME + "1").reason is Reason.ROBOTS
    assert HOME + "1" in world.stored()
    assert world.refused()["robots"] >= 1


@pytest.mark.parametrize("restarted", [False, True])
def test_crawl_delay_is_obeyed(restarted: bool) -> None:
    robots = status(200, b"User-agent: *\nCrawl-delay: 20\n", content_type="text/plain")
    web = {HOME: page("home", *(f"/{n}" for n in range(8)))} | {HOME + str(n): page(f"page {n}") for n in range(8)}
    world = World(web | {ROBOTS: robots})
    if restarted:
        world.crawl(HOME, max_pages=3)
        world.clock.advance(60)
    begun = len(world.asked())
    world.crawl(HOME)
    times = [at for at, _ in world.asked()][begun:]
    assert len(times) >= 7
    assert all(later - sooner >= 19.99 for sooner, later in pairwise(times))


@pytest.mark.parametrize(
    "other", [status(404), failing(Reason.CONNECT), status(200, b"User-agent: *\nCrawl-delay: 5\n")]
)
def test_a_crawl_delay_holds_whatever_the_robots_txt_of_the_other_scheme_says(other: Response) -> None:
    secure = "https://a.test/"
    pages = {f"{start}{n}": page(f"{start} {n}") for start in (HOME, secure) for n in range(4)}
    robots = {f"{secure}robots.txt": status(200, b"User-agent: *\nCrawl-delay: 20\n"), ROBOTS: other}
    world = World({secure: page("home", *pages), **pages, **robots}, "[crawl]\nsitemaps = false")
    world.crawl(secure, seconds=HOUR / 2)
    times = [at for at, _ in world.asked()]
    assert {f"{secure}{n}" for n in range(4)} | {ROBOTS} <= {url for _, url in world.asked()}
    assert all(later - sooner >= 19.99 for sooner, later in pairwise(times))
    site = world.store.site("a.test")
    assert site is not None
    assert site.delay == 20.0


@pytest.mark.parametrize(("code", "asked_for"), [(429, "120"), (503, "120"), (429, "Tue, 14 Nov 2023 22:20:00 GMT")])
def test_retry_after_is_obeyed(code: int, asked_for: str) -> None:
    web = small_web() | {HOME + "1": [status(code, retry_after=asked_for), page("one")]}
    world = World(web)
    report = world.crawl(HOME, seconds=2 * HOUR)
    times = [at for at, _ in world.asked()]
    told = next(at for at, url in world.asked() if url == HOME + "1")
    after = [at for at in times if at > told]
    assert after[0] - told >= 119
    assert report.failed == {"retry-after": 1}
    assert HOME + "1" in world.stored()


def test_max_backoff_bounds_what_a_retry_after_asks_for() -> None:
    web = small_web() | {HOME + "1": [status(429, retry_after="7200"), page("one")]}
    world = World(web, "[politeness]\nmax_backoff = 600.0")
    world.crawl(HOME, seconds=1800.0)
    told = next(at for at, url in world.asked() if url == HOME + "1")
    after = [at - told for at, _ in world.asked() if at > told]
    assert 599 <= after[0] <= 660
    assert HOME + "2" in world.stored()


@pytest.mark.parametrize("over", ["0", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_a_site_that_fails_rests_though_it_says_that_the_wait_is_over(over: str) -> None:
    down = {HOME + str(n): status(503, retry_after=over) for n in range(40)}
    world = World({HOME: page("home", *down), ROBOTS: status(404), **down}, "[crawl]\nsitemaps = false")
    world.crawl(HOME, seconds=300.0)
    assert sum(url in down for _, url in world.asked()) == world.settings.politeness.backoff_after


def test_once_waits_for_a_short_retry_after_but_not_for_a_long_one() -> None:
    def web(seconds: str) -> dict[str, Response]:
        return small_web() | {HOME + "1": status(429, retry_after=seconds)}

    short, long = World(web("60")), World(web("7200"))
    assert short.crawl(HOME).seconds < 120
    assert HOME + "2" in short.stored()
    assert long.crawl(HOME).seconds < 60
    assert HOME + "2" not in long.stored()


def test_a_start_address_that_redirects_takes_its_scope_along() -> None:
    www = "https://www.a.test/"
    world = World(
        {
            HOME: status(301, location="https://a.test/"),
            "https://a.test/": status(301, location=www),
            www: page("home", "/1", "http://other.test/"),
            www + "1": page("one", www + "2"),
            www + "2": page("two"),
            "http://other.test/": page("other"),
        }
    )
    report = world.crawl(HOME)
    assert world.stored() == {www, www + "1", www + "2"}
    assert report.refused["scope"] == 1
    assert {record.site for record in world.store.sites() if record.admitted} == {"a.test", "www.a.test"}
    world.web.script(www + "2", page("two", "/3", words=text("more")))
    world.web.script(www + "3", page("three"))
    world.crawl(seconds=3 * HOUR)
    assert www + "3" in world.stored()


def test_the_front_page_of_a_new_site_is_visited_first() -> None:
    deep = "http://b.test/deep/down"
    web = {HOME: page("home", deep), deep: page("deep"), "http://b.test/": page("front")}
    world = World(web, '[crawl]\nscope = "any"')
    world.crawl(HOME)
    there = [url for _, url in world.asked("http://b.test/") if not url.endswith((".txt", ".xml"))]
    assert there == ["http://b.test/", deep]


def test_depth_is_bounded_and_said_so() -> None:
    chain = {HOME + str(n): page(f"page {n}", f"/{n + 1}") for n in range(10)}
    world = World({HOME: page("home", "/0"), **chain}, "[crawl]\nmax_depth = 3")
    report = world.crawl(HOME)
    assert report.refused == {"depth": 1}
    assert len(world.stored()) == 4


def test_the_pages_of_a_site_are_bounded_and_said_so() -> None:
    from levada.store.base import StoreLimits

    web = {HOME: page("home", *(f"/{n}" for n in range(20)))} | {HOME + str(n): page(f"p {n}") for n in range(20)}
    world = World(web, limits=StoreLimits(max_pages_per_site=5, delay=1.0))
    world.crawl(HOME)
    assert world.refused()["site-full"] >= 15
    assert len(world.stored()) <= 5


def test_a_calendar_without_end_is_bounded() -> None:
    def day(request: Request) -> Response:
        number = int(request.url.rsplit("/", 1)[1])
        words = text("calendar", 40) + f" day {number}"
        return page("day", f"/calendar/{number + 1}", words=words)

    days: dict[str, object] = {f"{HOME}calendar/{n}": day for n in range(500)}
    world = World({HOME: page("home", "/calendar/0"), **days}, "[crawl]\nmax_depth = 1000")  # type: ignore[dict-item]
    report = world.crawl(HOME)
    assert report.refused["near-duplicates"] == 1
    assert report.fetched < 30


@pytest.mark.parametrize("delay", [0.0, 2.0])
def test_once_ends_however_pages_and_sites_behave(delay: float) -> None:
    web: dict[str, object] = {HOME: page("home", *(f"/{n}" for n in range(20)), "http://dead.test/x")}
    web |= {HOME + str(n): status(500 if n % 2 else 403) for n in range(20)}
    world = World(web, f'[crawl]\nscope = "any"\n[politeness]\ndelay = {delay}')  # type: ignore[arg-type]
    report = world.crawl(HOME)
    assert report.stopped == "done"
    assert report.seconds < 1000
    assert world.page("http://dead.test/x").reason is Reason.DNS
    asked = [url for _, url in world.asked()]
    assert len(asked) == len(set(asked))


def test_once_ends_on_a_dead_site_with_many_pages() -> None:
    web = {HOME: page("home", *(f"/{n}" for n in range(50)))} | {
        HOME + str(n): failing(Reason.CONNECT) for n in range(50)
    }
    world = World(web)
    report = world.crawl(HOME)
    assert report.stopped == "done"
    assert report.seconds < HOUR
    assert len(world.asked()) < 20


def test_a_second_once_visits_what_was_due_and_nothing_else() -> None:
    world = World(small_web())
    world.crawl(HOME)
    begun = len(world.asked())
    assert world.crawl(HOME).fetched == 0
    world.clock.advance(2 * HOUR)
    report = world.crawl(HOME)
    assert report.unchanged == 3
    assert len(world.asked()) - begun == 3


@pytest.mark.parametrize("most", [1, 2, 5])
def test_max_pages_is_the_number_of_pages_asked_for(most: int) -> None:
    web = {HOME: page("home", *(f"/{n}" for n in range(20)))} | {HOME + str(n): page(f"p {n}") for n in range(20)}
    world = World(web)
    report = world.crawl(HOME, max_pages=most)
    assert report.stopped == "limit"
    assert report.fetched == most
    assert len([url for _, url in world.asked() if not url.endswith("robots.txt")]) == most
    assert world.store.stats(world.clock.now()).leased == 0


def test_budgets_hold_over_every_hour_of_a_day() -> None:
    sites = [f"http://s{n}.test/" for n in range(4)]
    web = {site: page(site, *(f"/{n}" for n in range(60))) for site in sites}
    web |= {f"{site}{n}": page(f"{site} {n}") for site in sites for n in range(60)}
    world = World(web, "[budget]\nper_hour = 30\nper_site_per_hour = 10")
    world.crawl(*sites, seconds=DAY)
    times = [at for at, _ in world.asked()]
    assert len(times) >= 24 * 30 * 0.9
    assert _most_within(times, HOUR) <= 31
    for site in sites:
        assert _most_within([at for at, _ in world.asked(site)], HOUR) <= 11


def _most_within(times: list[float], window: float) -> int:
    return max(sum(start <= at < start + window for at in times) for start in times)


def test_stopping_gives_leases_back_and_loses_nothing() -> None:
    web = {HOME: page("home", *(f"/{n}" for n in range(30)))} | {HOME + str(n): page(f"p {n}") for n in range(30)}
    world = World(web)
    report = world.crawl(HOME, seconds=10.5)
    assert report.stopped == "interrupted"
    assert world.store.stats(world.clock.now()).leased == 0
    assert 5 <= len(world.stored()) <= 10
    world.crawl(HOME)
    assert len(world.stored()) == 31
    assert world.web.at_once["a.test"] <= 2


def test_a_page_that_kills_the_parser_three_times_is_never_visited_again() -> None:
    from levada.core.errors import ParserDied
    from levada.parser.inline import InlineParser

    class Fragile(InlineParser):
        async def parse(self, page: RawPage) -> ParsedPage:
            if page.url.endswith("/1"):
                raise ParserDied("reading it ended the parser")
            return await super().parse(page)

    world = World(small_web(), parser=Fragile())
    report = world.crawl(HOME, seconds=5 * DAY)
    asked = [at for at, url in world.asked() if url == HOME + "1"]
    assert len(asked) == 3
    assert world.page(HOME + "1").state is PageState.QUARANTINED
    assert world.page(HOME + "1").next_visit is None
    assert report.failed == {"parser-died": 2}
    assert report.refused == {"quarantined": 1}
    assert HOME + "2" in world.stored()


def test_the_same_world_gives_the_same_commits() -> None:
    def run() -> list[object]:
        web = {HOME: page("home", *(f"/{n}" for n in range(12)), "http://b.test/")}
        web |= {HOME + str(n): page(f"p {n}", f"/{n + 1}", f"/x{n}") for n in range(12)}
        web |= {"http://b.test/": page("b", HOME)}
        world = World(web, '[crawl]\nscope = "any"')
        world.crawl(HOME, seconds=12 * HOUR, meanwhile={HOUR: world.script(HOME + "3", page("new", "/4"))})
        return list(world.commits)

    assert run() == run()
