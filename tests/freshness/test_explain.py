from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from math import inf, isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.records import DiscoveredBy, Outcome, PageKind, PageRecord, PageState, Visit
from levada.freshness import LearnedRevisit, PageEstimates, Scale
from levada.freshness.explain import RateEstimate, freshness_at_budgets, paper_interval
from levada.freshness.paper import ema
from levada.freshness.rates import RATES, posterior
from tests.house.tree import HOUSE

HOUR = 3600.0
SCALE = Scale.between(300.0, 30 * 24 * HOUR)
EVEN = [1 / len(RATES)] * len(RATES)

beliefs_over_rates = (
    st.lists(st.floats(0.0, 1.0), min_size=len(RATES), max_size=len(RATES))
    .filter(any)
    .map(lambda parts: [part / sum(parts) for part in parts])
)


def sure_of(place: int) -> list[float]:
    return [float(each == place) for each in range(len(RATES))]


def page(number: int, site: str, visits: tuple[Visit, ...] = (), memory: bytes = b"") -> PageRecord:
    url = f"https://{site}/{number}"
    known = PageRecord(number, url, site, PageKind.PAGE, PageState.LIVE, DiscoveredBy.LINK, 0, 0, 0.0)
    return PageRecord(
        **{name: getattr(known, name) for name in known.__struct_fields__}
        | {"visits": len(visits), "history": visits, "memory": memory}
    )


def panel(outcomes: list[list[int]], first_counts: float = 1.0) -> PageEstimates:
    """Each page first met at 0, then every hour what is listed: 1 unchanged, 2 changed; on two sites."""
    estimates = PageEstimates(SCALE, lambda url: first_counts if url.endswith("/1") else 1.0)
    policy = LearnedRevisit(estimates)
    for number, met in enumerate(outcomes, 1):
        visits: tuple[Visit, ...] = ()
        memory = b""
        for turn, outcome in enumerate([0, *met]):
            visit = Visit(HOUR * turn, Outcome(outcome))
            memory = policy.plan(page(number, f"s{number % 2}.example", visits, memory), visit).memory
            visits = (*visits, visit)[-10:]
    return estimates


histories = st.lists(st.lists(st.sampled_from([1, 2]), max_size=8), min_size=1, max_size=6)
budgets = st.lists(st.floats(0.0, 10.0), min_size=2, max_size=10).map(sorted)


@given(histories, budgets, st.floats(1e-6, 1.0) | st.just(inf))
def test_a_larger_budget_never_lowers_believed_freshness(
    outcomes: list[list[int]], visits: list[float], per_site: float
) -> None:
    points = freshness_at_budgets(panel(outcomes), visits, lambda site: per_site)
    for less, more in pairwise(points):
        assert more.fresh >= less.fresh - 1e-12
        assert more.spent >= less.spent - 1e-12
    assert all(0.0 <= point.fresh <= 1.0 and point.spent <= point.visits for point in points)


@given(histories, st.floats(1e-7, 1.0), st.floats(0.01, 1.0))
def test_no_site_is_given_more_than_it_allows(outcomes: list[list[int]], visits: float, share: float) -> None:
    limited = freshness_at_budgets(panel(outcomes), [visits], lambda site: share * visits)[0]
    assert limited.spent <= min(1.0, 2 * share) * visits * (1 + 1e-9)


def test_what_cannot_be_spent_is_said() -> None:
    (point,) = freshness_at_budgets(panel([[2, 2]] * 4), [1000.0])
    assert point.spent == pytest.approx(4 / 300.0)  # the floor of each


def test_without_a_visit_only_what_never_changes_stays_fresh() -> None:
    estimates = panel([[1] * 8] * 4)
    (point,) = freshness_at_budgets(estimates, [0.0])
    assert point.fresh == pytest.approx(sum(member.calibrated[0] for member in estimates.members()) / 4)


def test_nothing_known_is_as_fresh_as_can_be() -> None:
    assert freshness_at_budgets(PageEstimates(SCALE), [1.0])[0].fresh == 1.0


def test_important_pages_count_more() -> None:
    """A page that changes all the time is hard to keep fresh: the more it counts, the less fresh are all."""
    outcomes = [[2] * 8, [1] * 8]
    even = freshness_at_budgets(panel(outcomes), [2 / HOUR])[0].fresh
    first = freshness_at_budgets(panel(outcomes, first_counts=10.0), [2 / HOUR])[0].fresh
    assert first < even


@given(beliefs_over_rates)
def test_a_belief_is_told_in_order(probabilities: list[float]) -> None:
    rate = RateEstimate.of(probabilities)
    assert 0.0 < rate.low <= rate.median <= rate.high
    assert isfinite(rate.low) or rate.static >= 0.9 - 1e-9
    assert (rate.median == inf) == (rate.static >= 0.5)
    assert rate.current_after(-1.0) == pytest.approx(1.0)


@given(beliefs_over_rates, st.floats(0, 1e9), st.floats(0, 1e9))
def test_an_older_copy_is_never_likelier_to_be_current(probabilities: list[float], one: float, other: float) -> None:
    rate = RateEstimate.of(probabilities)
    assert rate.current_after(max(one, other)) <= rate.current_after(min(one, other))


@pytest.mark.parametrize("place", range(1, len(RATES)))
def test_who_is_sure_names_the_rate(place: int) -> None:
    rate = RateEstimate.of(sure_of(place))
    assert rate.median == pytest.approx(1 / RATES[place])
    assert rate.low < 1 / RATES[place] < rate.high < 3 * rate.low
    assert rate.static == 0.0


def test_who_knows_nothing_says_so() -> None:
    rate = RateEstimate.of(EVEN)
    assert rate.high / rate.low > 1000


@given(st.lists(st.sampled_from([1, 2]), max_size=9))
def test_the_paper_is_asked_as_it_is(outcomes: list[int]) -> None:
    rule = ema()
    memory = [0.0, 0.0]
    expected = rule.step(memory, rule.parameters, 0.0, 0)
    for outcome in outcomes:
        expected = rule.step(memory, rule.parameters, HOUR, outcome)
    visits = [Visit(HOUR * turn, Outcome(outcome)) for turn, outcome in enumerate([0, *outcomes])]
    assert paper_interval(visits, HOUR) == expected


def test_the_paper_goes_on_from_the_oldest_visit_that_is_known() -> None:
    visits = [Visit(0.0, Outcome.CHANGED), Visit(600.0, Outcome.UNCHANGED), Visit(1300.0, Outcome.FAILED)]
    assert paper_interval(visits, HOUR) == pytest.approx(1.2 * 600.0)
    assert paper_interval(visits[:1], HOUR) == HOUR
    assert paper_interval(visits[2:], HOUR) is None


@given(st.lists(st.tuples(st.floats(0, 1e12), st.sampled_from([0, 1, 2])), max_size=10), st.floats(1e-9, 1e10))
def test_the_paper_survives_any_clock(met: list[tuple[float, int]], first: float) -> None:
    interval = paper_interval([Visit(at, Outcome(outcome)) for at, outcome in met], first, 0.0, first)
    assert interval is None or (isfinite(interval) and interval > 0)


def test_evidence_narrows_the_range() -> None:
    evidence, probabilities = [0.0] * len(RATES), [0.0] * len(RATES)
    posterior(evidence, EVEN, probabilities)
    estimates = panel([[2, 1, 2, 1, 2, 1, 2, 1]])
    known = RateEstimate.of(estimates.sums[: len(RATES)])
    vague = RateEstimate.of(probabilities)
    assert known.high / known.low < vague.high / vague.low
    assert HOUR / 2 < known.median < 6 * HOUR


def test_the_example_of_the_docs_prints_what_it_says() -> None:
    text = (HOUSE / "docs" / "freshness.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\n+```\n(.*?)```", text, re.DOTALL)
    assert found
    done = subprocess.run([sys.executable, "-c", found[1]], capture_output=True, text=True, check=True)
    assert done.stdout == found[2]
