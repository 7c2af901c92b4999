"""Servers restart, hang up or run full in the middle of a load: a clear state, and nothing half-published."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import msgspec
import psycopg
import pytest

from levada.bulk.instance import Patience
from levada.bulk.loads import LoadRequest, cancel_load, load, load_status, verify_load
from levada.bulk.maps import Map
from levada.bulk.protocols import Away, LoadEnded
from levada.bulk.splitting import SplitMethod
from levada.bulk.targets.lmdb import LmdbMaps
from levada.bulk.targets.redis_client import RedisLine, RedisNodes
from levada.bulk.task_stores.postgresql import PostgresqlTaskStore
from levada.bulk.tasks import LoadState, LoadStatus
from levada.core.errors import NotFound, StoreFull, UsageError
from tests.bulk.chaos import Chaos
from tests.needs import missing
from tests.servers.private import Child, free_ports
from tests.servers.redis import Server

pytest_plugins = ["tests.servers.fixtures"]

_names = count(1)
PATIENCE = Patience(restarts=3, tries=50, seconds=0.1)


class Restartable:
    """A Redis that this test alone may kill."""

    def __init__(self, folder: Path, *asked: str) -> None:
        port = free_ports(1)[0]
        self.url = f"redis://127.0.0.1:{port}/0"
        self._command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), *asked]
        self.start()

    def start(self) -> None:
        self._child = Child(self._command, os.environ)
        self._child.wait_for("Ready to accept connections", 30.0)

    def end(self) -> None:
        self._child.end()

    def ask(self, *words: str | int) -> None:
        with closing(RedisLine.at(self.url)) as line:
            line.ask(*words)


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[Restartable]:
    yield from _restartable(tmp_path, "--save", "")


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[Restartable]:
    yield from _restartable(tmp_path, "--save", "", "--appendonly", "yes", "--appendfsync", "always")


def _restartable(folder: Path, *asked: str) -> Iterator[Restartable]:
    if not Server.installed():
        missing("redis is not installed: run tests/servers/install.sh as root, or install it yourself")
    server = Restartable(folder, *asked)
    yield server
    server.end()


@pytest.fixture
def request_of(postgresql: str) -> Callable[[str], LoadRequest]:
    table = f"trouble_{next(_names)}"
    with psycopg.connect(postgresql, autocommit=True) as line:
        line.execute(f"CREATE TABLE {table} AS SELECT n % 300 AS k, n AS v FROM generate_series(1, 2000) n")
        line.execute(f"ANALYZE {table}")

    def request(target: str) -> LoadRequest:
        return LoadRequest(
            postgresql, table, "k", "v", table.replace("_", "-"), target, collect=True, task_rows=200, keep_old=0.0
        )

    return request


def once(mischief: Callable[[], object]) -> Callable[[LoadStatus], None]:
    """Something that happens after the first task."""
    change_kind: list[bool] = []

    def watch(status: LoadStatus) -> None:
        if not change_kind:
            change_kind.append(True)
            assert status.record.state is LoadState.RUNNING
            mischief()

    return watch


def agrees(request: LoadRequest) -> bool:
    verdict = verify_load(request)
    return verdict.whole and verdict.current and verdict.stored.rows == 2_000


def test_a_redis_that_restarts_empty_is_loaded_again(
    forgetful: Restartable, request_of: Callable[[str], LoadRequest]
) -> None:
    request = request_of(forgetful.url)

    def restart() -> None:
        forgetful.end()
        forgetful.start()

    load(request, once(restart), PATIENCE)
    assert agrees(request)


def test_a_redis_that_restarts_with_its_data_is_not_believed(
    lasting: Restartable, request_of: Callable[[str], LoadRequest]
) -> None:
    request = request_of(lasting.url)

    def restart() -> None:
        lasting.end()
        lasting.start()

    loaded = load(request, once(restart), PATIENCE)
    assert loaded.status.record.generation == 2
    assert agrees(request)


def test_a_redis_that_stays_away_leaves_a_load_that_can_be_resumed(
    lasting: Restartable, request_of: Callable[[str], LoadRequest]
) -> None:
    request = request_of(lasting.url)
    with pytest.raises(Away, match="cannot be reached"):
        load(request, once(lasting.end), Patience(tries=0))
    lasting.start()
    status, published = load_status(request)
    assert status is not None
    assert status.record.state is LoadState.RUNNING
    assert published is None
    load(request, lambda status: None)
    assert agrees(request)


def test_a_full_redis_fails_the_load_and_resume_finishes(
    forgetful: Restartable, request_of: Callable[[str], LoadRequest]
) -> None:
    request = request_of(forgetful.url)
    with pytest.raises(StoreFull, match="is full"):
        load(request, once(lambda: forgetful.ask("CONFIG", "SET", "maxmemory", 1)))
    status, published = load_status(request)
    assert status is not None
    assert status.record.state is LoadState.FAILED
    assert "is full (maxmemory)" in status.record.reason
    assert published is None
    forgetful.ask("CONFIG", "SET", "maxmemory", 0)
    with pytest.raises(NotFound):
        Map.open(request.target, request.name)
    load(request, lambda status: None)
    assert agrees(request)


def test_a_source_that_hangs_up_is_read_again_from_a_new_snapshot(
    redis: str, postgresql: str, request_of: Callable[[str], LoadRequest]
) -> None:
    request = request_of(redis)

    def cut() -> None:
        with psycopg.connect(postgresql, autocommit=True) as line:
            line.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'levada load'"
            )

    loaded = load(request, once(cut), PATIENCE)
    assert loaded.status.record.generation == 2
    assert agrees(request)
    with Map.open(request.target, request.name) as opened:
        assert opened.get(7) == [*range(7, 2_001, 300)]


def test_a_book_in_postgresql_outlives_its_connection(
    redis: str, postgresql: str, request_of: Callable[[str], LoadRequest]
) -> None:
    request = msgspec.structs.replace(request_of(redis), book=postgresql)

    def cut() -> None:
        with psycopg.connect(postgresql, autocommit=True) as line:
            line.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'levada load'"
            )

    load(request, once(cut), PATIENCE)
    assert agrees(request)


def test_a_load_that_is_cancelled_leaves_nothing(redis: str, request_of: Callable[[str], LoadRequest]) -> None:
    request = request_of(redis)
    with pytest.raises(LoadEnded, match="cancelled"):
        load(request, once(lambda: cancel_load(request)))
    with closing(RedisLine.at(redis)) as line:
        assert line.ask("SCAN", 0, "MATCH", f"levada:*:{request.name}:*", "COUNT", 1_000_000)[1] == []
    with pytest.raises(NotFound, match=r"no load of .* is running"):
        cancel_load(request_of(redis.replace("/0", "/1")))


def test_a_split_that_cannot_be_leaves_nothing_in_the_target(
    redis: str, request_of: Callable[[str], LoadRequest], tmp_path: Path
) -> None:
    (tmp_path / "names.csv").write_text("k,v\none,1\ntwo,2\n")
    asked = msgspec.structs.replace(
        request_of(redis),
        source=str(tmp_path / "names.csv"),
        key="k",
        value="v",
        split=SplitMethod.MOD,
        collect=False,
    )
    with pytest.raises(UsageError, match="cannot be split by mod"):
        load(asked, lambda status: None)
    with closing(RedisLine.at(redis)) as line:
        assert line.ask("SCAN", 0, "MATCH", f"*{asked.name}*", "COUNT", 1_000_000)[1] == []


@pytest.mark.parametrize("seed", [1])
def test_instances_are_killed_and_frozen_and_the_map_is_the_table(
    seed: int, redis: str, postgresql: str, tmp_path: Path
) -> None:
    """Twenty of these: `python -m tests.bulk.chaos`."""
    chaos = Chaos(postgresql, redis, tmp_path, seed)
    try:
        chaos.run()
        assert chaos.agrees()
    finally:
        chaos.end()
    assert chaos.killed == 3
    assert chaos.frozen


def test_where_a_map_has_no_room_to_begin_the_process_lives_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=4096))
    with closing(LmdbMaps(tmp_path / "maps")) as maps, pytest.raises(StoreFull, match="no space left for the map"):
        maps.fence("m", 1, "open")


def test_a_book_that_is_not_there_is_away() -> None:
    with pytest.raises(Away, match=r"Redis at redis://127.0.0.1:1/0 cannot be reached"):
        RedisNodes("redis://me:secret@127.0.0.1:1/0", time.sleep)
    with pytest.raises(Away, match="the PostgreSQL of the task store cannot be reached"):
        PostgresqlTaskStore("postgresql://me:secret@127.0.0.1:1/x")
