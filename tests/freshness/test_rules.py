"""What holds for every rule, and what is particular to each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.freshness import RULES, Rule, revisit_rule
from levada.freshness.crawlers import cho, nutch, nutch_22, stormcrawler
from levada.freshness.paper import ema, real_time
from levada.freshness.rules import fixed
from levada.freshness.value import visit_rate
from tests.freshness.allocation import allocate
from tests.needs import package

HOUR, DAY = 3_600.0, 86_400.0

outcomes = st.lists(st.sampled_from([1, 2]), max_size=60)
odd_times = st.one_of(
    st.floats(0.0, 1e7), st.sampled_from([0.0, -1.0, 1e-300, 1e300, math.inf, -math.inf, math.nan, 5e-324])
)
visits = st.lists(st.tuples(odd_times, st.sampled_from([0, 1, 2])), max_size=60)
scales = st.floats(1e-6, 1e6)
every_rule = pytest.mark.parametrize("name", RULES)


def intervals(rule: Rule, visits: Sequence[tuple[float, int]]) -> list[float]:
    """What follows each visit, the first one included."""
    memory = [0.0] * rule.width
    found = [rule.step(memory, rule.parameters, 0.0, 0)]
    return found + [rule.step(memory, rule.parameters, elapsed, outcome) for elapsed, outcome in visits]


def punctual(rule: Rule, outcomes: Sequence[int]) -> list[float]:
    """What follows each visit, if each comes when it was set."""
    memory = [0.0] * rule.width
    found = [rule.step(memory, rule.parameters, 0.0, 0)]
    for outcome in outcomes:
        found.append(rule.step(memory, rule.parameters, found[-1], outcome))
    return found


@every_rule
def test_a_rule_is_known_by_its_name(name: str) -> None:
    rule = revisit_rule(name)
    assert rule.name == name
    assert rule.parameters[-1] == 1.0, "the scale comes last, and is 1 as documented"


@every_rule
@given(met=visits, scale=scales)
def test_every_interval_is_finite_and_positive_whatever_the_clock_says(
    name: str, met: list[tuple[float, int]], scale: float
) -> None:
    assert all(0 < seconds < math.inf for seconds in intervals(revisit_rule(name, scale=scale), met))


@every_rule
@given(met=visits)
def test_a_rule_is_a_function_of_what_was_met(name: str, met: list[tuple[float, int]]) -> None:
    assert intervals(revisit_rule(name), met) == intervals(revisit_rule(name), met)


@every_rule
@given(met=outcomes)
def test_memory_stays_finite_and_in_its_width(name: str, met: list[int]) -> None:
    rule = revisit_rule(name)
    memory = [0.0] * rule.width
    for outcome in (0, *met):
        rule.step(memory, rule.parameters, 1e300, outcome)
        assert len(memory) == rule.width
        assert all(math.isfinite(value) for value in memory)


@every_rule
@given(met=outcomes, floor=st.floats(1.0, 3600.0), ceiling=st.floats(7200.0, 1e7))
def test_floor_and_ceiling_hold_whatever_is_met(name: str, met: list[int], floor: float, ceiling: float) -> None:
    rule = revisit_rule(name, first=5000.0, floor=floor, ceiling=ceiling)
    assert all(floor <= seconds <= ceiling for seconds in punctual(rule, met))


@every_rule
@given(met=visits, scale=st.floats(0.01, 100.0))
def test_the_scale_stretches_what_a_rule_says_and_not_what_it_remembers(
    name: str, met: list[tuple[float, int]], scale: float
) -> None:
    make = partial(revisit_rule, name)
    as_documented, scaled = (
        intervals(make(first=HOUR, floor=1.0, ceiling=DAY, scale=factor), met) for factor in (1.0, scale)
    )
    assert scaled == pytest.approx([seconds * scale for seconds in as_documented])


@pytest.mark.parametrize("name", [name for name in RULES if name != "nutch"])
@given(before=outcomes)
def test_a_change_never_means_a_later_visit_than_none(name: str, before: list[int]) -> None:
    unchanged, changed = (punctual(revisit_rule(name), [*before, outcome])[-1] for outcome in (1, 2))
    assert changed <= unchanged


@every_rule
def test_a_first_visit_after_others_forgets_them(name: str) -> None:
    rule = revisit_rule(name)
    after = intervals(rule, [(HOUR, 1), (HOUR, 2), (HOUR, 0), (DAY, 1)])
    assert after[-2:] == intervals(rule, [(DAY, 1)])


@every_rule
@pytest.mark.parametrize(
    "wrong",
    [
        {"first": 0.0},
        {"first": -1.0},
        {"first": math.nan},
        {"first": math.inf},
        {"floor": 2 * HOUR, "first": HOUR},
        {"ceiling": 60.0, "first": HOUR, "floor": 1.0},
        {"floor": -1.0},
        {"scale": 0.0},
        {"scale": math.inf},
        {"scale": math.nan},
    ],
    ids=str,
)
def test_bounds_that_make_no_sense_are_refused(name: str, wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="needs"):
        revisit_rule(name, **wrong)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nutch(slower=0.0),
        lambda: nutch(faster=1.0),
        lambda: nutch(pull=1.0),
        lambda: nutch(pull=math.nan),
        lambda: stormcrawler(slower=2.0),
        lambda: stormcrawler(faster=0.0),
        lambda: cho(price=0.0),
        lambda: cho(price=math.inf),
        lambda: real_time(newest=0.0),
        lambda: real_time(newest=1.5),
    ],
)
def test_a_rules_own_parameters_are_checked(make: Callable[[], Rule]) -> None:
    with pytest.raises(ValueError, match="needs"):
        make()


def test_compiled_every_rule_says_the_same() -> None:
    package("numba")
    import numpy

    from levada.core.compile_cache import compiled

    met = [(HOUR * (1 + place % 7), 1 + (place * place) % 3 % 2) for place in range(40)]
    met += [(1e300, 1), (0.0, 2), (HOUR, 0), (1e-9, 2), (DAY, 1)]
    for name in RULES:
        make = partial(revisit_rule, name)
        rule = make()
        step: Any = compiled(rule.step)
        memory = numpy.zeros(rule.width)
        parameters = numpy.array(rule.parameters)
        found = [step(memory, parameters, elapsed, outcome) for elapsed, outcome in [(0.0, 0), *met]]
        assert found == pytest.approx(intervals(rule, met), rel=1e-12), name


@given(before=outcomes, quiet=st.integers(0, 6))
def test_the_papers_rule_comes_sooner_for_a_change_and_six_quiet_visits_long(before: list[int], quiet: int) -> None:
    sooner, later = (punctual(ema(), [*before, outcome] + [1] * quiet)[-1] for outcome in (2, 1))
    assert sooner <= later


def test_seven_quiet_visits_after_a_change_the_papers_rule_waits_longer_than_without_it() -> None:
    with_change, without = (punctual(ema(), [outcome] + [1] * 7)[-1] for outcome in (2, 1))
    assert with_change > without


@given(seen=st.integers(0, 1023), place=st.integers(0, 9))
def test_under_the_papers_rule_more_changes_before_a_change_never_mean_a_later_visit(seen: int, place: int) -> None:
    rule = ema()
    fewer, more = (rule.step([HOUR, float(bits)], rule.parameters, HOUR, 2) for bits in (seen, seen | 1 << place))
    assert more <= fewer


@given(met=outcomes)
def test_the_papers_rule_remembers_ten_outcomes(met: list[int]) -> None:
    rule = ema()
    memory = [0.0] * rule.width
    for outcome in (0, *met, *[1] * 10):
        rule.step(memory, rule.parameters, 0.0, outcome)
    assert memory[1] == 0.0


def test_round_robin_comes_back_after_the_same_time() -> None:
    assert punctual(fixed(first=7.0), [1, 2, 1]) == [7.0] * 4


def test_nutch_with_its_defaults_starts_at_thirty_days_and_leans_on_the_last_change() -> None:
    month, after = punctual(nutch(), [1])
    assert month == 30 * DAY
    assert after == pytest.approx(30 * DAY * 1.4 - 0.3 * 30 * DAY)


def test_nutch_waits_at_least_as_long_as_the_page_has_stood_still() -> None:
    after = intervals(nutch(first=HOUR), [(10 * HOUR, 1)])[-1]
    assert after == pytest.approx(10 * HOUR - 0.3 * 10 * HOUR)


def test_nutch_never_comes_to_a_visit_in_the_past() -> None:
    late = intervals(nutch(first=DAY, ceiling=7 * DAY), [(100 * DAY, 1)] * 3)
    assert late[1:] == pytest.approx([0.7 * 7 * DAY] * 3)


def test_a_change_can_mean_a_later_visit_to_nutch_because_it_ends_the_lean_on_the_last_one() -> None:
    unchanged, changed = (punctual(nutch(), [1] * 10 + [outcome])[-1] for outcome in (1, 2))
    assert changed > unchanged


def test_nutch_for_news_multiplies_by_eight_and_twelve_tenths() -> None:
    assert punctual(nutch_22(), [1, 2]) == pytest.approx([HOUR, 1.2 * HOUR, 0.96 * HOUR])


def test_stormcrawler_goes_half_way_to_its_floor_and_half_as_long_again() -> None:
    assert punctual(stormcrawler(), [1, 2]) == pytest.approx([24 * HOUR, 36 * HOUR, 18.5 * HOUR])


def test_real_time_comes_back_soon_after_a_change_and_lets_go_slowly() -> None:
    after = punctual(real_time(), [2, 1, 1])
    assert after[1] == pytest.approx(0.15 * HOUR)
    assert after[1:] == sorted(after[1:])


def test_cho_estimates_by_the_corrected_estimator() -> None:
    rate = -math.log((3 + 0.5) / (10 + 0.5)) / HOUR
    after = intervals(cho(price=900.0), [(HOUR, 1)] * 3 + [(HOUR, 2)] * 7)[-1]
    assert after == pytest.approx(1 / visit_rate(rate, 1.0, 900.0))


def test_cho_waits_ever_longer_for_a_page_that_never_changed() -> None:
    after = punctual(cho(), [1] * 50)
    assert after == sorted(after)


def test_cho_at_the_price_of_a_budget_spends_that_budget() -> None:
    rates = [1 / HOUR, 4 / HOUR, 1 / DAY]
    price = allocate(rates, [1.0] * 3, budget=5 / HOUR)
    spent = 0.0
    for rate in rates:
        regular = HOUR / 10  # visits so far apart, as many of them unchanged as the rate makes expect
        unchanged = round(10_000 * math.exp(-rate * regular))
        met = [(regular, 1)] * unchanged + [(regular, 2)] * (10_000 - unchanged)
        spent += 1 / intervals(cho(price=price), met)[-1]
    assert spent == pytest.approx(5 / HOUR, rel=0.01)
