"""What is particular to a map in a file and to one in Redis."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy
import pytest
from redis.crc import key_slot
from redis.exceptions import ResponseError

from levada.bulk.engines import open_maps
from levada.bulk.entries import PlainEntries, encoded_key, encoded_values
from levada.bulk.maps import Map
from levada.bulk.protocols import Away
from levada.bulk.sources.packed import PackedRows
from levada.bulk.targets.lmdb import LmdbMaps
from levada.bulk.targets.redis import RedisMaps
from levada.bulk.targets.redis_client import RedisLine, RedisNodes
from levada.bulk.tasks import LoadPlan, Manifest
from levada.core.errors import MissingExtra, NotFound, StoreDamaged, StoreError, StoreFull, UsageError
from tests.contracts.test_bulk_maps import Maps, entries, manifest, opened

pytest_plugins = ["tests.servers.fixtures"]


def test_a_map_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no map nothing is published in"):
        Map.open(str(tmp_path), "nothing")
    with pytest.raises(UsageError, match="is not a map name"):
        Map.open(str(tmp_path), "../nothing")


def test_a_process_may_read_a_file_that_it_writes_but_not_write_one_that_it_reads(tmp_path: Path) -> None:
    with closing(LmdbMaps(tmp_path)) as writing:
        maps = Maps(writing, writing, "shared")
        assert writing.write("shared", 1, opened(maps), entries(a=1))
        assert writing.publish(manifest(maps))
        with Map.open(str(tmp_path), "shared") as library:
            assert library.get("a") == [1]
    with (
        Map.open(str(tmp_path), "shared"),
        closing(LmdbMaps(tmp_path)) as late,
        pytest.raises(StoreError, match="is open for reading in this process"),
    ):
        late.fence("shared", 2, "open")


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "data.mdb").write_bytes(b"something else" * 1_000)
    with pytest.raises(StoreDamaged, match="cannot be opened as a map"):
        Map.open(str(tmp_path), "shared")


def test_a_full_redis_says_so(redis: str) -> None:
    with closing(RedisLine.at(redis)) as line, closing(RedisNodes(redis, time.sleep)) as nodes:
        target = RedisMaps(nodes)
        epoch = target.fence("crowded", 1, "open")
        line.ask("CONFIG", "SET", "maxmemory", 1)
        try:
            with pytest.raises(StoreFull, match="is full"):
                target.write("crowded", 1, epoch, entries(a=1))
        finally:
            line.ask("CONFIG", "SET", "maxmemory", 0)
        assert target.write("crowded", 1, epoch, entries(a=1))


def test_a_slot_is_found_as_the_cluster_finds_it(redis_cluster: str) -> None:
    with closing(RedisLine.at(redis_cluster)) as line:
        for key in (b"a", b"{a}b", b"{}b", b"x{a", b"x}{y}z", b"levada:map:m:1:{1ff}\x80{}", b""):
            assert key_slot(key) == line.ask("CLUSTER", "KEYSLOT", key)


def test_a_slot_on_the_move_is_followed(redis_cluster: str) -> None:
    """ASK while it moves, MOVED when it has; the writer is back at its gate afterwards."""
    with (
        closing(RedisNodes(redis_cluster, time.sleep)) as nodes,
        closing(RedisNodes(redis_cluster, time.sleep)) as own,
    ):
        target, reader, name = RedisMaps(own), RedisMaps(own), "moving"
        epoch = target.fence(name, 1, "open")
        keys = numpy.arange(3_000)
        assert target.write(name, 1, epoch, PackedRows(keys, keys).entries(True))
        plan = LoadPlan(name, "db", "t", "k", "v", True)
        published = Manifest(plan, 1, (1,), "int", "int", 0, 0, 0, buckets=own.buckets)
        gate = b"levada:gate:moving:1:{000}"
        slot, source = key_slot(gate), nodes.line_of(gate)
        goal = next(line for line in nodes.masters() if line is not source)
        _migrate(slot, source, goal, half=True)
        assert target.publish(published)
        found, current = reader.get(published, [encoded_key(int(key), "int") for key in keys])
        assert current
        assert None not in found
        _migrate(slot, source, goal, half=False)
        found, current = reader.get(published, [encoded_key(int(key), "int") for key in keys])
        assert current
        assert None not in found
        epoch = target.fence(name, 2, "open")
        assert target.write(name, 2, epoch, PackedRows(keys, keys).entries(True))


def _migrate(slot: int, source: RedisLine, goal: RedisLine, *, half: bool) -> None:
    ids = {line: line.ask("CLUSTER", "MYID") for line in (source, goal)}
    host, _, port = goal.address.removeprefix("redis://").removesuffix("/0").partition(":")
    goal.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[goal])
    keys: list[Any] = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 10_000)
    for key in keys[: len(keys) // 2] if half else keys:
        source.ask("MIGRATE", host, port, key, 0, 5_000)
    if not half:
        for line in (goal, source):
            line.ask("CLUSTER", "SETSLOT", slot, "NODE", ids[goal])


def test_a_server_that_does_not_speak_as_redis_is_away(redis: str) -> None:
    with closing(RedisLine.at(redis)) as line:
        answer = line.exchange(b"*1\r\n$5\r\nNOPE!\r\n", 1)[0]
    assert isinstance(answer, ResponseError)


@pytest.mark.parametrize(
    "url",
    ["redis://h:port", "redis://h/x", "redis+sentinel://h:1/", "redis+sentinel:///m", "redis+sentinel://h/m/x"],
)
def test_a_wrong_address_is_wrong_usage(url: str) -> None:
    with pytest.raises(UsageError, match="not the address of a Redis"):
        RedisLine.at(url)


def test_without_redis_py_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("levada.bulk.targets.redis")]:
        monkeypatch.delitem(sys.modules, name)
    for missing in ("redis.cluster", "hiredis"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, missing, None)
            with pytest.raises(MissingExtra, match=r"pip install 'levada\[redis\]'"):
                open_maps("redis://127.0.0.1:1/0")


def test_an_option_of_the_address_that_nobody_knows_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="redis://h:6379/0 has an unknown option"):
        RedisLine.at("redis://me:secret@h/0?colour=red")


def test_a_writer_whose_connection_was_cut_does_not_write_without_looking_at_the_gate(redis: str) -> None:
    """WATCH ends with the connection: on a new one the transaction would pass whatever the gate says."""
    with closing(RedisNodes(redis, time.sleep)) as own, closing(RedisLine.at(redis)) as other:
        target, line = RedisMaps(own), own.masters()[0]
        epoch, number = target.fence("cut", 1, "open"), line.ask("CLIENT", "ID")

        class Cutting(PlainEntries):
            def pairs(self) -> Any:
                for place in range(40_000):
                    if place == 39_000:  # two transactions are under way
                        other.ask("CLIENT", "KILL", "ID", number)
                        while other.ask("CLIENT", "LIST", "ID", number):
                            pass
                    yield b"%05d" % place, encoded_values([place], "int")

        with pytest.raises(Away, match="cannot be reached"):
            target.write("cut", 1, epoch, Cutting([], "text"))
        assert target.write("cut", 1, epoch, entries(a=1))


def test_a_line_that_was_cut_while_idle_is_dialled_again(redis: str) -> None:
    with closing(RedisLine.at(redis)) as line, closing(RedisLine.at(redis)) as other:
        number = line.ask("CLIENT", "ID")
        assert isinstance(number, int)
        assert other.ask("CLIENT", "KILL", "ID", number) == 1
        while other.ask("CLIENT", "LIST", "ID", number):  # it is closed a moment later
            pass
        again = line.ask("CLIENT", "ID")
        assert isinstance(again, int)
        assert again > number
