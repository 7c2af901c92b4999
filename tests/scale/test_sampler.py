"""A live stage is seen as a simulated one is, as far as it can be seen."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import UsageError
from levada.scale.reports import WorkerReport, WorkerReports, read_report
from levada.scale.sampler import StageSampler
from levada.scale.statistics import JobStatistics, PoolStatistics, QueueStatistics
from levada.stages import Controller, feed_forward


def told(worker: str, taken: int, done: int) -> WorkerReport:
    return WorkerReport(1, "fetch", worker, taken, done)


def book() -> WorkerReports:
    listening = WorkerReports(silence=10.0)
    listening.expect("fetch")
    return listening


def test_workers_are_summed_and_their_past_counts_for_nothing() -> None:
    heard = book()
    heard.add(told("old hand", 1_000_003, 1_000_000), 0.0)
    heard.add(told("new", 0, 0), 0.0)
    heard.add(told("new", 2, 1), 1.0)
    assert heard.statistics("fetch", 1.0) == JobStatistics(busy=4, taken=5, done=1, workers=2)


def test_whoever_falls_silent_has_its_jobs_taken_back() -> None:
    heard = book()
    heard.add(told("a", 0, 0), 0.0)
    heard.add(told("a", 3, 1), 1.0)
    assert heard.statistics("fetch", 12.0) == JobStatistics(busy=0, taken=1, done=1, workers=0)


def test_another_worker_under_the_same_name_begins_anew() -> None:
    heard = book()
    heard.add(told("a", 0, 0), 0.0)
    heard.add(told("a", 5, 4), 1.0)
    heard.add(told("a", 1, 0), 2.0)
    assert heard.statistics("fetch", 2.0) == JobStatistics(busy=1, taken=5, done=4, workers=1)


def test_only_stages_that_are_expected_are_listened_to() -> None:
    heard = book()
    heard.add(WorkerReport(1, "other", "a", 1, 0), 0.0)
    assert heard.statistics("other", 0.0) is None
    assert heard.statistics("fetch", 0.0) is None
    assert not heard.is_busy("other", "a")


def test_a_report_may_be_json_or_messagepack() -> None:
    report = told("a", 2, 1)
    assert read_report(msgspec.json.encode(report)) == report
    assert read_report(msgspec.msgpack.encode(report)) == report


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xc1",
        b"[" * 1900,
        b"\x91" * 1900,
        b'{"format":1,"stage":"s","worker":"w","taken":-1,"done":0}',
        b'{"format":1,"stage":"s","worker":"w","taken":1,"done":2}',
        b'{"format":2,"stage":"s","worker":"w","taken":1,"done":1}',
        b'{"format":1,"stage":"","worker":"w","taken":1,"done":1}',
        b'{"format":1,"stage":"s","worker":"w","taken":1,"done":1,"x":"' + b"y" * 3000 + b'"}',
    ],
)
def test_a_report_that_makes_no_sense_is_no_report(body: bytes) -> None:
    assert read_report(body) is None


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reading_of_reports(body: bytes) -> None:
    read_report(body)


def test_counts_never_shrink_and_go_on_after_a_purge() -> None:
    sampler = StageSampler()
    seen = []
    for second, (waiting, taken) in enumerate([(10, 5), (8, 6), (0, 6), (0, 6), (0, 6), (0, 6), (1, 6), (2, 7)]):
        work = JobStatistics(busy=1, taken=taken, done=taken - 1)
        seen.append(sampler.sample(float(second), PoolStatistics(1), QueueStatistics(waiting, 1), work).arrived)
    assert seen == sorted(seen)
    assert seen[-1] > seen[-3]


def test_while_jobs_wait_every_consumer_is_busy_and_later_fewer_are_believed_to_be() -> None:
    sampler = StageSampler()
    assert sampler.sample(0.0, PoolStatistics(4), QueueStatistics(5, 4), None).busy == 4
    later = [sampler.sample(float(at), PoolStatistics(4), QueueStatistics(0, 4), None).busy for at in (1, 30, 120)]
    assert 4 > later[0] > later[1] > later[2]
    assert sampler.sample(121.0, PoolStatistics(4), QueueStatistics(1, 4), None).busy == 4


def test_when_workers_begin_to_tell_counts_go_on() -> None:
    sampler = StageSampler()
    guessed = [sampler.sample(float(at), PoolStatistics(2), QueueStatistics(3, 2), None) for at in range(5)][-1]
    first = sampler.sample(5.0, PoolStatistics(2), QueueStatistics(3, 2), JobStatistics(2, 700_000, 699_998))
    assert first.arrived == pytest.approx(guessed.arrived)
    assert first.done == pytest.approx(guessed.done)


@pytest.mark.parametrize("look", [None, QueueStatistics(math.nan), QueueStatistics(-1), QueueStatistics(3, math.inf)])
def test_a_queue_that_vanished_or_is_nonsense_holds_the_size(look: QueueStatistics | None) -> None:
    sampler, controller = StageSampler(), Controller(feed_forward(1, 50))
    for at in range(10):
        sample = sampler.sample(float(at), PoolStatistics(5), QueueStatistics(40, 5), None)
        wanted = controller.workers_wanted(sample)
    assert wanted > 5
    for at in range(10, 100):
        assert controller.workers_wanted(sampler.sample(float(at), PoolStatistics(5), look, None)) == wanted
        assert controller.trouble


@pytest.mark.parametrize(("capacity", "assumed"), [(0.0, 1.0), (math.nan, 1.0), (1.0, 0.0), (1.0, math.inf)])
def test_a_capacity_or_time_of_nothing_is_refused(capacity: float, assumed: float) -> None:
    with pytest.raises(UsageError):
        StageSampler(capacity, assumed)
