"""Groupings by name, built in or a plug-in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from levada.core.plugins import GROUPS, Containment, is_builtin, load
from levada.grouping.basic import KeyGrouping, ShuffleGrouping
from levada.grouping.choices import DChoicesGrouping, PartialKeyGrouping, WChoicesGrouping
from levada.grouping.dynamic import DynamicKeyGrouping, DynamicTextGrouping
from levada.grouping.keys import Hasher, Key, Keys, Workers
from levada.grouping.levelled import LevelledGrouping

METHODS = tuple(GROUPS["levada.groupings"].builtins)
"""The methods that are built in."""


class Grouping(Protocol):
    """Decides for one sender which worker gets a record: one at a time, or many at once."""

    def choose(self, key: Key, now: float) -> int: ...

    def choose_many(self, keys: Keys, now: float) -> Workers: ...


class Hashers(Protocol):
    """The hashes that the methods use: two public ones, and a keyed one."""

    @property
    def first(self) -> Hasher: ...

    @property
    def second(self) -> Hasher: ...

    @property
    def keyed(self) -> Hasher: ...


def shuffle(workers: int, sender: int) -> Grouping:
    return ShuffleGrouping(workers, first=sender)


def partial(workers: int, hashers: Hashers) -> Grouping:
    return PartialKeyGrouping(workers, hashers.first, hashers.second)


def _by_first_hash(method: Callable[[int, Hasher], Grouping]) -> Callable[[int, Hashers], Grouping]:
    return lambda workers, hashers: method(workers, hashers.first)


key = _by_first_hash(KeyGrouping)
dynamic = _by_first_hash(DynamicKeyGrouping)
dynamic_text = _by_first_hash(DynamicTextGrouping)
d_choices = _by_first_hash(DChoicesGrouping)
w_choices = _by_first_hash(WChoicesGrouping)


def levelled(workers: int, hashers: Hashers) -> Grouping:
    return LevelledGrouping(workers, hasher=hashers.keyed)


def grouping_named(
    name: str, workers: int, hashers: Hashers, sender: int = 0, options: Mapping[str, Any] | None = None
) -> Grouping:
    """A fresh sender's method; `sender` counts senders, so that they need not all begin at the same worker."""
    made: Grouping = load("levada.groupings", name, options, workers=workers, hashers=hashers, sender=sender)
    if is_builtin("levada.groupings", name):
        return made
    return ContainedGrouping(name, made, levelled(workers, hashers), workers)


class ContainedGrouping:
    """A plug-in's method: what it does not answer in time with workers that there are, the default decides."""

    def __init__(self, name: str, method: Grouping, default: Grouping, workers: int) -> None:
        self._method, self._default, self._workers = method, default, workers
        self._containment = Containment("levada.groupings", name)

    def choose(self, key: Key, now: float) -> int:
        return self._containment.decide(
            lambda: int(self._checked([self._method.choose(key, now)], 1)[0]),
            lambda: self._default.choose(key, now),
        )

    def choose_many(self, keys: Keys, now: float) -> Workers:
        return self._containment.decide(
            lambda: self._checked(self._method.choose_many(keys, now), len(keys)),
            lambda: self._default.choose_many(keys, now),
        )

    def _checked(self, chosen: Any, count: int) -> Any:
        if len(chosen) != count or not all(0 <= worker < self._workers and worker == int(worker) for worker in chosen):
            raise ValueError(f"not {count} workers from 0 to {self._workers - 1}: {chosen!r:.100}")
        return chosen
