"""Reading the maps that `levada load` wrote.

    with Map.open("redis://localhost:6379/0", "categories") as categories:
        categories.get(905321234567)              # [3, 17, 41]
        categories.get_many([905321234567, 1])    # [[3, 17, 41], None]

A near cache holds recent answers. It belongs to one generation and is emptied when another one is published. All
answers of one call come from one generation. Threads may share a map.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, Self

from levada.bulk.engines import open_reader, redacted
from levada.bulk.entries import decoded_values, encoded_key
from levada.bulk.protocols import MapReader
from levada.bulk.tasks import Manifest, checked_name
from levada.core.clock import SystemClock
from levada.core.errors import LevadaError, NotFound
from levada.core.protocols import Clock

_TRIES = 20
_ABSENT = object()


class Map:
    """A published map. The near cache holds at most `near` answers, and gives them for `fresh` seconds without
    checking for a newer generation."""

    def __init__(
        self, reader: MapReader, name: str, where: str, *, near: int = 10_000, fresh: float = 1.0, clock: Clock
    ) -> None:
        self._reader, self._name, self._where, self._clock = reader, name, where, clock
        self._room, self._fresh = near, fresh
        self._near: dict[int | str, Any] = {}
        self._lock = Lock()  # a connection carries one query at a time
        self._until = 0.0
        self._manifest = self._published()

    @classmethod
    def open(cls, url: str, name: str, *, near: int = 10_000, fresh: float = 1.0) -> Self:
        """Open a map; `NotFound` if nothing is published under this name."""
        reader = open_reader(url)
        try:
            return cls(reader, checked_name(name), redacted(url), near=near, fresh=fresh, clock=SystemClock())
        except LevadaError:
            reader.close()
            raise

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    def get(self, key: int | str) -> Any:
        """The value, or the list of values if they were collected; None if there is no such key."""
        if self._clock.monotonic() < self._until:
            answer = self._near.get(key, _ABSENT)
            if answer is not _ABSENT:
                return answer
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[int | str]) -> list[Any]:
        with self._lock:
            if self._clock.monotonic() < self._until and all(key in self._near for key in keys):
                return [self._near[key] for key in keys]
            return self._query(keys)

    def _query(self, keys: Sequence[int | str]) -> list[Any]:
        for _ in range(_TRIES):
            manifest = self._manifest
            found, current = self._reader.get(manifest, [encoded_key(key, manifest.key_kind) for key in keys])
            if current:
                answers = [self._decoded(value) for value in found]
                self._remember(keys, answers)
                return answers
            self._near.clear()
            self._manifest = self._published()
        raise LevadaError(f"map {self._name} changes faster than it can be read")

    def close(self) -> None:
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decoded(self, value: bytes | None) -> Any:
        if value is None:
            return None
        values = decoded_values(value, self._manifest.value_kind)
        return values if self._manifest.plan.collect else values[0]

    def _remember(self, keys: Sequence[int | str], answers: Sequence[Any]) -> None:
        """Remember answers and drop the oldest. Changing a returned list changes only this near cache."""
        self._until = self._clock.monotonic() + self._fresh
        for key, answer in zip(keys, answers, strict=True):
            self._near.pop(key, None)
            self._near[key] = answer
        while len(self._near) > self._room:
            del self._near[next(iter(self._near))]

    def _published(self) -> Manifest:
        manifest = self._reader.manifest(self._name)
        if manifest is None:
            raise NotFound(f"no map {self._name} is published in {self._where}")
        return manifest
