"""Workers that report nothing do not count as busy before they are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.scale.sampler import StageSampler, StartingWorkers
from levada.scale.statistics import PoolStatistics, QueueStatistics
from levada.stages import feed_forward
from levada.stages.chain import explain
from levada.stages.sample import FIELDS
from tests.stages.silent_workers import SilentStage

STARTUPS = st.sampled_from([0.0, 1.0, 4.0, 10.0])


@pytest.mark.parametrize("jobs", [3, 30])
def test_while_nobody_takes_messages_as_many_are_wanted_as_wait_and_no_more(jobs: int) -> None:
    stage = SilentStage(feed_forward(0, 50, period=1.0), starts=math.inf, waiting=jobs)
    stage.begin_with(1)
    assert stage.looks(60) == [jobs] * 60


@given(st.integers(0, 300), st.integers(0, 100), STARTUPS, st.floats(0.1, 30.0))
@settings(max_examples=60, deadline=None)
def test_nobody_who_takes_nothing_makes_a_stage_grow(jobs: int, first: int, startup: float, assumed: float) -> None:
    rule = feed_forward(0, 1000, period=1.0, startup=startup)
    stage = SilentStage(rule, starts=math.inf, assumed=assumed, waiting=jobs)
    stage.begin_with(first)
    wanted = stage.looks(60)
    assert max(wanted) <= max(first, jobs) + 2
    assert wanted[-1] <= max(wanted[:5])


@pytest.mark.parametrize("startup", [0.0, 4.0])
@pytest.mark.parametrize("polls", [False, True])
def test_a_few_jobs_start_as_many_workers_that_start_slowly(startup: float, polls: bool) -> None:
    stage = SilentStage(feed_forward(0, 20, period=1.0, startup=startup), starts=3.0, polls=polls, waiting=3)
    assert max(stage.looks(30)) == 3
    assert stage.done == 3


@given(
    st.integers(1, 200),
    st.floats(0.0, 12.0),
    st.floats(0.1, 15.0),
    st.booleans(),
    STARTUPS,
)
@settings(max_examples=100, deadline=None)
def test_a_burst_wants_about_a_worker_per_job_at_most(
    jobs: int, starts: float, takes: float, polls: bool, startup: float
) -> None:
    rule = feed_forward(0, 5000, period=1.0, startup=startup)
    stage = SilentStage(rule, starts=starts, takes=takes, polls=polls, waiting=jobs)
    wanted = stage.looks(60)
    assert max(wanted) <= 1.25 * jobs + 3
    assert stage.done == jobs


@given(st.integers(1, 50), st.lists(st.integers(0, 100), min_size=1, max_size=60))
def test_consumers_that_stay_are_busy_while_jobs_wait_and_less_and_less_while_none_does(
    consumers: int, queues: list[int]
) -> None:
    sampler, probabilities = StageSampler(), float(consumers)
    for at, waiting in enumerate(queues):
        probabilities = float(consumers) if waiting or not at else probabilities * math.exp(-1.0 / 30.0)
        sample = sampler.sample(float(at), PoolStatistics(consumers), QueueStatistics(waiting, consumers), None)
        assert sample.busy == pytest.approx(probabilities)


def test_consumers_that_came_and_took_are_busy_though_nothing_waits_any_more() -> None:
    sampler = StageSampler()
    sampler.sample(0.0, PoolStatistics(10), QueueStatistics(9, 1), None)
    assert sampler.sample(1.0, PoolStatistics(10), QueueStatistics(0, 10), None).busy == pytest.approx(9.97, abs=0.01)


def test_whoever_consumed_and_is_gone_is_not_busy() -> None:
    sampler = StageSampler()
    for at in range(5):
        assert sampler.sample(float(at), PoolStatistics(4), QueueStatistics(9, 4), None).busy == 4
    assert sampler.sample(5.0, PoolStatistics(4), QueueStatistics(13, 0), None).busy == 0


def test_pollers_that_were_there_before_us_are_not_stopped_in_a_rush() -> None:
    stage = SilentStage(feed_forward(0, 100, period=1.0), starts=0.0, polls=True, waiting=10)
    stage.begin_with(50)
    assert stage.poll() == 50


def test_only_those_of_the_last_growth_are_starting_and_only_for_a_while() -> None:
    starting = StartingWorkers(5.0)
    seen = [(2, 0.0), (6, 1.0), (8, 4.0), (8, 8.9), (8, 9.0), (3, 10.0), (4, 11.0), (1, 12.0)]
    assert [starting.count(on, at) for on, at in seen] == [0, 4, 6, 6, 0, 0, 1, 0]


@pytest.mark.parametrize(("wanted", "words"), [(64, "441.8 busy, 378 short"), (450, "441.8 busy, +8 spare")])
def test_too_few_workers_are_called_short(wanted: int, words: str) -> None:
    assert words in explain(feed_forward(1, 1000), [0.0] * FIELDS, 441.8, 1.0, wanted)
