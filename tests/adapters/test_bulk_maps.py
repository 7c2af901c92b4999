"""The law of a map, on every engine: a gate, one pointer, nothing mixed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy
import pytest

from levada.adapters.bulk.lmdb_maps import LmdbMaps
from levada.adapters.bulk.memory import MemoryMaps
from levada.adapters.bulk.packed import PackedRows
from levada.adapters.bulk.redis_nodes import RedisNodes, slot_of
from levada.adapters.bulk.redis_reader import RedisReader
from levada.adapters.bulk.redis_target import RedisTarget
from levada.adapters.bulk.resp import RedisError, RedisLine, redis_address
from levada.assemble.maps import Map
from levada.bulk.collecting import PlainEntries, PlainRows
from levada.bulk.encoding import decoded_values, encoded_key, encoded_values
from levada.bulk.generations import LoadPlan, Manifest
from levada.bulk.ports import MapReader, MapTarget
from levada.clock import ManualClock
from levada.errors import NotFound, StoreDamaged, StoreError, StoreFull, UsageError

pytest_plugins = ["tests.servers.fixtures"]

_names = count(1)


class Maps(NamedTuple):
    target: MapTarget
    reader: MapReader
    name: str


@pytest.fixture(params=["memory", "lmdb", "redis", "redis_cluster"])
def maps(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Maps]:
    name = f"map-{next(_names)}"
    if request.param == "memory":
        memory = MemoryMaps()
        yield Maps(memory, memory, name)
    elif request.param == "lmdb":
        with closing(LmdbMaps(tmp_path)) as files:
            yield Maps(files, files, name)
    else:
        url = request.getfixturevalue(request.param)
        with closing(RedisNodes(url, time.sleep)) as one, closing(RedisNodes(url, time.sleep)) as other:
            yield Maps(RedisTarget(one), RedisReader(other), name)


def manifest(maps: Maps, generation: int = 1, layers: tuple[int, ...] = (), kind: str = "text") -> Manifest:
    plan = LoadPlan(maps.name, "db", "t", "k", "v", True)
    return Manifest(
        plan, generation, layers or (generation,), kind, "int", 0, 0, 2**64 - 1, buckets=maps.target.buckets
    )


def entries(**pairs: int) -> PlainEntries:
    return PlainEntries([(key.encode(), encoded_values([value], "int")) for key, value in pairs.items()], "text")


def opened(maps: Maps, generation: int = 1) -> int:
    epoch = maps.target.gate(maps.name, generation, "open")
    assert epoch
    return epoch


def seen(maps: Maps, published: Manifest, *keys: str) -> list[int | None]:
    found, current = maps.reader.get(published, [key.encode() for key in keys])
    assert current
    return [None if value is None else decoded_values(value, "int")[0] for value in found]


def test_what_is_written_is_read_once_it_is_published(maps: Maps) -> None:
    assert maps.reader.manifest(maps.name) is None
    assert maps.target.write(maps.name, 1, opened(maps), entries(a=1, b=2))
    assert maps.reader.manifest(maps.name) is None
    assert maps.target.publish(manifest(maps))
    published = maps.reader.manifest(maps.name)
    assert published == manifest(maps)
    assert seen(maps, published, "a", "b", "c") == [1, 2, None]
    assert {key for key, _ in maps.reader.entries(maps.name, 1)} == {b"a", b"b"}


def test_a_gate_that_moved_keeps_older_writers_out(maps: Maps) -> None:
    old = opened(maps)
    new = maps.target.gate(maps.name, 1, "move")
    assert new > old
    assert maps.target.gate(maps.name, 1, "look") == new
    assert not maps.target.write(maps.name, 1, old, entries(a=1))
    assert maps.target.write(maps.name, 1, new, entries(a=2))
    assert maps.target.gate(maps.name, 1, "open") == new


def test_nobody_writes_into_a_published_generation(maps: Maps) -> None:
    epoch = opened(maps)
    assert maps.target.write(maps.name, 1, epoch, entries(a=1))
    assert maps.target.publish(manifest(maps))
    assert not maps.target.write(maps.name, 1, epoch, entries(a=9))
    assert maps.target.gate(maps.name, 1, "look") == 0
    assert maps.target.gate(maps.name, 1, "move") == 0
    assert maps.target.gate(maps.name, 1, "open") == 0
    assert seen(maps, manifest(maps), "a") == [1]
    assert maps.target.publish(manifest(maps))  # again, by another who saw that all was done


def test_an_older_generation_is_not_published_over_a_newer_one(maps: Maps) -> None:
    opened(maps, 1)
    opened(maps, 2)
    assert maps.target.publish(manifest(maps, 2))
    assert not maps.target.publish(manifest(maps, 1))
    assert maps.reader.manifest(maps.name) == manifest(maps, 2)


def test_a_removed_generation_is_gone_and_cannot_be_written_or_published(maps: Maps) -> None:
    epoch = opened(maps)
    assert maps.target.write(maps.name, 1, epoch, entries(a=1))
    assert maps.reader.generations(maps.name) == [1]
    maps.target.remove(maps.name, 1)
    assert maps.reader.generations(maps.name) == []
    assert not maps.target.write(maps.name, 1, epoch, entries(a=1))
    assert not maps.target.publish(manifest(maps))
    assert list(maps.reader.entries(maps.name, 1)) == []


def test_a_published_generation_cannot_be_removed(maps: Maps) -> None:
    assert maps.target.write(maps.name, 1, opened(maps), entries(a=1))
    assert maps.target.publish(manifest(maps))
    maps.target.remove(maps.name, 1)
    assert seen(maps, manifest(maps), "a") == [1]


def test_a_reader_learns_that_another_generation_was_published(maps: Maps) -> None:
    for generation in (1, 2):
        epoch = opened(maps, generation)
        assert maps.target.write(maps.name, generation, epoch, entries(a=generation))
        assert maps.target.publish(manifest(maps, generation))
    _, current = maps.reader.get(manifest(maps, 1), [b"a"])
    assert not current
    assert seen(maps, manifest(maps, 2), "a") == [2]


def test_a_newer_layer_lies_over_the_older_ones(maps: Maps) -> None:
    assert maps.target.write(maps.name, 1, opened(maps, 1), entries(a=1, b=1))
    assert maps.target.publish(manifest(maps, 1))
    assert maps.target.write(maps.name, 2, opened(maps, 2), entries(b=2, c=2))
    layered = manifest(maps, 2, (2, 1))
    assert maps.target.publish(layered)
    assert seen(maps, layered, "a", "b", "c", "d") == [1, 2, 2, None]
    maps.target.remove(maps.name, 1)
    assert seen(maps, layered, "a") == [1]


def test_arrays_and_single_rows_are_stored_alike(maps: Maps) -> None:
    keys = [*range(-1_500, 1_500), 2**63 - 1, -(2**63), 2**53 + 1, *range(5)]
    values = [key % 7 for key in keys]
    packed = PackedRows(numpy.array(keys, numpy.int64), numpy.array(values, numpy.int64)).entries(True)
    plain = PlainRows(keys, values, ("int", "int")).entries(True)
    assert maps.target.write(maps.name, 1, opened(maps, 1), packed)
    assert maps.target.write(maps.name, 2, opened(maps, 2), plain)
    first, second = dict(maps.reader.entries(maps.name, 1)), dict(maps.reader.entries(maps.name, 2))
    assert first == second == dict(plain.pairs())
    assert maps.target.publish(manifest(maps, 2, kind="int"))
    found, _ = maps.reader.get(manifest(maps, 2, kind="int"), [encoded_key(2**53 + 1, "int")])
    assert decoded_values(found[0] or b"", "int") == [(2**53 + 1) % 7]


def test_any_text_is_a_key(maps: Maps) -> None:
    keys = [
        "",
        " ",
        "{a}",
        "}{",
        "ключ",
        "\N{SNOWMAN}\u0000x",
        "\U0001f600",
        "x" * 5_000,
        "x" * 4_999 + "y",
        "*",
        "a\r\nb",
    ]
    pairs = PlainEntries([(key.encode(), encoded_values([place], "int")) for place, key in enumerate(keys)], "text")
    assert maps.target.write(maps.name, 1, opened(maps), pairs)
    assert maps.target.publish(manifest(maps))
    assert seen(maps, manifest(maps), *keys) == list(range(len(keys)))
    assert dict(maps.reader.entries(maps.name, 1)) == dict(pairs.pairs())


def test_the_library_answers_from_one_generation_and_forgets_with_it(maps: Maps) -> None:
    assert maps.target.write(maps.name, 1, opened(maps, 1), entries(a=1, b=1))
    assert maps.target.publish(manifest(maps, 1))
    clock = ManualClock(50.0)
    library = Map(maps.reader, maps.name, "here", near=2, fresh=1.0, clock=clock)
    assert library.get("a") == [1]
    assert library.get_many(["a", "b", "z"]) == [[1], [1], None]
    assert maps.target.write(maps.name, 2, opened(maps, 2), entries(a=2, b=2))
    assert maps.target.publish(manifest(maps, 2))
    maps.target.remove(maps.name, 1)
    assert library.get("b") == [1]  # near, and still fresh
    assert library.get_many(["a", "b"]) == [[2], [2]]  # one of them had to be asked: then both are new
    clock.advance(2.0)
    assert library.get("b") == [2]
    assert library.manifest.generation == 2


def test_a_map_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no map nothing is published in"):
        Map.open(str(tmp_path), "nothing")
    with pytest.raises(UsageError, match="is no name for a map"):
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
        late.gate("shared", 2, "open")


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "data.mdb").write_bytes(b"something else" * 1_000)
    with pytest.raises(StoreDamaged, match="is no map that can be opened"):
        Map.open(str(tmp_path), "shared")


def test_a_full_redis_says_so(redis: str) -> None:
    with closing(RedisLine(redis_address(redis))) as line, closing(RedisNodes(redis, time.sleep)) as nodes:
        target = RedisTarget(nodes)
        epoch = target.gate("crowded", 1, "open")
        line.ask("CONFIG", "SET", "maxmemory", 1)
        try:
            with pytest.raises(StoreFull, match="is full"):
                target.write("crowded", 1, epoch, entries(a=1))
        finally:
            line.ask("CONFIG", "SET", "maxmemory", 0)
        assert target.write("crowded", 1, epoch, entries(a=1))


def test_a_slot_is_found_as_the_cluster_finds_it(redis_cluster: str) -> None:
    with closing(RedisLine(redis_address(redis_cluster))) as line:
        for key in (b"a", b"{a}b", b"{}b", b"x{a", b"x}{y}z", b"levada:map:m:1:{1ff}\x80{}", b""):
            assert slot_of(key) == line.ask("CLUSTER", "KEYSLOT", key)


def test_a_slot_on_the_move_is_followed(redis_cluster: str) -> None:
    """ASK while it moves, MOVED when it has; the writer is back at its gate afterwards."""
    with (
        closing(RedisNodes(redis_cluster, time.sleep)) as nodes,
        closing(RedisNodes(redis_cluster, time.sleep)) as own,
    ):
        target, reader, name = RedisTarget(own), RedisReader(own), "moving"
        epoch = target.gate(name, 1, "open")
        keys = numpy.arange(3_000)
        assert target.write(name, 1, epoch, PackedRows(keys, keys).entries(True))
        plan = LoadPlan(name, "db", "t", "k", "v", True)
        published = Manifest(plan, 1, (1,), "int", "int", 0, 0, 0, buckets=own.buckets)
        gate = b"levada:gate:moving:1:{000}"
        slot, source = slot_of(gate), nodes.line_of(gate)
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
        epoch = target.gate(name, 2, "open")
        assert target.write(name, 2, epoch, PackedRows(keys, keys).entries(True))


def _migrate(slot: int, source: RedisLine, goal: RedisLine, *, half: bool) -> None:
    ids = {line: line.ask("CLUSTER", "MYID") for line in (source, goal)}
    goal.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[goal])
    keys: list[Any] = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 10_000)
    for key in keys[: len(keys) // 2] if half else keys:
        source.ask("MIGRATE", goal.address.host, goal.address.port, key, 0, 5_000)
    if not half:
        for line in (goal, source):
            line.ask("CLUSTER", "SETSLOT", slot, "NODE", ids[goal])


def test_a_server_that_does_not_speak_as_redis_is_away(redis: str) -> None:
    with closing(RedisLine(redis_address(redis))) as line:
        answer = line.exchange(b"*1\r\n$5\r\nNOPE!\r\n", 1)[0]
    assert isinstance(answer, RedisError)


@pytest.mark.parametrize("url", ["redis://h:port", "redis://h/x"])
def test_a_wrong_address_is_wrong_usage(url: str) -> None:
    with pytest.raises(UsageError, match="no address of a Redis"):
        redis_address(url)


def test_a_manifest_is_what_it_was(maps: Maps) -> None:
    opened(maps)
    odd = msgspec.structs.replace(manifest(maps), newest="2026-01-01 \N{SNOWMAN}", published_at=1.5)
    assert maps.target.publish(odd)
    assert maps.reader.manifest(maps.name) == odd


def test_a_line_that_was_cut_while_idle_is_dialled_again(redis: str) -> None:
    with closing(RedisLine(redis_address(redis))) as line, closing(RedisLine(redis_address(redis))) as other:
        number = line.ask("CLIENT", "ID")
        assert isinstance(number, int)
        assert other.ask("CLIENT", "KILL", "ID", number) == 1
        while other.ask("CLIENT", "LIST", "ID", number):  # it is closed a moment later
            pass
        again = line.ask("CLIENT", "ID")
        assert isinstance(again, int)
        assert again > number
