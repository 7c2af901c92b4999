"""Noise on a whole crawl: with the rule of each kind of page no version is false, and every change is caught."""

from __future__ import annotations

import pytest

from levada.core.records import Outcome, Response
from levada.lab.noise import VISITS, NoisyPage, noisy_pages
from tests.crawl.simulated_crawl import DAY, World

PAGES = {page.name: page for page in noisy_pages()}
URL = "http://noise.test/page"


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
