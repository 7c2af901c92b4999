"""How is a key that comes again and again hashed only once, in bounded memory?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from levada.grouping.keys import Key

if TYPE_CHECKING:
    from levada.grouping.keys import Hashes, Keys

__all__ = ["HashDictionary", "Remembered"]

_MOST_KEYS = 1 << 16
_LONGEST_KEY = 256  # a longer one is computed each time, so that 10 MB keys are not kept

Value = TypeVar("Value")


class Remembered(dict[Key, Value]):
    """What `compute` says of a key; forgets all of it when it holds too many."""

    def __init__(self, compute: Callable[[Key], Value]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: Key) -> Value:
        value = self._compute(key)
        if isinstance(key, int) or len(key) <= _LONGEST_KEY:
            if len(self) >= _MOST_KEYS:
                self.clear()
            self[key] = value
        return value


class HashDictionary(Remembered[int]):
    """Hashes, singly and by the array."""

    def many(self, keys: Keys) -> Hashes:
        import numpy as np

        if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
            each, place = np.unique(keys, return_inverse=True)
            return np.fromiter(map(self.__getitem__, each.tolist()), np.uint64, len(each))[place]
        return np.fromiter(map(self.__getitem__, keys), np.uint64, len(keys))
