"""The contract of a map, run on every engine: a write fence, one pointer, no mixture of generations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy
import pytest

from levada.bulk.entries import PlainEntries, PlainRows, decoded_values, encoded_key, encoded_values
from levada.bulk.maps import Map
from levada.bulk.protocols import MapReader, MapTarget
from levada.bulk.sources.packed import PackedRows
from levada.bulk.targets.lmdb import LmdbMaps
from levada.bulk.targets.redis import RedisMaps
from levada.bulk.targets.redis_client import RedisNodes
from levada.bulk.tasks import LoadPlan, Manifest
from tests.bulk.memory import MemoryMaps
from tests.manual_clock import ManualClock

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
            yield Maps(RedisMaps(one), RedisMaps(other), name)


def manifest(maps: Maps, generation: int = 1, layers: tuple[int, ...] = (), kind: str = "text") -> Manifest:
    plan = LoadPlan(maps.name, "db", "t", "k", "v", True)
    return Manifest(
        plan, generation, layers or (generation,), kind, "int", 0, 0, 2**64 - 1, buckets=maps.target.buckets
    )


def entries(**pairs: int) -> PlainEntries:
    return PlainEntries([(key.encode(), encoded_values([value], "int")) for key, value in pairs.items()], "text")


def opened(maps: Maps, generation: int = 1) -> int:
    epoch = maps.target.fence(maps.name, generation, "open")
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
    new = maps.target.fence(maps.name, 1, "move")
    assert new > old
    assert maps.target.fence(maps.name, 1, "look") == new
    assert not maps.target.write(maps.name, 1, old, entries(a=1))
    assert maps.target.write(maps.name, 1, new, entries(a=2))
    assert maps.target.fence(maps.name, 1, "open") == new


def test_nobody_writes_into_a_published_generation(maps: Maps) -> None:
    epoch = opened(maps)
    assert maps.target.write(maps.name, 1, epoch, entries(a=1))
    assert maps.target.publish(manifest(maps))
    assert not maps.target.write(maps.name, 1, epoch, entries(a=9))
    assert maps.target.fence(maps.name, 1, "look") == 0
    assert maps.target.fence(maps.name, 1, "move") == 0
    assert maps.target.fence(maps.name, 1, "open") == 0
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


@pytest.mark.parametrize("maps", ["redis", "redis_cluster"], indirect=True)
def test_a_removal_that_is_killed_is_finished_by_the_next(maps: Maps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the entries stay for ever: nothing would know of them."""
    epoch = opened(maps)
    assert maps.target.write(maps.name, 1, epoch, entries(a=1, b=2))
    with monkeypatch.context() as patched:

        def killed(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        patched.setattr("levada.bulk.targets.redis_client.RedisLine.scanned", killed)
        with pytest.raises(KeyboardInterrupt):
            maps.target.remove(maps.name, 1)
    assert maps.reader.generations(maps.name) == [1]
    assert not maps.target.write(maps.name, 1, epoch, entries(c=3))
    assert maps.target.fence(maps.name, 1, "open") == 0
    assert not maps.target.publish(manifest(maps))
    maps.target.remove(maps.name, 1)
    assert maps.reader.generations(maps.name) == []
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


def test_a_manifest_is_what_it_was(maps: Maps) -> None:
    opened(maps)
    odd = msgspec.structs.replace(manifest(maps), newest="2026-01-01 \N{SNOWMAN}", published_at=1.5)
    assert maps.target.publish(odd)
    assert maps.reader.manifest(maps.name) == odd
