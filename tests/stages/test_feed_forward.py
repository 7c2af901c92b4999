"""The feed-forward controller learns the rates itself, feeds changes forward, and keeps its limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import UsageError
from levada.stages import Chain, Controller, StageSample, feed_forward, share_budget

PERIOD = 0.25


def steady(controller: Controller, rate: float, service: float, seconds: float, start: float = 0.0) -> int:
    """A stage with a constant flow, whose workers are as many as it wants."""
    wanted = 1
    for number in range(int(seconds / PERIOD)):
        at = start + PERIOD * number
        jobs = rate * at
        now = StageSample(at=at, queue=0.0, on=wanted, busy=rate * service, arrived=jobs, done=jobs)
        wanted = controller.workers_wanted(now)
    return wanted


@pytest.mark.parametrize(("rate", "service"), [(30.0, 0.25), (30.0, 5.0), (4.0, 60.0), (500.0, 0.1)])
def test_it_finds_the_load_without_being_told_rate_or_service_time(rate: float, service: float) -> None:
    controller = Controller(feed_forward(1, 1000, PERIOD))
    load = rate * service
    assert load <= steady(controller, rate, service, 120.0) <= load + 1.5 * load**0.5 + 1
    assert controller.service == pytest.approx(service, rel=0.05)


def test_a_queue_brings_workers_at_the_next_sample() -> None:
    controller = Controller(feed_forward(1, 100, PERIOD))
    steady(controller, 20.0, 1.0, 60.0)
    burst = StageSample(at=60.0, queue=60.0, on=20.0, busy=20.0, arrived=1260.0, done=1200.0)
    assert controller.workers_wanted(burst) >= 75


def test_what_the_stage_before_will_release_is_prepared_for() -> None:
    """Nothing has arrived yet, but fifty workers before it are about to let their jobs go."""

    def wanted(before: float) -> int:
        controller = Controller(feed_forward(1, 500, PERIOD))
        steady(controller, 10.0, 1.0, 60.0)
        found = 0
        for number in range(3):
            now = StageSample(
                at=60.0 + PERIOD * number,
                queue=0.0,
                on=12.0,
                busy=10.0,
                arrived=600.0,
                done=600.0,
                before_on=before,
                before_busy=before,
                before_service=0.25,
            )
            found = max(found, controller.workers_wanted(now))
        return found

    assert wanted(50.0) > wanted(2.5) + 15


def test_a_long_start_up_looks_further_ahead() -> None:
    def wanted(startup: float) -> int:
        controller = Controller(feed_forward(1, 500, PERIOD, startup))
        for number in range(5):
            jobs = 7.5 * number
            now = StageSample(at=PERIOD * number, queue=jobs, on=1.0, busy=1.0, arrived=jobs)
            found = controller.workers_wanted(now)
        return found

    assert wanted(10.0) > wanted(0.0) + 100


def test_after_a_growth_nobody_goes_during_the_cool_down() -> None:
    def sizes(cooldown: float) -> list[int]:
        controller = Controller(feed_forward(1, 100, PERIOD, cooldown=cooldown))
        wanted, found = 1, []
        for number in range(60):
            queue, busy = (50.0, 10.0) if number == 20 else (0.0, 5.0)
            jobs = 5.0 * number
            now = StageSample(at=PERIOD * number, queue=queue, on=wanted, busy=busy, arrived=jobs, done=jobs)
            wanted = controller.workers_wanted(now)
            found.append(wanted)
        return found

    quick, slow = sizes(0.0), sizes(5.0)
    assert quick[39] < quick[20]
    assert slow[39] == slow[20]
    assert slow[-1] < slow[20]


def test_a_budget_is_kept_by_all_stages_together() -> None:
    chain = Chain([feed_forward(1, 100, PERIOD), feed_forward(1, 100, PERIOD)], budget=30)
    for number in range(40):
        jobs = 100.0 * number
        both = [StageSample(at=PERIOD * number, queue=80.0, on=15.0, busy=15.0, arrived=jobs, done=jobs)] * 2
        assert sum(chain.decide(both).wanted) <= 30


@pytest.mark.parametrize(
    ("wanted", "least", "budget", "given"),
    [
        ([10, 20], [1, 1], 30, [10, 20]),
        ([10, 20], [1, 1], 15, [5, 10]),
        ([10, 20], [5, 1], 6, [5, 1]),
        ([1, 100], [1, 1], 12, [1, 11]),
        ([3, 3, 3], [1, 1, 1], 5, [2, 1, 2]),
    ],
)
def test_all_give_way_by_the_same_share(wanted: list[int], least: list[int], budget: int, given: list[int]) -> None:
    assert share_budget(wanted, least, budget) == given


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 20)), min_size=1, max_size=8),
    st.integers(0, 2_000),
)
def test_a_budget_is_never_exceeded_nor_wasted(stages: list[tuple[int, int]], room: int) -> None:
    least = [floor for _, floor in stages]
    wanted = [floor + extra for extra, floor in stages]
    budget = sum(least) + room
    given_out = share_budget(wanted, least, budget)
    assert sum(given_out) == min(budget, sum(wanted))
    assert all(floor <= has <= wish for floor, has, wish in zip(least, given_out, wanted, strict=True))


def test_a_gate_saves_decisions_and_what_lasts_is_put_right_all_the_same() -> None:
    """Two workers too many are within the gate; after a while they go."""
    controller = Controller(feed_forward(1, 200, PERIOD))
    steady(controller, 20.0, 1.0, 60.0)
    sizes, on = [], 24
    for number in range(240, 640):
        at = PERIOD * number
        now = StageSample(at=at, queue=0.0, on=on, busy=20.0, arrived=20.0 * at, done=20.0 * at)
        on = controller.workers_wanted(now)
        sizes.append(on)
    assert sizes[0] == 24
    assert sizes[-1] <= 22
    assert len(set(sizes)) <= 3


def test_a_decision_is_explained_in_a_line() -> None:
    controller = Controller(feed_forward(1, 100, PERIOD))
    assert controller.why == "no sample yet"
    steady(controller, 12.0, 0.08, 60.0)
    assert controller.why.startswith("12/s arrive, 0.08 s each: 1.0 busy")
    controller.workers_wanted(StageSample(at=float("nan"), queue=0.0, on=1.0, busy=0.0))
    assert controller.why.startswith("holds at")


def test_a_chain_says_why_and_who_had_to_give_way() -> None:
    chain = Chain([feed_forward(1, 20), feed_forward(1, 200)], budget=5)
    samples = [StageSample(at=0.0, queue=queue, on=1.0, busy=1.0) for queue in (30.0, 0.0)]
    sizes = chain.decide(samples)
    assert sum(sizes.wanted) <= 5
    assert sizes.why[0].endswith("20 wanted, but 5 for all stages")
    assert sizes.why[1].endswith("1 busy of 1, 1 at least") or "busy" in sizes.why[1]


def test_the_source_is_held_while_a_queue_fills_and_let_go_once_it_is_low() -> None:
    chain = Chain([feed_forward(1, 2, PERIOD)])
    found = []
    for number, queue in enumerate([0, 10, 20, 60, 90, 60, 40, 20, 10]):
        now = StageSample(at=PERIOD * number, queue=queue, on=2.0, busy=2.0, arrived=20.0 * number, capacity=100.0)
        found.append(chain.decide([now]).hold_source)
    assert found == [False, False, False, True, True, True, True, False, False]


def test_chains_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="at least one"):
        Chain([])
    with pytest.raises(UsageError, match="less than the 4"):
        Chain([feed_forward(4, 10)], budget=3)
    with pytest.raises(UsageError, match="as many samples"):
        Chain([feed_forward(1, 10)]).decide([])
