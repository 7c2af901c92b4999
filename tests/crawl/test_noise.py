"""Noise on a whole crawl: with the rule of each kind of page no version is false, and every change is caught."""

from __future__ import annotations

import pytest

from levada.core.records import Outcome, Response
from levada.lab.noise import VISITS, NoisyPage, noisy_pages
from levada.pages.unsteady import uncounted_lines
from tests.crawl.simulated_crawl import DAY, HOUR, World

PAGES = {page.name: page for page in noisy_pages()}
URL = "http://noise.test/page"
HOURLY = """[crawl]\nsitemaps = false\n[revisit]\npolicy = "fixed"\nfirst = 3600\nfloor = 3600\nceiling = 3600\n"""


def crawled(page: NoisyPage) -> World:
    """The page after so many visits, under its rule."""
    answers = [Response("", 200, (("content-type", page.kind),), body) for body in page.bodies]
    world = World({URL: answers}, "[crawl]\nsitemaps = false\n")
    keys = {"select": page.rule.select, "remove": page.rule.remove, "ignore": page.rule.ignore}
    world.settings = world.settings.replace(
        {f"site.noise.test.{key}": list(entries) for key, entries in keys.items() if entries}
    )
    world.crawl(URL)
    for _ in answers[1:]:
        world.clock.advance(40 * DAY)
        world.crawl()
    return world


@pytest.mark.parametrize("page", PAGES.values(), ids=list(PAGES))
def test_with_a_rule_no_version_is_false_and_every_change_is_caught(page: NoisyPage) -> None:
    world = crawled(page)
    outcomes = [each.visit.outcome for each in world.commits if each.lease.page.url == URL]
    changed = frozenset(visit for visit, outcome in enumerate(outcomes) if outcome is Outcome.CHANGED)
    assert (len(outcomes), outcomes[0], changed) == (VISITS, Outcome.FIRST, page.changes)
    assert world.page(URL).version == 1 + len(page.changes)
    told = [each.what.value for each in world.store.change_log(0, VISITS)]
    assert told == ["new", *["changed"] * len(page.changes)]


def test_nearly_every_visit_brings_other_bytes_and_the_same_seed_the_same_pages() -> None:
    assert all(len(set(page.bodies)) > VISITS // 2 for page in PAGES.values())
    assert list(noisy_pages(7, visits=30)) == list(noisy_pages(7, visits=30))
    assert list(noisy_pages(7, visits=30)) != list(noisy_pages(8, visits=30))


def test_a_line_that_is_another_at_each_visit_makes_no_more_versions_and_an_edit_beside_it_does() -> None:
    words = "<p>The council of the town met again and talked about the old bridge for hours.</p>" * 3
    rest = "".join(f"<p>Part {number} of what they said is printed here, as every week.</p>" for number in range(20))

    def body(visit: int, edit: str = "") -> bytes:
        return f"<title>Town</title><h1>Town</h1>{words}<p>Thought {'x' * visit} of the hour</p>{rest}{edit}".encode()

    edited = "<p>The bridge is closed from Monday.</p>"
    bodies = [*(body(visit) for visit in range(12)), body(12, edited), body(13, edited)]
    world = World({URL: [Response("", 200, (("content-type", "text/html"),), each) for each in bodies]}, HOURLY)
    world.crawl(URL)
    for _ in bodies[1:]:
        world.clock.advance(HOUR)
        world.crawl()
    outcomes = [each.visit.outcome for each in world.commits if each.lease.page.url == URL]
    told, quiet = [Outcome.CHANGED] * 5, [Outcome.UNCHANGED] * 6
    assert outcomes == [Outcome.FIRST, *told, *quiet, Outcome.CHANGED, Outcome.UNCHANGED]
    assert world.page(URL).version == 7
    stored = world.store.document(URL)
    assert stored is not None
    assert uncounted_lines(stored.text, stored.title, world.page(URL).text_digest) == [
        f"Thought {'x' * 12} of the hour"
    ]
