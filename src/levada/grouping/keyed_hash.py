"""Which hash cannot be aimed at one worker by an outsider?

Whole numbers: the upper half of `a x + b` modulo 2^128 with `a` and `b` from the secret (Dietzfelbinger, 1996:
strongly universal, so that keys picked without knowing it fall as independently as random ones, pair by pair), then
a mixing that loses nothing. Text and bytes: read as the coefficients of a polynomial, seven bytes each, taken at a
secret point modulo 2^61 - 1 (two keys of n coefficients meet with a chance of n / 2^61), then the same. Long keys:
BLAKE2b. All senders share the secret.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from levada.grouping.dictionary import HashDictionary
from levada.grouping.keys import Key, key_bytes

if TYPE_CHECKING:
    from levada.grouping.keys import Hashes, Keys

__all__ = ["LONG_KEY", "KeyedHash"]

LONG_KEY = 64  # bytes; what is longer is not worth a loop
_MASK = (1 << 64) - 1
_PRIME = (1 << 61) - 1


class KeyedHash:
    """`secret`: any bytes, the same at every sender; sixteen random ones are plenty."""

    def __init__(self, secret: bytes) -> None:
        if not secret:
            raise ValueError("the secret of a keyed hash must not be empty")
        self._secret = blake2b(secret, digest_size=32, person=b"levada keys").digest()
        numbers = blake2b(secret, digest_size=40, person=b"levada numbers").digest()
        self._factor = int.from_bytes(numbers[:16], "little") | 1
        self._term = int.from_bytes(numbers[16:32], "little")
        self._point = int.from_bytes(numbers[32:], "little") % _PRIME
        self._known = HashDictionary(self._hash)

    def of(self, key: Key) -> int:
        return self._known[key]

    def many(self, keys: Keys) -> Hashes:
        import numpy as np

        if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
            from levada.grouping.batch_hash import hash_words

            return hash_words(keys, self._factor, self._term)
        from levada.grouping.packing import packed

        together = packed(keys)
        if together is None:
            return self._known.many(keys)
        from levada.grouping.batch_hash import hash_packed

        hashes = hash_packed(*together, self._point, self._factor, self._term)
        for place in np.flatnonzero(together[1] > LONG_KEY).tolist():
            hashes[place] = self._hash(keys[place])
        return hashes

    def _hash(self, key: Key) -> int:
        if isinstance(key, int) and -(1 << 63) <= key < 1 << 64:
            return self._stirred(key & _MASK)
        data = key_bytes(key)
        if len(data) > LONG_KEY:
            return int.from_bytes(blake2b(data, digest_size=8, key=self._secret).digest(), "little")
        value = len(data) + 1
        for start in range(0, len(data), 7):
            value = (value * self._point + int.from_bytes(data[start : start + 7], "little")) % _PRIME
        return self._stirred(value)

    def _stirred(self, word: int) -> int:
        word = ((self._factor * word + self._term) >> 64) & _MASK
        word ^= word >> 32
        word = word * 0xD6E8FEB86659FD93 & _MASK
        return word ^ (word >> 32)
