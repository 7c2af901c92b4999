"""Estimates of change rates: sums over pages, and signal trust."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.hashing import drawn
from levada.core.records import Outcome, PageRecord, Signals
from levada.freshness import PageEstimates, Scale
from levada.freshness.estimates import Evidence, imagined, row_of, usual, write_prior
from levada.freshness.rates import RATES, chance_unchanged, observe, observe_cautiously, posterior
from levada.freshness.signals import SignalSource
from tests.freshness.facts import CEILING, DAY, FLOOR, HOUR, a_page, changes_within, crawled, policy, visited


def sums_of(estimates: PageEstimates) -> list[float]:
    members = list(estimates._members.values())
    return [sum(member.share[place] for member in members) for place in range(len(estimates.sums))]


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans(), st.booleans()), max_size=120), st.integers(4, 60))
@settings(max_examples=30)
def test_the_sums_are_those_of_the_members_whoever_comes_and_goes(
    events: list[tuple[int, bool, bool]], size: int
) -> None:
    revisit = policy(size=size, per_hour=60)
    estimates = revisit.estimates
    pages: dict[int, PageRecord] = {}
    for at, (number, changed, goes) in enumerate(events):
        page = pages.pop(number) if number in pages else a_page(number, number % 3)
        if goes:
            estimates.forget(page)
            continue
        outcome = Outcome.CHANGED if changed else Outcome.UNCHANGED
        pages[number] = visited(revisit, page, at * HOUR, outcome if page.visits else Outcome.FIRST)
    assert estimates.sums == pytest.approx(sums_of(estimates), abs=1e-9)
    assert len(estimates._ring) == len(estimates._members) <= size
    assert all(drawn(page_id, estimates.one_in) for page_id in estimates._members)
    assert sum(site.members for _, site in estimates.sites()) == len(estimates._members)


def test_a_panel_that_is_full_keeps_a_sample_and_stands_for_all() -> None:
    revisit = policy(size=100, per_hour=60)
    for number in range(1_000):
        visited(revisit, a_page(number, number % 9), float(number), Outcome.FIRST)
    assert revisit.estimates.one_in == 16
    assert revisit.estimates.pages == pytest.approx(1_000, rel=0.15)


def test_a_crawler_that_starts_again_believes_what_it_believed() -> None:
    chance = Random(1)
    revisit = policy(per_hour=100)
    rates = [10 ** -chance.uniform(3, 6) for _ in range(150)]
    pages = [visited(revisit, a_page(n, n % 4), 0.0, Outcome.FIRST) for n in range(150)]
    now = 12 * HOUR
    pages = crawled(revisit, pages, rates, chance, now)
    again = PageEstimates(Scale.between(FLOOR, CEILING))
    again.learn(pages, 1)
    before = revisit.estimates.share(now)
    assert before is not None
    assert again.share(now) == pytest.approx(before, abs=0.015)


def test_what_is_believed_current_is_current_that_often() -> None:
    """Pages of many rates, visited when planned for ten days: looked at together in the end."""
    chance = Random(2)
    revisit = policy(per_hour=60)
    rates = [0.0 if chance.random() < 0.5 else 10 ** -chance.uniform(3.5, 6.5) for _ in range(400)]
    pages = [visited(revisit, a_page(n, n % 11), 0.0, Outcome.FIRST) for n in range(400)]
    now = 10 * DAY
    pages = crawled(revisit, pages, rates, chance, now)
    looks = 40
    current = sum(
        not changes_within(chance, rates[n], now - page.history[-1].at)
        for n, page in enumerate(pages)
        for _ in range(looks)
    )
    assert revisit.estimates.share(now) == pytest.approx(current / looks / len(pages), abs=0.02)


def test_a_few_of_many_pages_tell_what_all_are_like() -> None:
    """Old and new pages in turn: whoever asked every second one would be far off."""
    revisit, now = policy(per_hour=60), 30 * DAY
    for number in range(1_800):
        visited(revisit, a_page(number, number % 7), now * (number % 2), Outcome.FIRST)
    members = revisit.estimates.members()
    chances = [chance_unchanged(member.calibrated, RATES, now - member.at) for member in members]
    assert len(chances) == 1_800
    assert revisit.estimates.share(now) == pytest.approx(sum(chances) / 1_800, abs=0.03)


def test_the_pages_of_a_site_speak_for_a_new_one_of_it() -> None:
    revisit = policy(per_hour=60)
    for site, outcome in ((1, Outcome.CHANGED), (2, Outcome.UNCHANGED)):
        for number in range(20):
            page = visited(revisit, a_page(number, site), 0.0, Outcome.FIRST)
            for step in range(1, 4):
                page = visited(revisit, page, step * 6 * HOUR, outcome)
    lively = visited(revisit, a_page(50, 1), DAY, Outcome.FIRST)
    still = visited(revisit, a_page(50, 2), DAY, Outcome.FIRST)
    assert (lively.interval or 0) < (still.interval or 0) / 2


@pytest.mark.parametrize(("age", "met"), [(2 * HOUR, Outcome.UNCHANGED), (400 * DAY, Outcome.CHANGED)])
def test_a_date_at_the_first_visit_says_how_fast_a_page_changes(age: float, met: Outcome) -> None:
    """A page modified just now on a site that stands still, and an old one on a site that changes."""
    revisit = policy(per_hour=10)
    for number in range(20):
        page = visited(revisit, a_page(number), 0.0, Outcome.FIRST)
        visited(revisit, page, 12 * HOUR, met)
    undated = visited(revisit, a_page(98), DAY, Outcome.FIRST)
    dated = visited(revisit, a_page(99), DAY, Outcome.FIRST, modified=DAY - age)
    assert ((dated.interval or 0) < (undated.interval or 0)) is (met is Outcome.UNCHANGED)


def told_of(honest: bool, seed: int = 3) -> tuple[float, float | None, float | None]:
    """The trust in a sitemap after 60 visits that it told of; when a page that it tells of is visited, and else."""
    chance = Random(seed)
    revisit = policy(per_hour=2)
    pages = [visited(revisit, a_page(n), 0.0, Outcome.FIRST) for n in range(20)]
    for step in range(1, 4):
        for n, page in enumerate(pages):
            changed = chance.random() < (0.9 if honest else 0.05)
            outcome = Outcome.CHANGED if changed else Outcome.UNCHANGED
            pages[n] = visited(revisit, page, step * DAY, outcome, said=Signals.SITEMAP | Signals.EARLY)
    return (
        revisit.estimates.trust(pages[0], SignalSource.SITEMAP),
        revisit.visit_after_hint(pages[0], Signals.SITEMAP),
        pages[0].next_visit,
    )


def test_a_sitemap_that_tells_the_truth_brings_visits_forward() -> None:
    trust, expected, planned = told_of(honest=True)
    assert trust > 0.8
    assert expected is not None
    assert planned is not None
    assert expected < planned - HOUR


def test_a_sitemap_that_cries_wolf_is_believed_less_and_less() -> None:
    revisit = policy(per_hour=2)
    page = visited(revisit, a_page(), 0.0, Outcome.FIRST)
    trusts = [revisit.estimates.hinted(page, Signals.SITEMAP)]
    for step in range(1, 10):
        page = visited(revisit, page, step * DAY, Outcome.UNCHANGED, said=Signals.SITEMAP)
        trusts.append(revisit.estimates.hinted(page, Signals.SITEMAP))
    assert trusts == sorted(trusts, reverse=True)
    assert trusts[-1] < 0.1
    assert told_of(honest=False)[0] < 0.15


def test_differences_that_pages_of_a_site_show_at_every_look_hardly_count() -> None:
    """A counter on every page: a difference of that size says next to nothing, a larger one all the more."""

    def interval_after(similarity: float) -> float:
        revisit = policy(per_hour=20)
        for number in range(30):  # looked at twice within minutes
            page = visited(revisit, a_page(number), 0.0, Outcome.FIRST)
            visited(revisit, page, 600.0, Outcome.CHANGED, similarity=1.0)
        page = visited(revisit, a_page(99), DAY, Outcome.FIRST)
        for step in range(1, 4):
            page = visited(revisit, page, DAY + step * HOUR, Outcome.CHANGED, similarity=similarity)
        return page.interval or 0.0

    assert interval_after(1.0) > 1.2 * interval_after(0.5)


def test_a_site_whose_304_lies_is_asked_for_the_whole_page() -> None:
    revisit = policy(per_hour=60)
    page = visited(revisit, a_page(8), 0.0, Outcome.FIRST)
    assert not revisit.wants_full_fetch(page)
    for step in range(1, 6):
        page = visited(revisit, page, step * HOUR, Outcome.CHANGED, said=Signals.SAME_TAG)
    assert revisit.wants_full_fetch(page)


def test_one_lie_with_304_is_enough_on_a_site_of_one_page_and_a_few_true_ones_make_up_for_it() -> None:
    revisit = policy(per_hour=60)
    page = visited(revisit, a_page(8), 0.0, Outcome.FIRST)
    page = visited(revisit, page, HOUR, Outcome.CHANGED, said=Signals.SAME_TAG)
    assert revisit.wants_full_fetch(page)
    for step in range(2, 6):
        page = visited(revisit, page, step * HOUR, Outcome.UNCHANGED, said=Signals.SAME_TAG)
    assert not revisit.wants_full_fetch(page)


def test_a_site_whose_304_was_always_right_stays_believed_whatever_changes_under_new_tags() -> None:
    revisit = policy(per_hour=60)
    page = visited(revisit, a_page(8), 0.0, Outcome.FIRST)
    for step in range(1, 7):
        outcome, said = (Outcome.CHANGED, Signals.NOTHING) if step % 2 else (Outcome.UNCHANGED, Signals.SAME_TAG)
        page = visited(revisit, page, step * HOUR, outcome, said=said)
        assert not revisit.wants_full_fetch(page)


def test_now_and_then_any_page_is_asked_for_whole() -> None:
    revisit = policy()
    asked = [revisit.wants_full_fetch(a_page(1, visits=visits)) for visits in range(64)]
    assert asked.count(True) == 4


some_evidence = st.lists(st.floats(-40, 0), min_size=len(RATES), max_size=len(RATES))


@given(some_evidence, st.none() | some_evidence, st.lists(st.floats(), max_size=8))
def test_what_is_kept_of_a_page_comes_back_as_far_as_two_bytes_tell(
    plan: list[float], cautious: list[float] | None, row: list[float]
) -> None:
    memory = Evidence(plan, plan if cautious is None else cautious).packed(row)
    again = Evidence.of(memory)
    assert again.plan == pytest.approx(plan, abs=0.02)
    assert again.cautious == pytest.approx(plan if cautious is None else cautious, abs=0.02)
    assert (again.cautious is again.plan) is (cautious is None)
    assert len(memory) == 2 * len(RATES) + 8 * len(row) + (0 if cautious is None else 2 * len(RATES) + 1)
    kept = row_of(memory, len(row))
    assert kept is not None
    assert len(kept) == len(row)
    assert row_of(memory, len(row) + 1) is None


@given(
    st.lists(st.tuples(st.floats(1, 1e7), st.booleans(), st.floats(-1, 1e7), st.floats(0, 1)), max_size=30),
    st.floats(0, 1e9),
)
def test_a_belief_is_one(visits: list[tuple[float, bool, float, float]], later: float) -> None:
    plan, cautious = [0.0] * len(RATES), [0.0] * len(RATES)
    for elapsed, changed, age, trust in visits:
        observe(plan, RATES, elapsed, changed, 0.97, age, trust, 0.3)
        observe_cautiously(cautious, RATES, elapsed, 0.97, age, trust, 0.3)
    for evidence, prior in (plan, imagined(RATES)), (cautious, usual(RATES)):
        probabilities = [0.0] * len(RATES)
        posterior(evidence, prior, probabilities)
        assert sum(probabilities) == pytest.approx(1.0)
        assert all(0.0 <= chance <= 1.0 for chance in probabilities)
        assert 0.0 <= chance_unchanged(probabilities, RATES, later) <= 1.0 + 1e-12


@given(st.lists(st.floats(0, 1e6), min_size=len(RATES), max_size=len(RATES)))
def test_a_prior_is_one_and_rules_nothing_out(sums: list[float]) -> None:
    prior = [0.0] * len(RATES)
    for initial in imagined(RATES), usual(RATES):
        write_prior(prior, sums, sums, initial)
        assert sum(prior) == pytest.approx(1.0)
        assert all(chance > 0.0 for chance in prior)
