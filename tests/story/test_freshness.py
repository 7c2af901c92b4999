"""Freshness on the bundled web, in simulated time: our policy beside the paper's rule and round robin, with as many
fetches each, measured against the web's own record of every change."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from levada.collection.components import learn_from_sample, make_policy
from levada.core.records import Outcome, Request, Response
from levada.core.settings import parse_settings
from levada.demo.actual import ActualFreshness, fresh_at, measure, round_robin
from levada.demo.http import WebRequest
from levada.demo.server import PER_PAGE_PER_DAY
from levada.demo.sites import SiteAnswers
from levada.demo.world import DemoWorld as Web
from levada.store.memory import MemoryStore
from tests.crawl.simulated_crawl import HOUR, TimedFetcher, World
from tests.manual_clock import ManualClock

PAGES, HOURS = 500, 3.5


class Crawled(msgspec.Struct):
    actual: ActualFreshness
    turns: ActualFreshness  # round robin with as many fetches
    estimate: float
    current: float


class WebFetcher(TimedFetcher):
    """Answers as the bundled web does at the time of the clock."""

    def __init__(self, web: Web, clock: ManualClock) -> None:
        super().__init__(clock, seconds=0.05)
        self._sites = SiteAnswers(web)
        self._clock = clock

    def _answer(self, request: Request) -> Response:
        parts = urlsplit(request.url)
        headers = {name.lower(): value for name, value in request.headers}
        asked = WebRequest("GET", parts.hostname or "", "", parts.path, parts.query, headers)
        answer = self._sites.answer(asked, self._clock.now())
        named = tuple((name.lower(), value) for name, value in answer.headers)
        return Response(request.url, answer.status, named, answer.body)


def crawled(web: Web, policy: str, per_hour: int) -> Crawled:
    """Everything once, as fast as it goes; from then on as the policy says, and counted."""
    store, now = MemoryStore(), web.origin + 8 * HOUR
    visits: list[tuple[str, float]] = []

    def crawl(per_hour: int, seconds: float | None) -> float | None:
        nonlocal now
        text = (
            f'[revisit]\npolicy = "{policy}"\n[politeness]\ndelay = 0\n'
            f"[budget]\nper_hour = {per_hour}\nper_page_per_day = {PER_PAGE_PER_DAY}\n"
        )
        revisit = make_policy(parse_settings(text, "the test"))
        learn_from_sample(revisit, store)
        world = World(settings=text, store=store, policy=revisit)
        world.clock.advance(now - world.clock.now())
        world.web = WebFetcher(web, world.clock)
        world.crawl(*web.start_urls(), seconds=seconds)
        now = world.clock.now()
        visits.extend(
            (each.lease.page.url, each.visit.at) for each in world.commits if each.visit.outcome <= Outcome.CHANGED
        )
        return revisit.estimates.share(now)

    crawl(0, None)
    begin, before = now, list(visits)
    estimate = crawl(per_hour, HOURS * HOUR)
    actual = measure(web, visits, begin, now)
    assert estimate is not None
    turns = round_robin(web, begin, now, actual.fetches, first=before)
    return Crawled(actual, turns, estimate, fresh_at(web, visits, now))


def test_ours_is_fresher_than_the_papers_rule_and_round_robin_with_as_many_fetches() -> None:
    web = Web.build(1, PAGES)
    paper = crawled(web, "ema", 0)
    ours = crawled(web, "learned", int(paper.actual.fetches / HOURS))
    print(
        f"fresh, by the truth: ours {ours.actual.freshness:.1%} ({ours.actual.fetches} fetches), "
        f"the paper's rule {paper.actual.freshness:.1%} ({paper.actual.fetches}), "
        f"round robin {ours.turns.freshness:.1%}; believed {ours.estimate:.1%}, true {ours.current:.1%}"
    )
    assert ours.actual.fetches <= 1.02 * paper.actual.fetches
    assert ours.actual.freshness > paper.actual.freshness + 0.005
    assert ours.actual.freshness > ours.turns.freshness + 0.005
    assert abs(ours.estimate - ours.current) < 0.04  # of 500 pages at one instant: two deviations are 2 points
