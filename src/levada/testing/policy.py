"""Contract suites of revisit policies, and of the rules that a policy can be built from."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.core.protocols import RevisitPolicy
from levada.core.records import DiscoveredBy, Outcome, PageKind, PageRecord, PageState, Signals, Visit
from levada.freshness import Rule
from levada.testing.common import properties

_property = properties(25)
_odd_times = st.floats(0.0, 1e7) | st.sampled_from([-1.0, 1e-300, 1e300, math.inf, -math.inf, math.nan, 5e-324])
_steps = st.lists(st.tuples(_odd_times, st.sampled_from([0, 1, 2])), max_size=60)
_outcomes = st.sampled_from([Outcome.UNCHANGED, Outcome.CHANGED])
_times = st.floats(-1e12, 1e12, allow_nan=False)
_signals = st.integers(0, 63).map(Signals)
_visits = st.lists(
    st.tuples(_outcomes, _times, _signals, st.none() | st.floats(-1e15, 1e15), st.floats(0.0, 1.0)), max_size=20
)


def a_page(number: int = 1, site: int = 1, **facts: object) -> PageRecord:
    """A page that was found and not yet visited."""
    url = f"http://s{site}.test/{number}"
    page = PageRecord(
        site << 24 | number,
        url,
        f"s{site}.test",
        PageKind.PAGE,
        PageState.NEW,
        DiscoveredBy.LINK,
        1,
        0,
        found_at=0.0,
    )
    return replace(page, **facts)


def visited(
    policy: RevisitPolicy,
    page: PageRecord,
    at: float,
    outcome: Outcome,
    *,
    said: Signals = Signals.NOTHING,
    similarity: float = 1.0,
    modified: float | None = None,
) -> PageRecord:
    """The page after this visit, as a store would keep it."""
    visit = Visit(at, outcome, similarity, said)
    plan = policy.plan(page, visit, modified)
    return replace(
        page,
        state=PageState.LIVE,
        visits=page.visits + 1,
        history=(*page.history, visit)[-10:],
        interval=plan.interval,
        next_visit=at + plan.interval,
        memory=plan.memory,
        told=Signals.NOTHING,
    )


class RevisitPolicyContract:
    """Every plan is a finite time from now, whatever the clock, the server and the stored memory say.

    ```python
    class TestMyPolicy(RevisitPolicyContract):
        def make(self) -> RevisitPolicy:
            return MyPolicy()
    ```
    """

    def make(self) -> RevisitPolicy:
        raise NotImplementedError

    @staticmethod
    def assert_planned(page: PageRecord) -> None:
        assert page.interval is not None
        assert 0.0 < page.interval < math.inf

    @_property
    @given(_visits)
    def test_every_plan_is_finite_and_later_than_now(
        self, visits: list[tuple[Outcome, float, Signals, float | None, float]]
    ) -> None:
        policy = self.make()
        page = visited(policy, a_page(), 0.0, Outcome.FIRST)
        self.assert_planned(page)
        for outcome, at, said, modified, similarity in visits:
            page = visited(policy, page, at, outcome, said=said, modified=modified, similarity=similarity)
            self.assert_planned(page)
            expected = policy.visit_after_hint(page, said)
            assert expected is None or math.isfinite(expected)

    @_property
    @given(st.binary(max_size=100), _outcomes)
    def test_the_memory_of_another_policy_does_no_harm(self, memory: bytes, outcome: Outcome) -> None:
        known = a_page(memory=memory, history=(Visit(0.0, Outcome.FIRST),))
        self.assert_planned(visited(self.make(), known, 3600.0, outcome))

    def test_a_page_of_an_earlier_process_is_planned_further(self) -> None:
        page = visited(self.make(), a_page(), 0.0, Outcome.FIRST)
        for step in range(1, 20):
            page = visited(self.make(), page, 3600.0 * step, Outcome.CHANGED if step % 3 else Outcome.UNCHANGED)
            self.assert_planned(page)

    def test_the_memory_of_a_page_does_not_grow_with_its_visits(self) -> None:
        policy = self.make()
        page = visited(policy, a_page(), 0.0, Outcome.FIRST)
        sizes = []
        for step in range(1, 200):
            page = visited(policy, page, 3600.0 * step, Outcome.CHANGED)
            sizes.append(len(page.memory))
        assert max(sizes[100:]) <= max(sizes[:100])

    def test_a_hint_for_a_page_never_visited_plans_nothing_or_a_time(self) -> None:
        expected = self.make().visit_after_hint(a_page(), Signals.SITEMAP)
        assert expected is None or math.isfinite(expected)

    def test_the_share_of_current_pages_is_a_share(self) -> None:
        policy = self.make()
        assert policy.estimates.share(0.0) is None
        pages = [visited(policy, a_page(n), float(n), Outcome.FIRST) for n in range(50)]
        for now in (50.0, 1e6, 1e13):
            share = policy.estimates.share(now)
            assert share is not None
            assert 0.0 <= share <= 1.0
        for page in pages:
            policy.estimates.forget(page)
        assert policy.estimates.share(100.0) is None

    def test_a_policy_starts_from_a_sample_of_the_pages_held(self) -> None:
        before = self.make()
        pages = [visited(before, a_page(n), float(n), Outcome.FIRST) for n in range(64)]
        policy = self.make()
        policy.estimates.learn(pages, 4)
        share = policy.estimates.share(100.0)
        assert share is not None
        assert 0.0 <= share <= 1.0

    def test_budget_and_limits_of_sites_may_change_at_any_time(self) -> None:
        policy = self.make()
        page = visited(policy, a_page(), 0.0, Outcome.FIRST)
        for step, per_hour in enumerate([60.0, 0.0, 1e9, 1e-9], start=1):
            policy.set_budget(per_hour)
            policy.limit_site(page.site, per_hour / 3600.0)
            assert 0.0 <= policy.price() < math.inf
            page = visited(policy, page, 3600.0 * step, Outcome.CHANGED)
            self.assert_planned(page)

    def test_whether_to_fetch_the_whole_page_is_yes_or_no(self) -> None:
        policy = self.make()
        page = visited(policy, a_page(), 0.0, Outcome.FIRST)
        assert policy.wants_full_fetch(page) in (True, False)


class RevisitRuleContract:
    """A rule is arithmetic over its row of memory: the same visits give the same intervals, all of them finite.

    ```python
    class TestMyRule(RevisitRuleContract):
        def make(self) -> Rule:
            return my_rule()
    ```
    """

    def make(self) -> Rule:
        raise NotImplementedError

    def intervals(self, visits: Sequence[tuple[float, int]]) -> list[float]:
        """The interval after each visit, the first one included."""
        rule = self.make()
        memory = [0.0] * rule.width
        steps = [(0.0, 0), *visits]
        found = [rule.step(memory, rule.parameters, elapsed, outcome) for elapsed, outcome in steps]
        assert len(memory) == rule.width
        return found

    @_property
    @given(_steps)
    def test_every_interval_is_finite_and_positive(self, visits: list[tuple[float, int]]) -> None:
        assert all(0.0 < interval < math.inf for interval in self.intervals(visits))

    @_property
    @given(_steps)
    def test_the_same_visits_give_the_same_intervals(self, visits: list[tuple[float, int]]) -> None:
        assert self.intervals(visits) == self.intervals(visits)

    def test_a_rule_has_a_name_and_finite_or_open_bounds(self) -> None:
        rule = self.make()
        assert rule.name
        assert rule.width >= 0
        assert not any(map(math.isnan, rule.parameters))
