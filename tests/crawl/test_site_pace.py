"""The pace of sites by their rules on whole crawls: active hours, delays, budgets, limits and intervals."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.commands import CheckNow
from levada.core.records import PageState
from levada.core.site_rules.hours import ActiveHours
from levada.testing.common import properties
from tests.crawl.simulated_crawl import DAY, HOUR, START, World, page, status, text
from tests.crawl.test_changed_settings import Changing
from tests.crawl.test_several_workers import Several, Web
from tests.in_memory import MemoryCommandQueue

A, B = "http://a.example", "http://b.example"
# The world begins on a Tuesday at 22:13:20 UTC.
CLOSED, OPEN = "daily 8-18", "daily 20-8"


def two_sites(settings: str, pages: int = 8) -> World:
    web = {f"{site}/": page(f"Front {site}", *(f"/{n}" for n in range(pages))) for site in (A, B)}
    web |= {f"{site}/{n}": page(f"{n} {site}", words=text(f"{site[7]}{n}")) for site in (A, B) for n in range(pages)}
    return World(web, f"[crawl]\nsitemaps = false\n[politeness]\ndelay = 1\n{settings}")


def rule(*lines: str, match: str = "a.example") -> str:
    return "\n".join(["[[site]]", f'match = "{match}"', *lines, ""])


def test_outside_its_hours_a_site_is_not_asked_and_its_pages_stay_due() -> None:
    world = two_sites(rule(f'hours = "{CLOSED}"'))
    report = world.crawl(f"{A}/", f"{B}/")
    assert world.asked(A) == []
    assert (report.fetched, report.unvisited) == (9, 1)
    site = world.store.site("a.example")
    assert site is not None
    assert site.rest_until == START + 9 * HOUR + 46 * 60 + 40  # 8:00
    world.clock.advance(site.rest_until - world.clock.now())
    world.crawl()
    assert len(world.asked(A)) == 10


def test_a_site_within_its_hours_is_crawled_until_they_end_and_goes_on_when_they_begin_again() -> None:
    world = two_sites(rule('hours = ["daily 20-22:13:00"]'.replace(":00", ""), "delay = 60"), pages=30)
    world.crawl(f"{A}/", seconds=2 * DAY)
    hours = ActiveHours(["daily 20-22:13"])
    times = [at + START for at, _ in world.asked(A)]
    assert all(map(hours.is_open, times))
    assert len(world.stored()) == 31


HOURS = st.lists(
    st.sampled_from(["daily 22-1", "daily 23-2:30", "wed 3-4:30 Europe/Istanbul", "weekdays 23-23:20", "thu+sat 0-24"]),
    min_size=1,
    max_size=2,
)


@properties(12)
@given(HOURS, st.sampled_from([0.0, 5.0, 120.0]), st.floats(0.1, 40.0), st.booleans())
def test_no_request_ever_begins_outside_the_hours(
    texts: list[str], delay: float, seconds: float, robots_fail: bool
) -> None:
    world = two_sites(
        "[revisit]\nfirst = 1800\nfloor = 600\nceiling = 7200\n"
        + rule(f"hours = {list(texts)}".replace("'", '"'), f"delay = {delay}")
    )
    world.web.seconds = seconds
    if robots_fail:
        world.web.script(f"{A}/robots.txt", status(503), status(404))
    world.crawl(f"{A}/", f"{B}/", seconds=6 * HOUR)
    hours = ActiveHours(texts)
    assert [url for at, url in world.asked(A) if not hours.is_open(START + at)] == []
    assert world.asked(B)
    was_open = any(hours.is_open(START + n * 60.0) for n in range(300))
    assert bool([at for at, _ in world.asked(A)]) is was_open


@properties(3)
@given(HOURS, st.floats(0.1, 40.0))
def test_workers_elsewhere_ask_no_site_outside_its_hours(texts: list[str], seconds: float) -> None:
    world = Web(f"[politeness]\ndelay = 20\n{rule(f'hours = {texts}'.replace(chr(39), chr(34)))}")
    world.web.seconds = seconds
    Several(world).run(3 * HOUR)
    hours = ActiveHours(texts)
    assert [url for at, url in world.asked(A) if not hours.is_open(START + at)] == []
    assert world.asked(B)


def test_hours_that_change_hold_for_the_running_crawl() -> None:
    world = two_sites(rule(f'hours = "{CLOSED}"'))
    world.live = changing = Changing(world)
    opened = changing.to({"site.a.example.hours": [OPEN]})
    closed = changing.to({"site.a.example.hours": [CLOSED]})
    world.crawl(f"{A}/", f"{B}/", seconds=200.0, meanwhile={100.0: opened, 104.0: closed})
    times = [at for at, _ in world.asked(A)]
    assert times
    assert 100.0 <= min(times) < 102.0
    assert max(times) < 106.0


def test_a_site_of_its_own_delay_waits_as_long_and_no_other_does() -> None:
    world = two_sites(rule("delay = 7"))
    world.crawl(f"{A}/", f"{B}/")
    for site, delay in ((A, 7.0), (B, 1.0)):
        times = [at for at, _ in world.asked(site)]
        assert min(later - earlier for earlier, later in pairwise(times)) >= delay
        assert times[-1] - times[0] == pytest.approx(delay * (len(times) - 1), abs=1.0)


def test_a_delay_shorter_than_that_of_all_sites_is_used() -> None:
    world = two_sites(rule("delay = 0.2"), pages=40)
    world.crawl(f"{A}/")
    times = [at for at, _ in world.asked(A)]
    assert times[-1] - times[0] <= 0.2 * len(times) + 2.0


def test_robots_txt_may_ask_for_more_than_the_delay_of_a_rule() -> None:
    world = two_sites(rule("delay = 0.5"))
    world.web.script(f"{A}/robots.txt", page("x"), page("x"))
    world.web.script(f"{A}/robots.txt", status(200, b"User-agent: *\nCrawl-delay: 9\n"))
    world.crawl(f"{A}/")
    times = [at for at, url in world.asked(A) if not url.endswith("robots.txt")]
    assert min(later - earlier for earlier, later in pairwise(times)) >= 9.0


@properties(10)
@given(st.integers(1, 200), st.sampled_from([0.0, 1.0, 30.0]), st.booleans())
def test_the_budget_of_a_site_is_never_exceeded(per_hour: int, delay: float, again: bool) -> None:
    world = two_sites(
        "[revisit]\nfirst = 300\nfloor = 300\nceiling = 600\n" + rule(f"per_hour = {per_hour}", f"delay = {delay}")
    )
    for _ in range(1 + again):
        world.crawl(f"{A}/", f"{B}/", seconds=HOUR)
    times = [at for at, _ in world.asked(A)]
    # Spread evenly, so as many begin within an hour as the budget has; each start of a crawl may add one.
    for first in times:
        assert sum(first <= each < first + HOUR - 1e-3 for each in times) <= per_hour + again
    assert len(world.asked(B)) > 50


def test_the_most_pages_of_a_site_are_its_own() -> None:
    world = two_sites(rule("max_pages = 5"))
    world.crawl(f"{A}/", f"{B}/")
    stored = world.stored()
    assert (sum(url.startswith(A) for url in stored), sum(url.startswith(B) for url in stored)) == (5, 9)
    assert world.refused() == {"site-full": 4}


@properties(10)
@given(st.sampled_from([30.0, 700.0, 5 * HOUR]), st.sampled_from([None, 900.0, 2 * DAY]), st.booleans())
def test_every_visit_is_planned_within_the_floor_and_the_ceiling_of_the_rule(
    floor: float, ceiling: float | None, changes: bool
) -> None:
    if ceiling is not None and floor > ceiling:
        floor = ceiling
    world = two_sites(
        "[revisit]\nfirst = 600\nfloor = 300\nceiling = 7200\n"
        + rule(f"floor = {floor}", *([f"ceiling = {ceiling}"] if ceiling else []))
    )
    words = (page("0", words=text(f"v{n}")) for n in range(40))
    if changes:
        world.web.script(f"{A}/0", *words)
    world.web.script(f"{A}/1", status(404))
    world.web.script(f"{A}/2", status(500))
    world.web.script(f"{A}/3", status(301, location="/4"))
    world.crawl(f"{A}/", f"{B}/", seconds=10 * HOUR)
    most = ceiling if ceiling is not None else max(floor, 7200.0)
    for result in world.commits:
        if result.next_visit is None:
            continue
        planned = result.next_visit - result.visit.at
        if result.lease.page.site == "b.example":
            assert 300.0 <= planned <= 7200.0
            continue
        assert planned <= most + 1e-6
        if result.state in (PageState.LIVE, PageState.ELSEWHERE) and not result.failures:
            assert planned >= floor - 1e-6


def test_pages_that_a_user_wants_now_are_not_asked_for_outside_the_hours() -> None:
    world = two_sites(rule('hours = ["daily 23-24"]'))
    world._commands = commands = MemoryCommandQueue()
    commands.submit(CheckNow((f"{A}/", f"{B}/")))
    world.crawl(f"{A}/", f"{B}/", seconds=2 * HOUR)
    times = [at for at, _ in world.asked(A)]
    assert min(times) == pytest.approx(2_800.0, abs=5.0)  # from 22:13:20 to 23:00
