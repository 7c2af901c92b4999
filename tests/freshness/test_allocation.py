"""The allocation of a budget over pages whose change rates are known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.freshness.value import visit_rate
from tests.freshness.allocation import allocate, freshness_of

rates = st.floats(1e-9, 1e3)
weights = st.floats(1e-3, 1e3)
pages = st.lists(st.tuples(rates, weights), min_size=1, max_size=20)
prices = st.floats(1e-6, 1e12)


@given(pages, st.floats(1e-9, 1e6))
def test_the_price_spends_the_budget(pages: list[tuple[float, float]], budget: float) -> None:
    price = allocate([rate for rate, _ in pages], [weight for _, weight in pages], budget)
    assert sum(visit_rate(rate, weight, price) for rate, weight in pages) == pytest.approx(budget, rel=1e-6)


@given(rates, weights, prices)
def test_the_last_visit_is_worth_its_price(rate: float, weight: float, price: float) -> None:
    visits = visit_rate(rate, weight, price)
    assert weight * rate / (visits * (visits + rate)) == pytest.approx(price, rel=1e-6)


@given(rates, weights, prices, st.floats(1.0, 1e3))
def test_what_is_dearer_is_bought_less_and_what_matters_more_more(
    rate: float, weight: float, price: float, more: float
) -> None:
    assert visit_rate(rate, weight, price * more) <= visit_rate(rate, weight, price)
    assert visit_rate(rate, weight * more, price) >= visit_rate(rate, weight, price)


@given(pages, st.floats(1e-9, 1e3), st.floats(1.0, 1e3))
def test_a_larger_budget_never_makes_a_page_less_fresh(
    pages: list[tuple[float, float]], budget: float, more: float
) -> None:
    rates, weights = [rate for rate, _ in pages], [weight for _, weight in pages]
    small, large = (allocate(rates, weights, spent) for spent in (budget, budget * more))
    for rate, weight in pages:
        assert freshness_of(rate, visit_rate(rate, weight, large)) >= freshness_of(
            rate, visit_rate(rate, weight, small)
        ) * (1 - 1e-9)


def test_what_never_changes_or_does_not_matter_is_not_visited() -> None:
    assert visit_rate(0.0, 1.0, 1.0) == visit_rate(1.0, 0.0, 1.0) == 0.0
    assert allocate([0.0, 1.0], [1.0, 0.0], 1.0) == math.inf
    assert allocate([], [], 1.0) == math.inf
    assert visit_rate(1.0, 1.0, math.inf) == 0.0


def test_equal_pages_get_equal_shares() -> None:
    price = allocate([0.5] * 4 + [0.0], [1.0] * 5, budget=2.0)
    assert visit_rate(0.5, 1.0, price) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("rates", "weights", "budget"),
    [
        ([1.0], [1.0], 0.0),
        ([1.0], [1.0], -1.0),
        ([1.0], [1.0], math.nan),
        ([1.0], [1.0], math.inf),
        ([-1.0], [1.0], 1.0),
        ([math.nan], [1.0], 1.0),
        ([1.0], [math.inf], 1.0),
        ([1.0], [1.0, 1.0], 1.0),
    ],
)
def test_an_allocation_that_makes_no_sense_is_refused(rates: list[float], weights: list[float], budget: float) -> None:
    with pytest.raises(ValueError):
        allocate(rates, weights, budget)


@given(rates, st.floats(1e-9, 1e3))
def test_freshness_is_a_share(rate: float, visits: float) -> None:
    assert 0.0 < freshness_of(rate, visits) <= 1.0


def test_freshness_at_its_ends() -> None:
    assert freshness_of(0.0, 0.0) == 1.0
    assert freshness_of(1.0, 0.0) == 0.0
    assert freshness_of(1e-320, 1e300) == 1.0
    assert freshness_of(1.0, 1.0) == pytest.approx(1 - math.exp(-1))
