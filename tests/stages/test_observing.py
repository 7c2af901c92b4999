"""A live stage is seen as a simulated one is, as far as it can be seen."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.errors import UsageError
from levada.stages import Controller, feed_forward
from levada.stages.looks import CrewLook, QueueLook, WorkLook
from levada.stages.observing import StageObserver
from levada.stages.reports import ReportBook, WorkerReport, read_report


def told(worker: str, taken: int, done: int) -> WorkerReport:
    return WorkerReport(1, "fetch", worker, taken, done)


def book() -> ReportBook:
    listening = ReportBook(silence=10.0)
    listening.expect("fetch")
    return listening


def test_workers_are_summed_and_their_past_counts_for_nothing() -> None:
    heard = book()
    heard.hear(told("old hand", 1_000_003, 1_000_000), 0.0)
    heard.hear(told("new", 0, 0), 0.0)
    heard.hear(told("new", 2, 1), 1.0)
    assert heard.look("fetch", 1.0) == WorkLook(busy=4, taken=5, done=1, workers=2)


def test_whoever_falls_silent_has_its_jobs_taken_back() -> None:
    heard = book()
    heard.hear(told("a", 0, 0), 0.0)
    heard.hear(told("a", 3, 1), 1.0)
    assert heard.look("fetch", 12.0) == WorkLook(busy=0, taken=1, done=1, workers=0)


def test_another_worker_under_the_same_name_begins_anew() -> None:
    heard = book()
    heard.hear(told("a", 0, 0), 0.0)
    heard.hear(told("a", 5, 4), 1.0)
    heard.hear(told("a", 1, 0), 2.0)
    assert heard.look("fetch", 2.0) == WorkLook(busy=1, taken=5, done=4, workers=1)


def test_only_stages_that_are_expected_are_listened_to() -> None:
    heard = book()
    heard.hear(WorkerReport(1, "other", "a", 1, 0), 0.0)
    assert heard.look("other", 0.0) is None
    assert heard.look("fetch", 0.0) is None
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
    observer = StageObserver()
    seen = []
    for second, (waiting, taken) in enumerate([(10, 5), (8, 6), (0, 6), (0, 6), (0, 6), (0, 6), (1, 6), (2, 7)]):
        work = WorkLook(busy=1, taken=taken, done=taken - 1)
        seen.append(observer.sample(float(second), QueueLook(waiting, 1), CrewLook(1), work).arrived)
    assert seen == sorted(seen)
    assert seen[-1] > seen[-3]


def test_while_jobs_wait_every_consumer_is_busy_and_later_fewer_are_believed_to_be() -> None:
    observer = StageObserver()
    assert observer.sample(0.0, QueueLook(5, 4), CrewLook(4), None).busy == 4
    later = [observer.sample(float(at), QueueLook(0, 4), CrewLook(4), None).busy for at in (1, 30, 120)]
    assert 4 > later[0] > later[1] > later[2]
    assert observer.sample(121.0, QueueLook(1, 4), CrewLook(4), None).busy == 4


def test_when_workers_begin_to_tell_counts_go_on() -> None:
    observer = StageObserver()
    guessed = [observer.sample(float(at), QueueLook(3, 2), CrewLook(2), None) for at in range(5)][-1]
    first = observer.sample(5.0, QueueLook(3, 2), CrewLook(2), WorkLook(2, 700_000, 699_998))
    assert first.arrived == pytest.approx(guessed.arrived)
    assert first.done == pytest.approx(guessed.done)


@pytest.mark.parametrize("look", [None, QueueLook(math.nan), QueueLook(-1), QueueLook(3, math.inf)])
def test_a_queue_that_vanished_or_is_nonsense_holds_the_size(look: QueueLook | None) -> None:
    observer, controller = StageObserver(), Controller(feed_forward(1, 50))
    for at in range(10):
        sample = observer.sample(float(at), QueueLook(40, 5), CrewLook(5), None)
        wanted = controller.workers_wanted(sample)
    assert wanted > 5
    for at in range(10, 100):
        assert controller.workers_wanted(observer.sample(float(at), look, CrewLook(5), None)) == wanted
        assert controller.trouble


@pytest.mark.parametrize(("capacity", "assumed"), [(0.0, 1.0), (math.nan, 1.0), (1.0, 0.0), (1.0, math.inf)])
def test_a_capacity_or_time_of_nothing_is_refused(capacity: float, assumed: float) -> None:
    with pytest.raises(UsageError):
        StageObserver(capacity, assumed)
