"""The laws of retention: what may go, whenever and however often the rules are applied."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from levada.store.base import Retention
from levada.store.retention import expendable, is_expired

DAY = 86_400.0
NOW = 400 * DAY

ages = st.floats(0.0, 60 * DAY) | st.integers(0, 60).map(lambda days: days * DAY)
histories = st.lists(ages.map(lambda age: NOW - age), min_size=1, max_size=40).map(
    lambda times: list(enumerate(sorted(times), start=1))
)
rules = st.builds(Retention, st.integers(0, 12), st.just(0.0) | ages.map(lambda age: age + 1.0), st.booleans())
thin_only = Retention(thin=True)


def kept(history: list[tuple[int, float]], now: float, rules: Retention) -> list[tuple[int, float]]:
    going = set(expendable(history, now, rules))
    return [each for each in history if each[0] not in going]


@given(histories, rules, st.floats(0.0, 90 * DAY))
def test_the_newest_always_stays(history: list[tuple[int, float]], rules: Retention, later: float) -> None:
    assert kept(history, NOW + later, rules)[-1] == history[-1]


@given(histories, rules)
def test_never_more_stay_than_the_number_asked_for(history: list[tuple[int, float]], rules: Retention) -> None:
    left = kept(history, NOW, rules)
    assert not rules.versions or len(left) <= rules.versions
    assert not rules.seconds or all(at >= NOW - rules.seconds for _, at in left[:-1])


@given(histories, rules)
def test_without_a_rule_everything_stays_and_each_rule_only_takes(
    history: list[tuple[int, float]], rules: Retention
) -> None:
    assert expendable(history, NOW, Retention()) == []
    alone = [Retention(versions=rules.versions), Retention(seconds=rules.seconds), Retention(thin=rules.thin)]
    assert set(expendable(history, NOW, rules)) == set().union(*(expendable(history, NOW, each) for each in alone))


@given(histories, rules, st.randoms(use_true_random=False))
def test_the_order_of_the_versions_does_not_matter(
    history: list[tuple[int, float]], rules: Retention, chance: object
) -> None:
    shuffled = list(history)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # random.Random
    assert expendable(shuffled, NOW, rules) == expendable(history, NOW, rules)


@given(histories, rules)
def test_twice_at_the_same_time_deletes_nothing_more(history: list[tuple[int, float]], rules: Retention) -> None:
    assert expendable(kept(history, NOW, rules), NOW, rules) == []


@given(histories, rules, st.floats(0.0, 60 * DAY))
def test_what_stays_later_stayed_before_however_often_the_rules_were_applied(
    history: list[tuple[int, float]], rules: Retention, later: float
) -> None:
    at_last = kept(history, NOW + later, rules)
    between = kept(history, NOW, rules)
    assert set(at_last) <= set(between)
    assert kept(between, NOW + later, rules) == at_last


@given(histories)
def test_thinning_leaves_the_last_of_each_day_then_of_each_week(history: list[tuple[int, float]]) -> None:
    left = dict(kept(history, NOW, thin_only))
    older = [(number, at) for number, at in history[:-1] if at < NOW - DAY]
    assert all(number in left for number, at in history if at >= NOW - DAY)
    for _, day in groupby([each for each in older if each[1] >= NOW - 30 * DAY], lambda each: each[1] // DAY):
        *rest, last = [number for number, _ in day]
        assert last in left or last + 1 == history[-1][0]
        assert not left.keys() & set(rest)
    for _, week in groupby([each for each in older if each[1] < NOW - 31 * DAY], lambda each: each[1] // (7 * DAY)):
        assert len(left.keys() & {number for number, _ in week}) <= 1


def test_a_page_that_changes_every_hour_is_thinned_to_the_last_of_each_day_and_week() -> None:
    hourly = [(number, NOW - (2_000 - number) * 3600.0) for number in range(1, 2_001)]
    ages = [(NOW - at) / 3600.0 for _, at in kept(hourly, NOW, thin_only)]
    assert sum(age <= 24 for age in ages) == 25  # the newest has the age 0
    assert [age for age in ages if 24 < age <= 24 * 30] == [25.0 + 24 * day for day in reversed(range(29))]
    assert [later - earlier for earlier, later in zip(ages[1:5], ages[:4], strict=True)] == [168.0] * 4


@given(ages.map(lambda age: NOW - age), st.floats(1.0, 60 * DAY), st.floats(0.0, DAY))
def test_a_gone_page_expires_once_and_for_all_and_never_without_an_age(
    newest: float, seconds: float, later: float
) -> None:
    rules = Retention(seconds=seconds)
    assert not is_expired(newest, NOW, Retention(versions=1, thin=True))
    assert not is_expired(newest, NOW, rules) or is_expired(newest, NOW + later, rules)
    assert is_expired(newest, NOW, rules) == (newest < NOW - seconds)
