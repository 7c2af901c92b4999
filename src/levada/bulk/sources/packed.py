"""Integer rows as arrays, without a Python object for each.

They give the same rows, digest and bytes as `levada.bulk.entries.PlainRows`, an order of magnitude faster. Entries
with the same number of values have the same length, so each such group is one table of bytes, filled column by
column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from levada.bulk.entries import MASK, ROW, SIGN, DuplicateKey, width_of

Array = Any  # numpy's generic types say nothing more here

_STRETCH = 16_384
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


class PackedRows:
    """Rows of 64-bit integer keys and integer values."""

    def __init__(self, keys: Array, values: Array, null_values: int = 0) -> None:
        self._keys = keys
        self._values = values
        self.null_values = null_values

    def __len__(self) -> int:
        return len(self._keys)

    def digest(self) -> int:
        parts = range(0, len(self._keys), _STRETCH)  # a part that fits the processor's cache is mixed faster
        return sum(self._digest(slice(first, first + _STRETCH)) for first in parts) & MASK

    def _digest(self, part: slice) -> int:
        with np.errstate(over="ignore"):
            keys = _mixed(self._keys[part].astype(np.int64).view(np.uint64))
            values = _mixed(self._values[part].astype(np.int64).view(np.uint64) ^ np.uint64(ROW))
            return int(_mixed(keys * np.uint64(3) + values).sum(dtype=np.uint64))

    def entries(self, collect: bool) -> PackedEntries:
        keys, values = self._in_order()
        starts = np.concatenate(([0], np.flatnonzero(keys[1:] != keys[:-1]) + 1))
        if not collect and len(starts) < len(keys):
            doubled = int(np.flatnonzero(keys[1:] == keys[:-1])[0])
            raise DuplicateKey(int(keys[doubled]))
        return PackedEntries(keys[starts], starts, np.append(starts[1:], len(keys)) - starts, values)

    def _in_order(self) -> tuple[Array, Array]:
        """The rows by key, then value; an index has often sorted them already."""
        keys, values = self._keys, self._values
        same = keys[1:] == keys[:-1]
        if np.all((keys[1:] > keys[:-1]) | (same & (values[1:] >= values[:-1]))):
            return keys, values
        order = np.lexsort((values, keys))
        return keys[order], values[order]


class PackedEntries:
    """Keys, each with a slice of the values."""

    key_kind = "int"

    def __init__(self, keys: Array, starts: Array, counts: Array, values: Array) -> None:
        self.width = width_of(int(values.min()), int(values.max()))
        self._keys = (keys.astype(np.int64).view(np.uint64) ^ np.uint64(SIGN)).astype(">u8")
        self._starts, self._counts = starts, counts
        self._values = values.astype(f"<i{self.width}").view(np.uint8).reshape(-1, self.width)

    def __len__(self) -> int:
        return len(self._keys)

    def pairs(self) -> Sequence[tuple[bytes, bytes]]:
        keys, values, tag = self._keys.tobytes(), self._values.tobytes(), bytes((self.width,))
        spans = zip(self._starts.tolist(), self._counts.tolist(), strict=True)
        return [
            (keys[8 * place : 8 * place + 8], tag + values[start * self.width : (start + count) * self.width])
            for place, (start, count) in enumerate(spans)
        ]

    def strings(self, prefix: bytes, buckets: int) -> Iterator[tuple[int, int, bytes]]:
        """The entries as Redis strings."""
        places = self._buckets(buckets)
        for count in np.flatnonzero(np.bincount(self._counts)).tolist():  # np.unique would import numpy.ma
            chosen = np.flatnonzero(self._counts == count)
            of = places[chosen]
            if buckets > 1:
                order = np.argsort(of, kind="stable")
                chosen, of = chosen[order], of[order]
            table = self._table(chosen, of, count, prefix, buckets)
            edges = [0, *(np.flatnonzero(of[1:] != of[:-1]) + 1).tolist(), len(of)]
            for first, end in pairwise(edges):
                yield from _sliced(int(of[first]), table[first:end])

    def _buckets(self, buckets: int) -> Array:
        if buckets == 1:
            return np.zeros(len(self._keys), np.int64)
        with np.errstate(over="ignore"):
            return (_mixed(self._keys.astype(np.uint64)) % np.uint64(buckets)).astype(np.int64)

    def _table(self, chosen: Array, of: Array, count: int, prefix: bytes, buckets: int) -> Array:
        """One row of bytes per entry, all of one length."""
        size = 1 + count * self.width
        tag = b"{000}" if buckets > 1 else b""
        head = b"$%d\r\n" % (len(prefix) + len(tag) + 8) + prefix + tag
        middle = b"\r\n$%d\r\n" % size + bytes((self.width,))
        whole = head + bytes(8) + middle + bytes(size - 1) + b"\r\n"
        table = np.empty((len(chosen), len(whole)), np.uint8)
        table[:] = np.frombuffer(whole, np.uint8)
        at = len(head)
        if buckets > 1:
            for digit in range(3):
                table[:, at - 4 + digit] = _HEX[(of >> (8 - 4 * digit)) & 15]
        table[:, at : at + 8] = self._keys[chosen].view(np.uint8).reshape(-1, 8)
        at += 8 + len(middle)
        rows = self._starts[chosen][:, None] + np.arange(count)
        table[:, at : at + size - 1] = self._values[rows].reshape(len(chosen), -1)
        return table


def _sliced(bucket: int, table: Array, most: int = 1_000) -> Iterator[tuple[int, int, bytes]]:
    for first in range(0, len(table), most):
        part = table[first : first + most]
        yield bucket, len(part), part.tobytes()


def _mixed(numbers: Array) -> Array:
    """Computes `levada.bulk.entries.mixed`."""
    numbers = (numbers ^ (numbers >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    numbers = (numbers ^ (numbers >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return numbers ^ (numbers >> np.uint64(33))
