"""What is a key, and which bytes stand for it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Hashes: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
    Workers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
    Weights: TypeAlias = Sequence[float] | np.ndarray[Any, np.dtype[np.float64]]
    Keys: TypeAlias = Sequence[bytes | str | int] | np.ndarray[Any, np.dtype[np.integer[Any]]]

__all__ = ["Hasher", "Key", "key_bytes", "whole_workers"]

Key: TypeAlias = bytes | str | int
_WORD = 1 << 63


class Hasher(Protocol):
    """A number from 0 to 2^64 - 1 for a key, the same at every sender."""

    def of(self, key: Key) -> int: ...

    def many(self, keys: Keys) -> Hashes: ...


def key_bytes(key: Key) -> bytes:
    """Text as UTF-8 (lone surrogates included), whole numbers as eight bytes, or more if they need them."""
    if isinstance(key, bytes):
        return key
    if isinstance(key, str):
        return key.encode("utf-8", "surrogatepass")
    if isinstance(key, int):
        size = 8 if -_WORD <= key < _WORD else key.bit_length() // 8 + 1
        return key.to_bytes(size, "little", signed=True)
    raise TypeError(f"a key is bytes, str or int, not {type(key).__name__}")


def whole_workers(workers: int) -> int:
    """`workers`, if that many can share a stream."""
    if workers < 1:
        raise ValueError(f"a stream needs at least one worker, not {workers}")
    return workers
