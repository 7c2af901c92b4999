"""Hashes of many keys at once, in compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from levada.core.compile_cache import kernel

if TYPE_CHECKING:
    from levada.grouping.keys import Hashes, Keys


Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


def packed(keys: Keys) -> tuple[Bytes, Integers] | None:
    """All bytes, and the length of each key; None unless all keys are text, or all are bytes."""
    if isinstance(keys, np.ndarray) or not len(keys):
        return None
    row: Sequence[Any] = keys
    try:
        if isinstance(row[0], str):
            text = "".join(row)
            if text.isascii():
                return _with_lengths(text.encode(), row)
            row = [key.encode("utf-8", "surrogatepass") for key in row]  # as `key_bytes`
        return _with_lengths(b"".join(row), row)
    except TypeError:
        return None


def _with_lengths(together: bytes, row: Sequence[Any]) -> tuple[Bytes, Integers]:
    return np.frombuffer(together, np.uint8), np.fromiter(map(len, row), np.int64, len(row))


_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_PRIME = np.uint64((1 << 61) - 1)
_61, _3, _8 = np.uint64(61), np.uint64(3), np.uint64(8)
_NONE = np.uint64(0)


def hash_words(keys: np.ndarray[Any, np.dtype[np.integer[Any]]], factor: int, term: int) -> Hashes:
    """The upper half of `factor * key + term` modulo 2^128, mixed."""
    words = np.ascontiguousarray(keys).astype(np.uint64, copy=False)
    hashes = np.empty(len(words), np.uint64)
    _mix(words, _halves(factor), _halves(term), hashes)
    return hashes


def hash_packed(data: Bytes, lengths: Integers, point: int, factor: int, term: int) -> Hashes:
    """Hashes of keys whose bytes follow one another; those of long keys are not valid."""
    words = np.empty(len(lengths), np.uint64)
    _evaluate(data, lengths, np.uint64(point), words)
    return hash_words(words, factor, term)


def _halves(number: int) -> Hashes:
    return np.array([number & (2**64 - 1), number >> 64], np.uint64)


@kernel
def _upper(one: np.uint64, other: np.uint64) -> np.uint64:
    """The upper 64 bits of a product, by schoolbook multiplication."""
    one_0, one_1 = one & _LOW, one >> _HALF
    other_0, other_1 = other & _LOW, other >> _HALF
    middle = one_1 * other_0 + ((one_0 * other_0) >> _HALF)
    rest = one_0 * other_1 + (middle & _LOW)
    return one_1 * other_1 + (middle >> _HALF) + (rest >> _HALF)


@kernel
def _mix(words: Hashes, factor: Hashes, term: Hashes, hashes: Hashes) -> None:
    low, high = factor[0], factor[1]
    for place in range(len(words)):
        word = words[place]
        lower = low * word
        carry = np.uint64(lower + term[0] < lower)
        mixed = _upper(low, word) + high * word + term[1] + carry
        mixed ^= mixed >> _HALF
        mixed *= _MIX
        hashes[place] = mixed ^ (mixed >> _HALF)


@kernel
def _evaluate(data: Bytes, lengths: Integers, point: np.uint64, words: Hashes) -> None:
    start = 0
    for place in range(len(lengths)):
        end = start + lengths[place]
        value = np.uint64(lengths[place] + 1)
        if lengths[place] > 64:
            words[place], start = _NONE, end
            continue
        while start < end:
            stop = min(start + 7, end)
            word = _NONE
            for byte in range(stop - 1, start - 1, -1):
                word = (word << _8) | np.uint64(data[byte])
            # 2^61 is 1 modulo the prime: what is above bit 61 is added to what is below.
            lower = value * point
            value = (lower & _PRIME) + ((lower >> _61) | (_upper(value, point) << _3)) + word
            value = (value & _PRIME) + (value >> _61)
            if value >= _PRIME:
                value -= _PRIME
            start = stop
        words[place] = value
