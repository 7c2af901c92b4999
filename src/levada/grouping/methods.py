"""Which method is meant by this name?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from levada.errors import UsageError
from levada.grouping.d_choices import DChoicesGrouping
from levada.grouping.dynamic import DynamicKeyGrouping
from levada.grouping.dynamic_text import DynamicTextGrouping
from levada.grouping.key import KeyGrouping
from levada.grouping.keys import Hasher, Key
from levada.grouping.levelled import LevelledGrouping
from levada.grouping.partial import PartialKeyGrouping
from levada.grouping.shuffle import ShuffleGrouping
from levada.grouping.w_choices import WChoicesGrouping

if TYPE_CHECKING:
    from levada.grouping.keys import Keys, Workers

__all__ = ["METHODS", "Grouping", "Hashers", "grouping_named"]

METHODS = ("shuffle", "key", "partial", "dynamic", "dynamic-text", "d-choices", "w-choices", "levelled")


class Grouping(Protocol):
    """Decides for one sender which worker gets a record: one by one, or by the array."""

    def choose(self, key: Key, now: float) -> int: ...

    def choose_many(self, keys: Keys, now: float) -> Workers: ...


class Hashers(Protocol):
    """The hashes that methods are made with: two that anybody knows, and a keyed one."""

    @property
    def first(self) -> Hasher: ...

    @property
    def second(self) -> Hasher: ...

    @property
    def keyed(self) -> Hasher: ...


def grouping_named(name: str, workers: int, hashers: Hashers, sender: int = 0) -> Grouping:
    """A fresh sender's method; `sender` counts senders, so that they need not all begin at the same worker."""
    match name:
        case "shuffle":
            return ShuffleGrouping(workers, first=sender)
        case "key":
            return KeyGrouping(workers, hashers.first)
        case "partial":
            return PartialKeyGrouping(workers, hashers.first, hashers.second)
        case "dynamic":
            return DynamicKeyGrouping(workers, hashers.first)
        case "dynamic-text":
            return DynamicTextGrouping(workers, hashers.first)
        case "d-choices":
            return DChoicesGrouping(workers, hashers.first)
        case "w-choices":
            return WChoicesGrouping(workers, hashers.first)
        case "levelled":
            return LevelledGrouping(workers, hasher=hashers.keyed)
    raise UsageError(f"no grouping is called {name!r}: one of {', '.join(METHODS)}")
