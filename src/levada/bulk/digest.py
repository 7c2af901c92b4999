"""Do two places hold the same rows, whatever their order?

Each row (key, value) becomes a 64-bit number; the digest is their sum modulo 2^64, so tasks can be added up in any
order and a row that is missing, doubled or changed shows. It guards against accidents, not against enemies. The
arithmetic is MurmurHash3's finaliser, which arrays can do as well (`levada.adapters.bulk.packed`).
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec

__all__ = ["MASK", "ROW", "mixed", "number_of", "row_digest", "rows_digest"]

MASK = (1 << 64) - 1
ROW = 0x9E3779B97F4A7C15  # so that (a, b) and (b, a) differ


def mixed(number: int) -> int:
    """All bits of a 64-bit number, stirred."""
    number &= MASK
    number = ((number ^ (number >> 33)) * 0xFF51AFD7ED558CCD) & MASK
    number = ((number ^ (number >> 33)) * 0xC4CEB9FE1A85EC53) & MASK
    return number ^ (number >> 33)


def number_of(value: Any) -> int:
    """Of an integer of 64 bits itself; of anything else, a hash of how it is written."""
    if isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63:
        return value & MASK
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else msgspec.msgpack.encode(value)
    return int.from_bytes(blake2b(data, digest_size=8, person=b"levada row").digest(), "little")


def row_digest(key: Any, value: Any) -> int:
    return mixed(mixed(number_of(key)) * 3 + mixed(number_of(value) ^ ROW))


def rows_digest(rows: Iterable[tuple[Any, Any]]) -> int:
    return sum(row_digest(key, value) for key, value in rows) & MASK
