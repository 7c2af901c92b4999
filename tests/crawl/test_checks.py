"""Pages that a user wants checked go first in a running crawl, within politeness and the budget."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from levada.core.commands import EVERY_SITE, CheckNow, DropSite, Pause, Resume
from levada.core.reasons import Reason
from levada.core.records import Response
from tests.crawl.simulated_crawl import DAY, HOUR, World, failing, page
from tests.in_memory import MemoryCommandQueue

A, B = "http://a.test/", "http://b.test/"
SLOW = "[politeness]\ndelay = 2\n[crawl]\nsitemaps = false\n[revisit]\nfirst = 36000\n"


def world(settings: str = SLOW, count: int = 40) -> tuple[World, MemoryCommandQueue]:
    web: dict[str, Response] = {}
    for site in (A, B):
        web[site] = page(f"home {site}", *(f"/{n}" for n in range(count)))
        web |= {f"{site}{n}": page(f"{site} {n}") for n in range(count)}
    commands = MemoryCommandQueue()
    return World(web, settings, commands=commands), commands


def asked(place: World, url: str, after: float) -> list[float]:
    return [at for at, each in place.asked(url) if each == url and at >= after]


def began(place: World) -> float:
    """Seconds of the world when the next crawl begins."""
    return place.clock.now() - 1_700_000_000.0


def test_a_page_that_is_not_due_is_visited_within_seconds_and_once() -> None:
    place, commands = world()
    place.crawl(A, B)
    start = began(place)
    place.crawl(seconds=600.0, meanwhile={60.0: lambda: commands.submit(CheckNow((A + "7",)))})
    (at,) = asked(place, A + "7", start)
    assert 60.0 <= at - start < 64.0
    assert commands.pending() == []


def test_checked_pages_go_before_all_that_wait() -> None:
    """While both sites have their first forty pages to visit, one after the other."""
    place, commands = world()
    wanted = (A + "38", A + "39", B + "39")
    place.crawl(A, B, seconds=120.0, meanwhile={10.0: lambda: commands.submit(CheckNow(wanted))})
    for url in wanted:
        assert asked(place, url, 0.0)[0] < 18.0
    times = [at for at, _ in place.asked(A)]
    assert all(later - sooner >= 1.99 for sooner, later in pairwise(times)), "the delay holds"


def test_the_budget_holds_for_checks_too() -> None:
    place, commands = world(SLOW + "[budget]\nper_hour = 360\n")
    place.crawl(A, B)
    start = began(place)
    wanted = tuple(A + str(n) for n in range(20))
    place.crawl(seconds=100.0, meanwhile={0.5: lambda: commands.submit(CheckNow(wanted))})
    visits = [at for at, url in place.asked() if at >= start and not url.endswith("robots.txt")]
    assert 8 <= len(visits) <= 11


def test_a_page_that_nobody_knows_is_added() -> None:
    place, commands = world()
    place.crawl(A)
    place.web.script(A + "secret", page("secret"))
    place.web.script("http://c.test/", page("another site"))
    new = (A + "secret", "http://c.test/")
    place.crawl(seconds=60.0, meanwhile={5.0: lambda: commands.submit(CheckNow(new))})
    assert set(new) <= place.stored()


def test_all_pages_of_a_site_are_visited_before_others() -> None:
    place, commands = world(SLOW + "[budget]\nper_hour = 1800\n")
    place.crawl(A, B)
    place.clock.advance(20 * HOUR)  # all are due
    start = began(place)
    place.crawl(seconds=120.0, meanwhile={1.0: lambda: commands.submit(CheckNow(site="b.test"))})
    first = [url for at, url in place.asked() if at > start + 8 and not url.endswith("robots.txt")]
    assert len(first) > 20
    late = [at - start for at, url in place.asked(B) if at >= start]
    assert len(late) >= 0.45 * len([at for at, _ in place.asked() if at >= start])


def test_every_page_is_visited_when_all_are_wanted() -> None:
    place, commands = world()
    place.crawl(A, B)
    visits = {url: place.page(url).visits for url in place.stored()}
    place.crawl(seconds=300.0, meanwhile={5.0: lambda: commands.submit(CheckNow(site=EVERY_SITE))})
    assert {url: place.page(url).visits for url in visits} == {url: n + 1 for url, n in visits.items()}


def test_a_site_in_backoff_is_tried_once_and_an_answer_ends_the_backoff() -> None:
    place, commands = world(SLOW.replace("first = 36000", "first = 600"))
    place.crawl(A, B)
    scripts = {url: place.web._script[url] for url in place.stored() if url.startswith(A)}
    for url in scripts:
        place.web.script(url, failing(Reason.CONNECT))
    place.crawl(seconds=6 * HOUR)
    site = place.store.site("a.test")
    assert site is not None
    assert site.rest_until > place.clock.now() + HOUR / 2
    start = began(place)
    place.crawl(seconds=60.0, meanwhile={5.0: lambda: commands.submit(CheckNow((A,)))})
    assert len([url for at, url in place.asked(A) if at >= start and not url.endswith("robots.txt")]) <= 3
    still = place.store.site("a.test")
    assert still is not None
    assert still.rest_until > place.clock.now()
    for url, answers in scripts.items():
        place.web.script(url, *answers)
    place.crawl(seconds=600.0, meanwhile={5.0: lambda: commands.submit(CheckNow((A,)))})
    works = place.store.site("a.test")
    assert works is not None
    assert (works.failures, works.rest_until) == (0, 0.0)
    assert all(place.page(url).failures == 0 for url in scripts)


def test_a_dropped_site_stays_dropped_and_a_pause_is_obeyed() -> None:
    place, commands = world()
    place.crawl(A, B)
    commands.submit(DropSite("b.test"))
    place.crawl(seconds=5.0)
    start = began(place)
    events: dict[float, Callable[[], object]] = {
        1.0: lambda: commands.submit(Pause()),
        2.0: lambda: commands.submit(CheckNow((A + "1", B + "1"))),
        30.0: lambda: commands.submit(Resume()),
    }
    place.crawl(seconds=60.0, meanwhile=events)
    assert asked(place, B + "1", start) == []
    (at,) = asked(place, A + "1", start)
    assert at - start >= 30.0


def test_a_check_that_fails_does_not_put_the_planned_visit_off() -> None:
    place, commands = world(SLOW.replace("first = 36000", "first = 200\nfloor = 30"))
    place.crawl(A)
    planned = place.page(A + "39").next_visit
    place.web.script(A + "39", failing(Reason.CONNECT))
    place.crawl(seconds=4.0, meanwhile={0.1: lambda: commands.submit(CheckNow((A + "39",)))})
    after = place.page(A + "39")
    assert after.failures == 1
    assert planned is not None
    assert after.next_visit is not None
    assert after.next_visit <= planned


def test_a_check_outlives_the_crawl_that_got_it() -> None:
    place, commands = world()
    place.crawl(A)
    before = place.page(A + "5").visits
    commands.submit(CheckNow((A + "5",)))
    place.crawl(seconds=DAY / 1000)
    assert place.page(A + "5").visits == before + 1
