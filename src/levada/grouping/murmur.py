"""Which hash did the thesis use? MurmurHash3 x64 128, the first 64 bits, without their sign.

Anybody can compute it, and so aim many keys at one worker; for keys from outside, use `KeyedHash`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from levada.grouping.dictionary import HashDictionary
from levada.grouping.keys import Key, key_bytes

if TYPE_CHECKING:
    from levada.grouping.keys import Hashes, Keys

__all__ = ["MurmurHash", "murmur3_first64"]

_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def murmur3_first64(data: bytes, seed: int) -> int:
    """The first 64 bits of MurmurHash3 x64 128, unsigned."""
    h1 = h2 = seed
    whole = len(data) & ~15
    for start in range(0, whole, 16):
        h1 = ((_rotated(h1 ^ _first(_word(data, start)), 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 = ((_rotated(h2 ^ _second(_word(data, start + 8)), 31) + h1) * 5 + 0x38495AB5) & _MASK
    rest = data[whole:].ljust(16, b"\0")
    h1 ^= _first(_word(rest, 0)) ^ len(data)
    h2 ^= _second(_word(rest, 8)) ^ len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    return (_finished(h1) + _finished(h2)) & _MASK


def _word(data: bytes, start: int) -> int:
    return int.from_bytes(data[start : start + 8], "little")


def _rotated(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (64 - bits))) & _MASK


def _first(word: int) -> int:
    return _rotated(word * _C1 & _MASK, 31) * _C2 & _MASK


def _second(word: int) -> int:
    return _rotated(word * _C2 & _MASK, 33) * _C1 & _MASK


def _finished(word: int) -> int:
    word ^= word >> 33
    word = word * 0xFF51AFD7ED558CCD & _MASK
    word ^= word >> 33
    word = word * 0xC4CEB9FE1A85EC53 & _MASK
    return word ^ (word >> 33)


class MurmurHash:
    """Seed 13 for the first choice and 17 for the second, as in Storm's partial key grouping."""

    def __init__(self, seed: int = 13) -> None:
        self.seed = seed
        self._known = HashDictionary(self._hash)

    def of(self, key: Key) -> int:
        return self._known[key]

    def many(self, keys: Keys) -> Hashes:
        return self._known.many(keys)

    def _hash(self, key: Key) -> int:
        word = murmur3_first64(key_bytes(key), self.seed)
        return word if word < 1 << 63 else (1 << 64) - word  # Java's Math.abs
