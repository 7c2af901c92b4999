"""An outage of the network is recognised, costs no page and no site anything, and ends with the first answer."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.crawl.outage import FAILURES, LONGEST, SHORTEST, OutageRule
from tests.crawl.simulated_crawl import DAY, HOUR, World, failing, page, status

SITES = [f"http://{name}.test/" for name in ("a", "b", "c", "d")]
QUICK = "[crawl]\nsitemaps = false\n[politeness]\ndelay = 1\n[revisit]\nfirst = 600\nfloor = 300\nceiling = 900\n"
ORIGINS = st.sampled_from(["http://a", "http://b", "http://c", "http://d"])
STEPS = st.lists(st.tuples(st.sampled_from(["reached", "failed", "probed"]), ORIGINS), max_size=60)


@given(STEPS)
def test_there_is_an_outage_only_after_failures_in_a_row_and_a_probe_in_vain(steps: list[tuple[str, str]]) -> None:
    rule, row, ever = OutageRule(), 0, False
    for at, (step, origin) in enumerate(steps):
        if step == "reached":
            ended = rule.reached(origin)
            assert rule.since is None
            assert not ended or row >= FAILURES
            row, ever = 0, True
        elif step == "failed":
            rule.failed(float(at))
            row += 1
        elif rule.suspicious or rule.since is not None:
            was_down = rule.since is not None
            assert rule.probed_in_vain() is (ever and not was_down)
            row = row if ever else 0
        if rule.since is not None:
            assert ever
            assert row >= FAILURES
            assert rule.since <= at


@given(STEPS, st.floats(0, 1e7))
def test_the_pause_between_probes_is_short_beside_the_outage(steps: list[tuple[str, str]], later: float) -> None:
    rule = OutageRule()
    for at, (step, origin) in enumerate(steps):
        if step == "reached":
            rule.reached(origin)
        elif step == "failed":
            rule.failed(float(at))
        else:
            rule.probed_in_vain()
    pause = rule.pause(len(steps) + later)
    assert SHORTEST <= pause <= (3600.0 if rule.few else LONGEST)
    if rule.since is not None:
        assert pause <= max(LONGEST, 0.1 * (len(steps) + later - rule.since))


@given(st.lists(ORIGINS, min_size=1, max_size=30))
def test_only_what_answered_is_probed_each_once(reached: list[str]) -> None:
    rule = OutageRule()
    assert rule.targets() == []
    for origin in reached:
        rule.reached(origin)
    targets = rule.targets()
    assert len(set(targets)) == len(targets) == min(3, len(set(reached)))
    assert targets[0] == reached[-1]


def test_a_crawl_that_never_reached_anything_does_not_see_an_outage() -> None:
    rule = OutageRule()
    for at in range(3 * FAILURES):
        rule.failed(float(at))
    assert rule.suspicious
    assert rule.probed_in_vain() is False
    assert not rule.suspicious


class Cable:
    """A network that can be cut."""

    def __init__(self, world: World, reason: Reason = Reason.DNS) -> None:
        self._fetch = world.web.fetch
        self._reason = reason
        self.is_cut = False
        world.web.fetch = self.fetch  # type: ignore[method-assign]

    async def fetch(self, request: Request) -> Response:
        answer = await self._fetch(request)
        return Response(request.url, 0, reason=self._reason) if self.is_cut else answer

    def cut(self) -> None:
        self.is_cut = True

    def mend(self) -> None:
        self.is_cut = False


def small_web(sites: list[str], count: int = 12) -> dict[str, Response]:
    web = {}
    for site in sites:
        web[site] = page(f"home {site}", *(f"/{n}" for n in range(count)))
        web |= {f"{site}{n}": page(f"{site} {n}") for n in range(count)}
    return web


@pytest.mark.parametrize("reason", [Reason.DNS, Reason.CONNECT, Reason.SECONDS])
@pytest.mark.parametrize("sites", [SITES, SITES[:1]], ids=["several", "one"])
@pytest.mark.parametrize("hours", [1, 10])
def test_after_an_outage_every_page_is_visited_within_minutes(
    sites: list[str], reason: Reason, hours: int, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(small_web(sites), QUICK)
    cable = Cable(world, reason)
    world.crawl(*sites, seconds=HOUR)
    known = {url: world.page(url) for url in world.stored()}
    end = HOUR + hours * HOUR
    asked: list[int] = []
    look: Callable[[], None] = lambda: asked.append(len(world.asked()))  # noqa: E731
    events = {10.0: cable.cut, HOUR / 2: look, end - 10.0: look, end: cable.mend}
    with caplog.at_level(logging.INFO):
        world.crawl(seconds=end + 1800.0, meanwhile=events)
    said = " ".join(record.message for record in caplog.records)
    assert "the network seems to be down" in said
    assert "the network is back" in said
    assert asked[1] - asked[0] <= 3.3 * (end - HOUR / 2) / 60.0, "only probes, three a minute"
    for url, before in known.items():
        after = world.page(url)
        assert (after.failures, after.reason) == (0, None), url
        assert after.visits > before.visits
        assert after.history[-1].at >= world.clock.now() - 1800.0, url
    assert all(record.failures == 0 and record.rest_until <= world.clock.now() for record in world.store.sites())


def test_an_outage_teaches_the_policy_nothing() -> None:
    """The intervals between visits are as they would be without it."""
    world = World(small_web(SITES), QUICK)
    cable = Cable(world)
    world.crawl(*SITES, seconds=HOUR)
    before = {url: world.page(url).interval for url in world.stored()}
    world.crawl(seconds=6 * HOUR, meanwhile={5.0: cable.cut})
    waited = {url: world.page(url) for url in before}
    assert {url: each.interval for url, each in waited.items()} == before
    assert max(each.failures for each in waited.values()) <= 1
    assert sum(each.failures for each in waited.values()) <= FAILURES


def test_a_site_that_is_down_alone_is_no_outage_and_its_pages_are_due_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(small_web(SITES[:2]), QUICK)
    world.crawl(*SITES[:2], seconds=HOUR)
    down = [url for url in world.stored() if url.startswith(SITES[0])]
    scripts = {url: world.web._script[url] for url in down}
    for url in down:
        world.web.script(url, failing(Reason.CONNECT))
    with caplog.at_level(logging.WARNING):
        world.crawl(seconds=10 * HOUR)
    assert "network" not in caplog.text
    site = world.store.site("a.test")
    assert site is not None
    assert site.failures >= 5
    for url, answers in scripts.items():
        world.web.script(url, *answers)
    world.clock.advance(max(0.0, site.rest_until - world.clock.now()))
    world.crawl(seconds=HOUR)
    assert all(world.page(url).failures == 0 for url in down)


def test_a_crawl_that_is_to_end_does_not_wait_for_the_network() -> None:
    world = World(small_web(SITES), QUICK)
    cable = Cable(world)
    world.crawl(*SITES)
    world.clock.advance(DAY)
    cable.cut()
    report = world.crawl()
    assert report.stopped == "offline"
    assert report.seconds < 120
    assert sum(world.page(url).failures for url in world.stored()) <= FAILURES
    cable.mend()
    again = world.crawl()
    assert again.stopped == "done"
    assert again.unchanged >= len(world.stored()) - FAILURES


def test_start_addresses_that_lead_nowhere_are_no_outage() -> None:
    dead = [f"http://dead{n}.test/" for n in range(12)]
    world = World({}, QUICK)
    report = world.crawl(*dead)
    assert report.stopped == "done"
    assert report.failed == {"dns": 12}


def test_dead_sites_among_living_ones_are_found_out_by_a_probe(caplog: pytest.LogCaptureFixture) -> None:
    dead = [f"http://dead{n}.test/" for n in range(40)]
    world = World({**small_web(SITES[:1]), SITES[0] + "robots.txt": status(404)}, QUICK)
    world.crawl(SITES[0])
    report = world.crawl(*dead)
    assert report.stopped == "done"
    assert report.failed == {"dns": 40}
    assert "network" not in caplog.text
    assert len([url for _, url in world.asked(SITES[0]) if url.endswith("robots.txt")]) <= 1 + 40 / FAILURES
