"""Places of bodies for tests, and what lies in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

from levada.core.errors import BodiesAway
from levada.core.protocols import Faults
from levada.store.base import Shard, Store, WithBodies
from levada.store.bodies import Bodies
from levada.store.bodies.places import MARKER, FolderPlace, Listed, Place
from levada.store.bodies.references import keyed, references_in
from levada.store.sqlite import SqliteStore
from tests.invariants import check_invariants

__all__ = ["WatchedPlace", "all_texts", "folder_bodies", "keys_in", "keys_named", "whole"]


class WatchedPlace:
    """A place whose writes pass points, and that can be away."""

    def __init__(self, place: Place, faults: Faults | None = None) -> None:
        self._place = place
        self._faults = faults
        self.is_away = False
        self.puts: list[str] = []

    @property
    def name(self) -> str:
        return self._place.name

    def put(self, key: str, content: bytes) -> None:
        self._reach("put.before")
        self._place.put(key, content)
        self.puts.append(key)
        self._reach("put.after")

    def get(self, key: str) -> bytes | None:
        self._reach("get")
        return self._place.get(key)

    def size(self, key: str) -> int | None:
        self._reach("size")
        return self._place.size(key)

    def delete(self, keys: Sequence[str]) -> None:
        self._reach("delete.before")
        self._place.delete(keys)
        self._reach("delete.after")

    def list(self) -> Iterator[list[Listed]]:
        self._reach("list")
        return self._place.list()

    def _reach(self, point: str) -> None:
        if self.is_away:
            raise BodiesAway(f"{self.name} cannot be reached now")
        if self._faults is not None:
            self._faults.reach(point)


def folder_bodies(path: Path, faults: Faults | None = None) -> Bodies:
    """Bodies of every size in a folder, one request at a time."""
    place = FolderPlace(path)
    place.put(MARKER, b"{}")
    return Bodies(WatchedPlace(place, faults), least=0, parallel=1, cache_bytes=0)


def keys_in(bodies: Bodies) -> set[str]:
    return {each.key for listed in bodies.place.list() for each in listed if keyed(each.key)}


def keys_named(store: Store) -> set[str]:
    """The objects that versions name."""
    named: set[str] = set()
    for shard in store.shards:
        ids = [id for id, _ in cast(Shard, shard).urls_after(0, 100_000)]
        named |= {each.key for each in references_in(cast(WithBodies, shard).references(ids))}
    return named


def all_texts(store: Store) -> dict[tuple[str, int], str]:
    """The text of every version; fails if one cannot be read."""
    texts = {}
    for url in store.urls_like("http", 100_000):
        for version in store.versions(url):
            document = store.document(url, version.version)
            assert document is not None
            texts[url, version.version] = document.text
    return texts


def whole(path: Path, bodies: Bodies) -> int:
    """How many versions a store has, all of which can be read."""
    with closing(SqliteStore(path, bodies=bodies)) as store:
        check_invariants(store)
        assert keys_named(store) <= keys_in(bodies)
        return len(all_texts(store))
