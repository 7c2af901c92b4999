"""Does every controller keep its limits, do what its source says, and hold where samples make no sense?"""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.errors import UsageError
from levada.stages import (
    CONTROLLERS,
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


def wishes(rule: SizingRule, queues: list[float], on: float = 1.0, busy: float | None = None) -> list[int]:
    """What it wants at one queue after the other, obeyed each time."""
    controller, found = Controller(rule), []
    for number, queue in enumerate(queues):
        now = sample(number * rule.period, queue, on, min(on, queue) if busy is None else busy)
        on = controller.workers_wanted(now)
        found.append(int(on))
    return found


@pytest.mark.parametrize("name", CONTROLLERS)
@given(
    st.lists(
        st.tuples(
            st.floats(0.01, 30.0),
            st.integers(0, 10_000),
            st.integers(0, 60),
            st.integers(0, 500),
            st.integers(0, 500),
        ),
        max_size=40,
    )
)
def test_a_wish_is_always_within_the_limits(name: str, steps: list[tuple[float, int, int, int, int]]) -> None:
    controller = Controller(rule_named(name, 2, 50))
    at, arrived, done = 0.0, 0, 0
    for elapsed, queue, busy, came, went in steps:
        at, arrived, done = at + elapsed, arrived + came, done + went
        seen = sample(at, queue, 10, busy, arrived=arrived, done=done)
        assert 2 <= controller.workers_wanted(seen) <= 50


@pytest.mark.parametrize("name", CONTROLLERS)
@given(st.lists(st.builds(StageSample, **dict.fromkeys(("at", "queue", "on", "busy", "done"), st.floats()))))
def test_no_sample_can_break_it(name: str, samples: list[StageSample]) -> None:
    controller = Controller(rule_named(name, 1, 20))
    for each in samples:
        assert 1 <= controller.workers_wanted(each) <= 20


@pytest.mark.parametrize("name", CONTROLLERS)
@pytest.mark.parametrize(
    "nonsense",
    [
        {"queue": math.nan},
        {"queue": -1.0},
        {"busy": math.inf},
        {"at": math.nan},
        {"at": 0.5},
        {"at": 1e12},
        {"done": 0.0},
        {"capacity": 0.0},
    ],
    ids=str,
)
def test_nonsense_holds_the_last_safe_size(name: str, nonsense: dict[str, float]) -> None:
    controller = Controller(rule_named(name, 1, 100))
    good = [sample(at, 20.0, 10.0, 10.0, arrived=100 + 10 * at, done=90 + 10 * at) for at in (1.0, 2.0, 3.0)]
    wanted = [controller.workers_wanted(each) for each in good][-1]
    assert not controller.trouble
    assert controller.workers_wanted(msgspec.structs.replace(good[-1], **({"at": 4.0} | nonsense))) == wanted
    assert controller.trouble


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
    assert wishes(linear(1, 174), [queue]) == [run]
    assert wishes(linear(1, 174, as_written=True), [queue]) == [written]


def test_linear_goes_down_once_the_average_agrees_and_never_below_the_latest() -> None:
    rule = linear(1, 101, threshold=100.0, history=3.0)
    assert wishes(rule, [50, 0, 0, 0, 0, 0]) == [51, 51, 17, 1, 1, 1]
    assert wishes(rule, [50, 0, 0, 40, 40]) == [51, 51, 17, 41, 41]


def test_drain_time_as_run_counts_samples_and_goes_on_removing() -> None:
    rule = drain_time(1, 20, 0.25, service=5.0, target=0.01, stable=3.0)
    assert wishes(rule, [9, 9, 0, 0, 0, 0, 0, 9, 0], on=5) == [6, 7, 7, 7, 6, 5, 4, 5, 5]


def test_drain_time_as_written_counts_seconds_and_begins_anew() -> None:
    rule = drain_time(1, 20, 1.0, service=5.0, target=0.01, stable=3.0, as_written=True)
    assert wishes(rule, [9, 0, 0, 0, 0, 0, 0], on=5) == [6, 6, 6, 5, 5, 5, 4]


def test_the_two_drain_times_divide_by_different_things() -> None:
    """10 jobs, 5 workers of 5 s: 10 s to drain, or 0.4 by the formula as it was run."""
    assert wishes(drain_time(1, 20, service=5.0, target=1.0), [10], on=5) == [5]
    assert wishes(drain_time(1, 20, service=5.0, target=1.0, as_written=True), [10], on=5) == [6]


def test_the_pod_autoscaler_tolerates_a_tenth_and_waits_with_going_down() -> None:
    rule = hpa(1, 100, 15.0, target=0.8, window=60.0)
    assert wishes(rule, [0], on=10, busy=8) == [10]
    assert wishes(rule, [0], on=10, busy=10) == [13]
    assert wishes(rule, [0] * 5, on=10, busy=4)[0] == 5
    assert wishes(rule, [20, 0, 0, 0, 0, 0], on=10, busy=5)[:4] == [19, 19, 19, 19]


def test_without_tolerance_every_small_change_is_followed() -> None:
    assert wishes(hpa(1, 100, 15.0, target=1.0, window=0.0, tolerance=0.0), [0], on=10, busy=9) == [9]
    assert wishes(keda(1, 100, 15.0, window=0.0, tolerance=0.0), [0], on=10, busy=9) == [9]


def test_keda_wants_so_many_jobs_per_worker() -> None:
    assert wishes(keda(1, 100, jobs=2.0), [20], on=10, busy=10) == [15]
    assert wishes(keda(1, 100, jobs=1.0), [1], on=20, busy=20) == [20]


def test_ds2_is_right_in_one_step() -> None:
    controller = Controller(ds2(1, 100, 1.0, window=5.0, spare=1.0))
    found = [
        controller.workers_wanted(sample(float(at), 0, 4, 4, arrived=10.0 * at, done=2.0 * at)) for at in range(6)
    ]
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
