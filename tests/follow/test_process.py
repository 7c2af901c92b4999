"""The index writer beside the crawl: there while there is something to do, and never out of its place."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from levada.core.errors import IndexAway
from levada.core.folder import DataFolder
from levada.core.search_records import Query
from levada.core.settings import IndexSettings, SearchSettings, Settings
from levada.follow import process
from levada.follow.index import IndexerChild
from levada.follow.process import Follower, follow
from levada.search.tantivy.index import TantivyIndex
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import first, links
from tests import needs


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path)


@pytest.fixture
def store(folder: DataFolder) -> Iterator[SqliteStore]:
    opened = SqliteStore(folder.database)
    yield opened
    opened.close()


def fill(store: SqliteStore, start: int, count: int) -> int:
    store.add(links("a.test", count, start), [], 0.0)
    leases = store.lease(1000.0 * (start + 1), count, 60.0)
    visits = [first(lease, 1.0, f"words and number{lease.page.id}", interval=1e9) for lease in leases]
    assert all(store.commit(visits))
    return len(leases)


def writer(folder: DataFolder, *, hybrid: bool = False) -> IndexerChild:
    settings = IndexSettings(batch=100, heap=16 * 1024 * 1024, gather_seconds=0.1)
    return IndexerChild(folder, settings, hybrid=hybrid)


def until(condition: Callable[[], bool]) -> None:
    """For an event, not for a time: the deadline is only so that a failure ends."""
    deadline = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def caught_up(child: Follower) -> bool:
    pool = child.poll()
    return not pool.queue and not pool.busy and pool.done == pool.arrived


def found(folder: DataFolder) -> int:
    index = TantivyIndex(folder.index)
    try:
        return index.search(Query("words")).total
    finally:
        index.close()


def pid(child: Follower) -> int:
    assert child._process is not None
    return child._process.pid


def test_it_ends_when_idle_and_is_started_again_without_losing_its_place(
    folder: DataFolder, store: SqliteStore
) -> None:
    child = writer(folder)
    child.wake(fill(store, 0, 30))
    until(lambda: caught_up(child))
    pool = child.poll()
    assert (pool.on, pool.arrived, pool.done) == (1, 30, 30)
    assert pool.work > 0
    child.resize(0)
    until(lambda: child.poll().on == 0 and child._process is None)
    assert found(folder) == 30
    child.wake(fill(store, 30, 20))
    assert child.poll().queue == 20  # it waits until somebody is wanted
    child.resize(1)
    until(lambda: caught_up(child))
    assert child.poll().work >= pool.work
    assert child.finish() is None
    assert found(folder) == 50


def test_one_that_has_work_is_not_ended(folder: DataFolder, store: SqliteStore) -> None:
    child = writer(folder)
    child.wake(fill(store, 0, 30))
    first_pid = pid(child)
    child.resize(0)
    assert pid(child) == first_pid
    assert not child._is_ending
    assert child.finish() is None
    assert found(folder) == 30


def test_a_killed_writer_is_replaced_and_loses_nothing(folder: DataFolder, store: SqliteStore) -> None:
    child = writer(folder)
    child.wake(fill(store, 0, 30))
    os.kill(pid(child), signal.SIGKILL)
    until(lambda: child.poll().on == 0)
    assert child.poll().queue >= 1
    child.resize(1)
    until(lambda: caught_up(child))
    os.kill(pid(child), signal.SIGKILL)
    child.wake(fill(store, 30, 10))
    assert child.finish() is None
    assert found(folder) == 40


def test_what_an_earlier_crawl_left_undone_is_work_too(folder: DataFolder, store: SqliteStore) -> None:
    fill(store, 0, 25)
    child = writer(folder)
    assert child.poll().queue == 1
    until(lambda: caught_up(child))
    child.resize(0)
    assert child.finish() is None
    assert found(folder) == 25


def test_one_that_never_starts_is_given_up_and_says_why(tmp_path: Path) -> None:
    child = Follower("levada.no_such_module")
    for _ in range(10):
        until(lambda: child.poll().on == 0)
        child.resize(1)
    assert child.poll().queue == 0  # nobody is wanted for it any more
    said = child.finish()
    assert said is not None
    assert "no_such_module" in said


def test_finishing_after_it_was_ended_leaves_nothing_undone(folder: DataFolder, store: SqliteStore) -> None:
    child = writer(folder)
    until(lambda: caught_up(child))
    child.resize(0)
    child.wake(fill(store, 0, 12))  # while it is ending
    assert child.finish() is None
    assert found(folder) == 12


def test_it_computes_vectors_too_if_search_is_hybrid(folder: DataFolder, store: SqliteStore) -> None:
    needs.package("wordllama")
    folder.save_settings(Settings(search=SearchSettings(hybrid=True)))
    child = writer(folder, hybrid=True)
    child.wake(fill(store, 0, 5))
    assert child.finish() is None
    assert found(folder) == 5
    with closing(sqlite3.connect(folder.index / "vectors.db")) as database:
        assert database.execute("SELECT count(*) FROM pages").fetchone() == (5,)


def test_a_search_engine_that_is_away_is_asked_again_until_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    told, hear = os.pipe()
    tries: list[int] = []

    def catch_up(on_progress: Callable[[int], None]) -> None:
        tries.append(len(tries))
        if len(tries) < 3:
            raise IndexAway("nobody answers")
        os.write(hear, b"q\n")

    monkeypatch.setattr(process, "_TRY_AGAIN", 0.0)
    monkeypatch.setattr("sys.stdin", os.fdopen(told))
    follow(catch_up, 0.0)
    assert len(tries) == 4, "and once more when it is told to end"

    def in_vain(on_progress: Callable[[int], None]) -> None:
        os.write(hear, b"q\n")
        raise IndexAway("nobody answers")

    with pytest.raises(IndexAway):  # what the crawl says at its end
        follow(in_vain, 0.0)
    os.close(hear)
    sys.stdin.close()
