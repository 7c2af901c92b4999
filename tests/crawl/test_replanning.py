"""When visits get cheaper, what was planned too late is brought forward; nothing is ever put off."""

from __future__ import annotations

import pytest

from levada.core.records import PageRecord
from levada.crawl.change_hints import ReplanningStep
from levada.freshness import LearnedRevisit, PageEstimates, Scale
from tests.crawl.simulated_crawl import DAY, World, ema_policy, page, run_simulated
from tests.crawl.test_change_hints import InlineKeeper

PAGES = [f"http://a.test/{n}" for n in range(40)]


def learned(per_hour: float) -> LearnedRevisit:
    return LearnedRevisit(PageEstimates(Scale.between(300.0, 30 * DAY)), per_hour=per_hour)


def planned(world: World) -> dict[str, float]:
    return {record.url: record.next_visit or 0.0 for record in world.store.sample(1)}


def crawled_at(per_hour: float) -> World:
    world = World({url: page(url) for url in PAGES}, policy=learned(per_hour))
    world.crawl(*PAGES)
    return world


def replanned(world: World, per_hour: float) -> int:
    policy = learned(per_hour)
    records: list[PageRecord] = list(world.store.sample(1))
    policy.estimates.learn(records, 1)
    step = ReplanningStep(world.store, world.store, policy, InlineKeeper(), world.clock, pause=0.2)
    return run_simulated(world.clock, step.everything)


def test_a_larger_budget_brings_visits_forward_at_once() -> None:
    world = crawled_at(per_hour=1)
    before = planned(world)
    assert replanned(world, per_hour=100) > 30
    after = planned(world)
    assert sum(after.values()) < sum(before.values()) - len(PAGES) * 3600
    assert all(after[url] <= before[url] for url in PAGES)
    assert all(at > world.clock.now() - 1.0 for at in after.values())


def test_a_smaller_budget_puts_nothing_off() -> None:
    world = crawled_at(per_hour=100)
    before = planned(world)
    assert replanned(world, per_hour=1) == 0
    assert planned(world) == before


def test_a_crawl_that_goes_on_with_a_larger_budget_spends_it() -> None:
    world = crawled_at(per_hour=1)
    policy = learned(60)
    policy.estimates.learn(world.store.sample(1), 1)
    more = World({url: page(url) for url in PAGES}, store=world.store, policy=policy)
    more.crawl(seconds=6 * 3600)
    assert len(more.commits) > 200


def test_a_policy_without_a_price_plans_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    world = crawled_at(per_hour=1)
    step = ReplanningStep(world.store, world.store, ema_policy(), InlineKeeper(), world.clock, pause=0.2)
    monkeypatch.setattr(step, "everything", lambda: pytest.fail("all pages were planned anew"))
    run_simulated(world.clock, step.run)  # ends at once
