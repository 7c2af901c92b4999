"""How do many texts become one row of bytes, quickly?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from levada.grouping.keys import key_bytes

if TYPE_CHECKING:
    from levada.grouping.keys import Keys

__all__ = ["packed"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


def packed(keys: Keys) -> tuple[Bytes, Integers] | None:
    """All bytes, and how many belong to each key; None if not all keys are text, or not all bytes."""
    if isinstance(keys, np.ndarray) or not len(keys):
        return None
    row: Sequence[Any] = keys
    try:
        if isinstance(row[0], str):
            text = "".join(row)
            if text.isascii():
                return _with_lengths(text.encode(), row)
            row = [key_bytes(key) for key in row]
        return _with_lengths(b"".join(row), row)
    except TypeError:
        return None


def _with_lengths(together: bytes, row: Sequence[Any]) -> tuple[Bytes, Integers]:
    return np.frombuffer(together, np.uint8), np.fromiter(map(len, row), np.int64, len(row))
