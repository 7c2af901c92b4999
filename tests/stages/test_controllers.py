"""Every controller keeps its limits, follows its source, and holds when samples make no sense."""

from __future__ import annotations

import math

import pytest

from levada.core.errors import UsageError
from levada.stages import (
    Controller,
    SizingRule,
    StageSample,
    drain_time,
    ds2,
    hpa,
    keda,
    linear,
    rule_named,
)


def sample(at: float, queue: float = 0.0, on: float = 1.0, busy: float = 0.0, **more: float) -> StageSample:
    return StageSample(at=at, queue=queue, on=on, busy=busy, **more)


def desired_state(rule: SizingRule, queues: list[float], on: float = 1.0, busy: float | None = None) -> list[int]:
    """What it wants at one queue after the other, obeyed each time."""
    controller, found = Controller(rule), []
    for number, queue in enumerate(queues):
        now = sample(number * rule.period, queue, on, min(on, queue) if busy is None else busy)
        on = controller.workers_wanted(now)
        found.append(int(on))
    return found


@pytest.mark.parametrize("leap", [-1e6, 1e6])
def test_after_a_leap_of_the_clock_it_goes_on_as_if_nothing_had_been(leap: float) -> None:
    def run(moved: float) -> int:
        controller = Controller(rule_named("feed-forward", 1, 100))
        wanted = 1
        for number in range(80):
            at = 0.25 * number + (moved if number > 40 else 0.0)
            arrived = 5.0 * number if number <= 40 else 5.0 * (number - (1 if moved else 0))
            now = sample(at, 2.0, wanted, 5.0, arrived=arrived, done=arrived)
            wanted = controller.workers_wanted(now)
        return wanted

    assert abs(run(leap) - run(0.0)) <= 1


@pytest.mark.parametrize(
    ("queue", "run", "written"), [(0, 1, 1), (10, 24, 25), (74, 171, 172), (75, 174, 174), (500, 174, 174)]
)
def test_linear_goes_up_at_once_and_cuts_off_fractions_where_it_was_really_run(
    queue: float, run: int, written: int
) -> None:
    assert desired_state(linear(1, 174), [queue]) == [run]
    assert desired_state(linear(1, 174, as_written=True), [queue]) == [written]


def test_linear_goes_down_once_the_average_agrees_and_never_below_the_latest() -> None:
    rule = linear(1, 101, threshold=100.0, history=3.0)
    assert desired_state(rule, [50, 0, 0, 0, 0, 0]) == [51, 51, 17, 1, 1, 1]
    assert desired_state(rule, [50, 0, 0, 40, 40]) == [51, 51, 17, 41, 41]


def test_drain_time_as_run_counts_samples_and_goes_on_removing() -> None:
    rule = drain_time(1, 20, 0.25, service=5.0, target=0.01, stable=3.0)
    assert desired_state(rule, [9, 9, 0, 0, 0, 0, 0, 9, 0], on=5) == [6, 7, 7, 7, 6, 5, 4, 5, 5]


def test_drain_time_as_written_counts_seconds_and_begins_anew() -> None:
    rule = drain_time(1, 20, 1.0, service=5.0, target=0.01, stable=3.0, as_written=True)
    assert desired_state(rule, [9, 0, 0, 0, 0, 0, 0], on=5) == [6, 6, 6, 5, 5, 5, 4]


def test_the_two_drain_times_divide_by_different_things() -> None:
    """10 jobs, 5 workers of 5 s: 10 s to drain, or 0.4 by the formula as it was run."""
    assert desired_state(drain_time(1, 20, service=5.0, target=1.0), [10], on=5) == [5]
    assert desired_state(drain_time(1, 20, service=5.0, target=1.0, as_written=True), [10], on=5) == [6]


def test_the_pod_autoscaler_tolerates_a_tenth_and_waits_with_going_down() -> None:
    rule = hpa(1, 100, 15.0, target=0.8, window=60.0)
    assert desired_state(rule, [0], on=10, busy=8) == [10]
    assert desired_state(rule, [0], on=10, busy=10) == [13]
    assert desired_state(rule, [0] * 5, on=10, busy=4)[0] == 5
    assert desired_state(rule, [20, 0, 0, 0, 0, 0], on=10, busy=5)[:4] == [19, 19, 19, 19]


def test_without_tolerance_every_small_change_is_followed() -> None:
    assert desired_state(hpa(1, 100, 15.0, target=1.0, window=0.0, tolerance=0.0), [0], on=10, busy=9) == [9]
    assert desired_state(keda(1, 100, 15.0, window=0.0, tolerance=0.0), [0], on=10, busy=9) == [9]


def test_keda_wants_so_many_jobs_per_worker() -> None:
    assert desired_state(keda(1, 100, jobs=2.0), [20], on=10, busy=10) == [15]
    assert desired_state(keda(1, 100, jobs=1.0), [1], on=20, busy=20) == [20]


def test_ds2_is_right_in_one_step() -> None:
    controller = Controller(ds2(1, 100, 1.0, window=5.0, spare=1.0))
    found = [controller.workers_wanted(sample(float(at), 0, 4, 4, arrived=10.0 * at, done=2.0 * at)) for at in range(6)]
    assert found == [4, 4, 4, 4, 4, 20]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("linear", {"threshold": 0.0}),
        ("linear", {"history": -1.0}),
        ("linear", {"period": 0.0}),
        ("linear", {"period": math.nan}),
        ("drain-time", {"service": 0.0}),
        ("hpa", {"target": 0.0}),
        ("keda", {"jobs": -1.0}),
        ("keda", {"tolerance": -0.1}),
        ("hpa", {"tolerance": 2.0}),
        ("feed-forward", {"gate": -1.0}),
        ("ds2", {"window": 0.0}),
        ("feed-forward", {"spare": -1.0}),
        ("feed-forward", {"startup": -1.0}),
        ("feed-forward", {"speed": 1.0}),
        ("guess", {}),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, options: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        rule_named(name, 1, 10, options)


@pytest.mark.parametrize("limits", [(3, 2), (-1, 2), (0, 0), (1, 10**9)])
def test_limits_that_contradict_each_other_are_refused(limits: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="least"):
        rule_named("feed-forward", *limits)
