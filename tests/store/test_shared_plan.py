"""A plan that machines share by a server: steady while held, replaced for all at once, mirrored in a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from msgspec.structs import replace

from levada.core.errors import NotFound, StoreError
from levada.sharding.page_keys import page_placement
from levada.store.memory import MemoryStore
from levada.store.postgresql.shared_plan import SharedPlan, shared_names
from levada.store.sharded.absent import EmptyShard
from levada.store.sharded.plan import MirroredPlan, PlacementRecord, PlanFile, ShardPlace, ShardPlan, new_record
from levada.testing.store.visits import first, links

pytest_plugins = ["tests.servers.fixtures"]


@pytest.fixture
def database(postgresql: str) -> Iterator[str]:
    name = f"shared_{uuid4().hex[:12]}"
    with closing(psycopg.connect(postgresql, autocommit=True)) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        yield postgresql.rpartition("/")[0] + f"/{name}"
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def record(shards: int, home: str = "") -> PlacementRecord:
    places = tuple(ShardPlace(f"shard-{number}", "somewhere", f"s_{number}") for number in range(shards))
    return replace(new_record(ShardPlan(page_placement("site", shards, b"secret")), places), home=home)


def test_what_one_publishes_the_others_read(database: str) -> None:
    assert shared_names(database) == []
    with closing(SharedPlan(database, "news")) as ours, closing(SharedPlan(database, "news")) as theirs:
        ours.publish(record(2))
        assert theirs.read() == record(2)
        assert (theirs.settings(), shared_names(database)) == (None, [])
        ours.put_settings(b"{}")
        assert (theirs.settings(), shared_names(database)) == (b"{}", ["news"])
        ours.replace(record(3))
        assert theirs.read() == record(3)
        ours.publish(record(4))
        assert theirs.read() == record(4)
        assert theirs.settings() == b"{}"


def test_an_unknown_collection_is_not_found(database: str) -> None:
    with closing(SharedPlan(database, "news")) as ours, closing(SharedPlan(database, "others")) as theirs:
        ours.publish(record(1))
        with pytest.raises(NotFound, match="others"):
            theirs.read()
        with pytest.raises(NotFound):
            theirs.read()


def test_nobody_replaces_a_plan_that_somebody_holds_steady(database: str) -> None:
    with closing(SharedPlan(database, "news")) as worker, closing(SharedPlan(database, "news")) as mover:
        mover.publish(record(2))
        replaced = threading.Event()

        def move() -> None:
            mover.replace(record(3))
            replaced.set()

        moving = threading.Thread(target=move)
        with worker.steady() as plan, worker.steady() as again:
            moving.start()
            assert not replaced.wait(0.3)
            assert plan == again == record(2).plan
            assert worker.read() == record(2)
        assert replaced.wait(10.0)
        moving.join()
        with worker.steady() as plan:
            assert plan == record(3).plan


def test_whoever_dies_while_he_holds_it_holds_up_nobody(database: str) -> None:
    with closing(SharedPlan(database, "news")) as mover, closing(SharedPlan(database, "news")) as worker:
        mover.publish(record(2))
        with worker.steady():
            with closing(psycopg.connect(database, autocommit=True)) as admin:
                admin.execute(
                    """SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                    WHERE l.locktype = 'advisory' AND d.datname = current_database()"""
                )
            mover.replace(record(3))
        assert worker.read() == record(3), "a lost session is made anew"


def test_the_file_follows_the_server(database: str, tmp_path: Path) -> None:
    path = tmp_path / "placement.json"
    with closing(PlanFile(path)) as file, closing(SharedPlan(database, "news")) as server:
        server.publish(record(2, database))
        file.replace(record(2, database))
        with closing(MirroredPlan(PlanFile(path), SharedPlan(database, "news"))) as ours:
            ours.replace(record(3, database))
            assert file.read() == server.read() == record(3, database)
            server.replace(record(4, database))  # and a crash before the file was written
            assert file.read() == record(3, database)
            with ours.steady() as plan:
                assert plan == record(4).plan
                assert file.read() == record(4, database)
    assert path.stat().st_mode & 0o077 == 0


def test_a_vacant_shard_holds_nothing_and_takes_nothing() -> None:
    vacant, other = EmptyShard(0), MemoryStore()
    other.add(links("a", 2), [], 0.0)
    visits = [first(lease, 1.0, "text") for lease in other.lease(0.0, 2, 60.0)]
    assert (vacant.lease(0.0, 5, 60.0), vacant.page("http://a/"), vacant.newest_seq()) == ([], None, 0)
    assert (vacant.commit(visits), list(vacant.scan()), vacant.undelivered(9)) == ([False, False], [], [])
    with pytest.raises(StoreError, match="empty for good"):
        vacant.add([], [], 0.0)
