"""When visits get cheaper, what was planned too late is brought forward; nothing is ever put off."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest
from msgspec.structs import replace

from levada.core.protocols import ChangeHints, Frontier
from levada.core.records import Outcome, PageRecord, PlanSelection, Signals, Visit
from levada.crawl.change_hints import ReplanningStep, SharedChangeStep
from levada.freshness import LearnedRevisit, PageEstimates, Scale
from levada.testing.policy import a_page
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


class Planned:
    """The planned pages of a site."""

    def __init__(self, pages: list[PageRecord]) -> None:
        self._pages = pages

    def planned(self, selection: PlanSelection, after: int, limit: int) -> list[PageRecord]:
        return [each for each in self._pages if each.id > after and each.site == selection.site][:limit]


class Kept:
    """What is brought forward."""

    def __init__(self) -> None:
        self.moved: list[tuple[PageRecord, Signals, float]] = []

    def bring_forward(self, pages: Sequence[tuple[PageRecord, Signals, float]]) -> None:
        self.moved += pages


def test_a_change_that_pages_of_a_site_share_brings_the_visits_to_the_others_forward() -> None:
    """Forty pages change together once a week; of the last time, five were visited."""
    policy = learned(20)
    records = [a_page(n) for n in range(40)]
    told = []
    for day in range(57):
        outcome = Outcome.FIRST if day == 0 else Outcome.UNCHANGED if day % 7 else Outcome.CHANGED
        for n, record in enumerate(records[: 5 if day == 56 else None]):
            visit = Visit(day * DAY + 60.0 * n, outcome)
            plan = policy.plan(record, visit)
            history = (*record.history, visit)[-10:]
            records[n] = replace(record, memory=plan.memory, history=history, visits=day + 1, interval=plan.interval)
            told.append(plan.site_changed)
    assert any(told[-5:])
    now = 56 * DAY + 600.0
    frontier, hints = Planned([replace(record, next_visit=now + DAY) for record in records]), Kept()
    step = SharedChangeStep(cast(Frontier, frontier), cast(ChangeHints, hints), policy, InlineKeeper())
    moved = asyncio.run(step(records[0].site, now))
    assert moved == len(hints.moved) >= 30
    due = {record.id for record, _, wanted in hints.moved if wanted <= now}
    assert due == {record.id for record in records[5:]}  # the five were visited since
    assert all(wanted < now + DAY for _, _, wanted in hints.moved)
