"""The contract of a task store, run on every engine: each task has one holder, and late results are refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from levada.bulk.protocols import TaskStore
from levada.bulk.splitting import Cut, KeyRange, Modulus, NullKeys, Span
from levada.bulk.targets.redis_client import RedisNodes
from levada.bulk.task_stores.postgresql import PostgresqlTaskStore
from levada.bulk.task_stores.redis import RedisTaskStore
from levada.bulk.task_stores.sqlite import SqliteTaskStore
from levada.bulk.tasks import LoadPlan, LoadRecord, LoadState, TaskResult
from levada.core.clock import SystemClock
from tests.bulk.memory import MemoryTaskStore

SPANS: list[Span] = [KeyRange(None, Cut("\N{SNOWMAN}'\"\\")), KeyRange(Cut(2**60, after=True)), NullKeys()]
_names = count(1)


@pytest.fixture(params=["memory", "sqlite", "postgresql", "redis", "redis_cluster"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TaskStore]:
    if request.param == "memory":
        yield MemoryTaskStore(SystemClock())
    elif request.param == "sqlite":
        with closing(SqliteTaskStore(tmp_path / "deep" / "book.sqlite", SystemClock())) as kept:
            yield kept
    elif request.param == "postgresql":
        with closing(PostgresqlTaskStore(request.getfixturevalue("postgresql"))) as there:
            yield there
    else:
        with closing(RedisTaskStore(RedisNodes(request.getfixturevalue(request.param), time.sleep))) as far:
            yield far


@pytest.fixture
def name() -> str:
    return f"load-{next(_names)}"


def record(name: str, generation: int = 1) -> LoadRecord:
    return LoadRecord(LoadPlan(name, "db", "t", "k", "v", True, "at"), generation, "int", "any", snapshot="s-1")


def begun(book: TaskStore, name: str) -> None:
    assert book.begin(record(name), SPANS, 0)


def test_one_begins_a_generation_and_the_other_is_told_so(book: TaskStore, name: str) -> None:
    assert book.status(name) is None
    assert book.begin(record(name), SPANS, 0)
    assert not book.begin(record(name), SPANS, 0)
    assert book.begin(record(name, 2), SPANS, 1)
    status = book.status(name)
    assert status is not None
    assert status.record.generation == 2
    assert status.record.plan == record(name).plan
    assert (status.waiting, status.leased, status.done.tasks) == (3, 0, 0)


def test_each_task_has_one_holder_and_spans_come_back_as_they_were(book: TaskStore, name: str) -> None:
    begun(book, name)
    leases = [book.lease(name, 1, "a", 60.0, "s-2") for _ in SPANS]
    assert [lease.span for lease in leases if lease is not None] == SPANS
    assert book.lease(name, 1, "b", 60.0, "") is None
    status = book.status(name)
    assert status is not None
    assert (status.leased, status.expired, status.owners, status.offers) == (
        3,
        0,
        {"a": (3, 0, 0)},
        ("s-2",),
    )


def test_a_lease_that_ran_out_goes_to_another_and_the_late_one_is_refused(book: TaskStore, name: str) -> None:
    begun(book, name)
    late, *_ = [book.lease(name, 1, "a", 0.0, "dead") for _ in SPANS]
    again = book.lease(name, 1, "b", 60.0, "alive")
    assert late is not None
    assert again is not None
    assert (again.task, again.token) == (late.task, late.token + 1)
    assert not book.renew(late, 60.0)
    assert not book.complete(late, TaskResult(rows=5))
    assert book.renew(again, 60.0)
    assert book.complete(again, TaskResult(rows=7, keys=2, digest=2**64 - 1, null_values=1))
    status = book.status(name)
    assert status is not None
    assert (status.done.rows, status.done.digest, status.done.null_values) == (7, 2**64 - 1, 1)
    assert status.expired == 2
    assert status.offers == ()
    assert status.owners["b"] == (0, 1, 7)


def test_a_done_task_is_settled_once(book: TaskStore, name: str) -> None:
    begun(book, name)
    lease = book.lease(name, 1, "a", 60.0, "")
    assert lease is not None
    assert book.complete(lease, TaskResult(rows=1))
    assert not book.complete(lease, TaskResult(rows=1))
    assert not book.renew(lease, 60.0)


def test_a_task_that_was_split_waits_as_its_parts(book: TaskStore, name: str) -> None:
    assert book.begin(record(name), [Modulus(1, 0)], 0)
    lease = book.lease(name, 1, "a", 60.0, "")
    assert lease is not None
    assert book.complete(lease, TaskResult(parts=(Modulus(2, 0), Modulus(2, 1))))
    status = book.status(name)
    assert status is not None
    assert (status.waiting, status.done.tasks, status.finished) == (2, 0, False)
    for part in (Modulus(2, 0), Modulus(2, 1)):
        next_lease = book.lease(name, 1, "a", 60.0, "")
        assert next_lease is not None
        assert next_lease.span == part
        assert book.complete(next_lease, TaskResult(rows=1, digest=2**64 - 1))
    status = book.status(name)
    assert status is not None
    assert status.finished
    assert status.done.digest == 2**64 - 2


def test_a_generation_that_was_replaced_gives_no_leases_and_takes_no_results(book: TaskStore, name: str) -> None:
    begun(book, name)
    lease = book.lease(name, 1, "a", 60.0, "")
    assert lease is not None
    assert book.begin(record(name, 2), SPANS, 1)
    assert book.lease(name, 1, "a", 60.0, "") is None
    assert not book.renew(lease, 60.0)
    assert not book.complete(lease, TaskResult())
    assert not book.finish(name, 1, LoadState.PUBLISHED, "")


def test_a_load_ends_once_and_says_why(book: TaskStore, name: str) -> None:
    begun(book, name)
    assert book.finish(name, 1, LoadState.FAILED, "the target is full: 'x' \N{SNOWMAN}")
    assert book.lease(name, 1, "a", 60.0, "") is None
    failed = book.status(name)
    assert failed is not None
    assert (failed.record.state, failed.record.reason) == (LoadState.FAILED, "the target is full: 'x' \N{SNOWMAN}")
    assert failed.record.ended_at is not None
    assert book.finish(name, 1, LoadState.RUNNING, "")
    assert book.lease(name, 1, "a", 60.0, "") is not None
    assert book.finish(name, 1, LoadState.PUBLISHED, "")
    assert not book.finish(name, 1, LoadState.RUNNING, "")


def test_loads_do_not_see_each_other(book: TaskStore, name: str) -> None:
    begun(book, name)
    begun(book, f"{name}-other")
    assert book.lease(name, 1, "a", 60.0, "") is not None
    other = book.status(f"{name}-other")
    assert other is not None
    assert other.waiting == 3
