"""The law of a task book, on every engine: one begins, each task has one holder, late words are refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from levada.adapters.bulk.memory import MemoryBook
from levada.adapters.bulk.postgresql_book import PostgresqlBook
from levada.adapters.bulk.redis_book import RedisBook
from levada.adapters.bulk.redis_nodes import RedisNodes
from levada.adapters.bulk.sqlite_book import SqliteBook
from levada.bulk.generations import LoadPlan
from levada.bulk.ports import TaskBook
from levada.bulk.spans import Cut, KeyRange, Modulus, NullKeys, Span
from levada.bulk.tasks import LoadRecord, LoadState, TaskResult
from levada.bulk.trouble import Away
from levada.clock import SystemClock

pytest_plugins = ["tests.servers.fixtures"]

SPANS: list[Span] = [KeyRange(None, Cut("\N{SNOWMAN}'\"\\")), KeyRange(Cut(2**60, after=True)), NullKeys()]
_names = count(1)


@pytest.fixture(params=["memory", "sqlite", "postgresql", "redis", "redis_cluster"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TaskBook]:
    if request.param == "memory":
        yield MemoryBook(SystemClock())
    elif request.param == "sqlite":
        with closing(SqliteBook(tmp_path / "deep" / "book.sqlite", SystemClock())) as kept:
            yield kept
    elif request.param == "postgresql":
        with closing(PostgresqlBook(request.getfixturevalue("postgresql"))) as there:
            yield there
    else:
        with closing(RedisBook(RedisNodes(request.getfixturevalue(request.param), time.sleep))) as far:
            yield far


@pytest.fixture
def name() -> str:
    return f"load-{next(_names)}"


def record(name: str, generation: int = 1) -> LoadRecord:
    return LoadRecord(LoadPlan(name, "db", "t", "k", "v", True, "at"), generation, "int", "any", snapshot="s-1")


def begun(book: TaskBook, name: str) -> None:
    assert book.begin(record(name), SPANS, 0)


def test_one_begins_a_generation_and_the_other_is_told_so(book: TaskBook, name: str) -> None:
    assert book.standing(name) is None
    assert book.begin(record(name), SPANS, 0)
    assert not book.begin(record(name), SPANS, 0)
    assert book.begin(record(name, 2), SPANS, 1)
    standing = book.standing(name)
    assert standing is not None
    assert standing.record.generation == 2
    assert standing.record.plan == record(name).plan
    assert (standing.waiting, standing.leased, standing.done.tasks) == (3, 0, 0)


def test_each_task_has_one_holder_and_spans_come_back_as_they_were(book: TaskBook, name: str) -> None:
    begun(book, name)
    leases = [book.lease(name, 1, "a", 60.0, "s-2") for _ in SPANS]
    assert [lease.span for lease in leases if lease is not None] == SPANS
    assert book.lease(name, 1, "b", 60.0, "") is None
    standing = book.standing(name)
    assert standing is not None
    assert (standing.leased, standing.expired, standing.owners, standing.offers) == (
        3,
        0,
        {"a": (3, 0, 0)},
        ("s-2",),
    )


def test_a_lease_that_ran_out_goes_to_another_and_the_late_one_is_refused(book: TaskBook, name: str) -> None:
    begun(book, name)
    late, *_ = [book.lease(name, 1, "a", 0.0, "dead") for _ in SPANS]
    again = book.lease(name, 1, "b", 60.0, "alive")
    assert late is not None
    assert again is not None
    assert (again.task, again.token) == (late.task, late.token + 1)
    assert not book.renew(late, 60.0)
    assert not book.settle(late, TaskResult(rows=5))
    assert book.renew(again, 60.0)
    assert book.settle(again, TaskResult(rows=7, keys=2, digest=2**64 - 1, null_values=1))
    standing = book.standing(name)
    assert standing is not None
    assert (standing.done.rows, standing.done.digest, standing.done.null_values) == (7, 2**64 - 1, 1)
    assert standing.expired == 2
    assert standing.offers == ()
    assert standing.owners["b"] == (0, 1, 7)


def test_a_done_task_is_settled_once(book: TaskBook, name: str) -> None:
    begun(book, name)
    lease = book.lease(name, 1, "a", 60.0, "")
    assert lease is not None
    assert book.settle(lease, TaskResult(rows=1))
    assert not book.settle(lease, TaskResult(rows=1))
    assert not book.renew(lease, 60.0)


def test_a_task_that_was_split_waits_as_its_parts(book: TaskBook, name: str) -> None:
    assert book.begin(record(name), [Modulus(1, 0)], 0)
    lease = book.lease(name, 1, "a", 60.0, "")
    assert lease is not None
    assert book.settle(lease, TaskResult(parts=(Modulus(2, 0), Modulus(2, 1))))
    standing = book.standing(name)
    assert standing is not None
    assert (standing.waiting, standing.done.tasks, standing.finished) == (2, 0, False)
    for part in (Modulus(2, 0), Modulus(2, 1)):
        next_lease = book.lease(name, 1, "a", 60.0, "")
        assert next_lease is not None
        assert next_lease.span == part
        assert book.settle(next_lease, TaskResult(rows=1, digest=2**64 - 1))
    standing = book.standing(name)
    assert standing is not None
    assert standing.finished
    assert standing.done.digest == 2**64 - 2


def test_a_generation_that_was_replaced_gives_no_leases_and_takes_no_results(book: TaskBook, name: str) -> None:
    begun(book, name)
    lease = book.lease(name, 1, "a", 60.0, "")
    assert lease is not None
    assert book.begin(record(name, 2), SPANS, 1)
    assert book.lease(name, 1, "a", 60.0, "") is None
    assert not book.renew(lease, 60.0)
    assert not book.settle(lease, TaskResult())
    assert not book.finish(name, 1, LoadState.PUBLISHED, "")


def test_a_load_ends_once_and_says_why(book: TaskBook, name: str) -> None:
    begun(book, name)
    assert book.finish(name, 1, LoadState.FAILED, "the target is full: 'x' \N{SNOWMAN}")
    assert book.lease(name, 1, "a", 60.0, "") is None
    failed = book.standing(name)
    assert failed is not None
    assert (failed.record.state, failed.record.reason) == (LoadState.FAILED, "the target is full: 'x' \N{SNOWMAN}")
    assert failed.record.ended_at is not None
    assert book.finish(name, 1, LoadState.RUNNING, "")
    assert book.lease(name, 1, "a", 60.0, "") is not None
    assert book.finish(name, 1, LoadState.PUBLISHED, "")
    assert not book.finish(name, 1, LoadState.RUNNING, "")


def test_loads_do_not_see_each_other(book: TaskBook, name: str) -> None:
    begun(book, name)
    begun(book, f"{name}-other")
    assert book.lease(name, 1, "a", 60.0, "") is not None
    other = book.standing(f"{name}-other")
    assert other is not None
    assert other.waiting == 3


def test_a_book_that_is_not_there_is_away() -> None:
    with pytest.raises(Away, match=r"Redis at redis://127.0.0.1:1/0 cannot be reached"):
        RedisNodes("redis://me:secret@127.0.0.1:1/0", time.sleep)
    with pytest.raises(Away, match="the PostgreSQL of the task book cannot be reached"):
        PostgresqlBook("postgresql://me:secret@127.0.0.1:1/x")
