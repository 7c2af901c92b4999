"""Keys of records, the bytes that stand for them, and their hashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy as np

    Hashes: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
    Workers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
    Weights: TypeAlias = Sequence[float] | np.ndarray[Any, np.dtype[np.float64]]
    Keys: TypeAlias = Sequence[bytes | str | int] | np.ndarray[Any, np.dtype[np.integer[Any]]]
else:  # numpy is imported only where it is used
    Hashes = Workers = Weights = Keys = Any
Key: TypeAlias = bytes | str | int
_WORD = 1 << 63


class Hasher(Protocol):
    """A number from 0 to 2^64 - 1 for a key, the same at every sender."""

    def of(self, key: Key) -> int: ...

    def many(self, keys: Keys) -> Hashes: ...


def key_bytes(key: Key) -> bytes:
    """Text as UTF-8 (lone surrogates included), whole numbers as eight bytes, or more if needed."""
    if isinstance(key, bytes):
        return key
    if isinstance(key, str):
        return key.encode("utf-8", "surrogatepass")
    if isinstance(key, int):
        size = 8 if -_WORD <= key < _WORD else key.bit_length() // 8 + 1
        return key.to_bytes(size, "little", signed=True)
    raise TypeError(f"a key is bytes, str or int, not {type(key).__name__}")


def whole_workers(workers: int) -> int:
    """`workers`, if that is a valid number of workers."""
    if workers < 1:
        raise ValueError(f"a stream needs at least one worker, not {workers}")
    return workers


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


_MOST_KEYS = 1 << 16
_LONGEST_KEY = 256  # a longer key is hashed each time, so that 10 MB keys are not kept
Value = TypeVar("Value")


class KeyCache(dict[Key, Value]):
    """Cache of `compute(key)`; emptied when it is full."""

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


class _CachedHash:
    """Hashes of one key or of many, each computed once."""

    def __init__(self) -> None:
        self._known = KeyCache(self._hash)

    def _hash(self, key: Key) -> int:
        raise NotImplementedError

    def of(self, key: Key) -> int:
        return self._known[key]

    def many(self, keys: Keys) -> Hashes:
        import numpy as np

        if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
            each, place = np.unique(keys, return_inverse=True)
            return np.fromiter(map(self._known.__getitem__, each.tolist()), np.uint64, len(each))[place]
        return np.fromiter(map(self._known.__getitem__, keys), np.uint64, len(keys))


class MurmurHash(_CachedHash):
    """Storm's hash: seed 13 for the first choice and 17 for the second, as in its partial key grouping.

    Anybody can compute it, and so aim many keys at one worker. For keys from outside, use `KeyedHash`.
    """

    def __init__(self, seed: int = 13) -> None:
        self.seed = seed
        super().__init__()

    def _hash(self, key: Key) -> int:
        word = murmur3_first64(key_bytes(key), self.seed)
        return word if word < 1 << 63 else (1 << 64) - word  # Java's Math.abs


LONG_KEY = 64  # bytes; longer keys are hashed with BLAKE2b
_PRIME = (1 << 61) - 1


class KeyedHash(_CachedHash):
    """A hash that outsiders cannot aim. `secret`: any bytes, the same at every sender; 16 random ones are enough.

    Whole numbers: the upper half of `a x + b` modulo 2^128 with `a` and `b` from the secret (Dietzfelbinger, 1996:
    strongly universal, so that keys picked without the secret are pairwise independent), then a mix that loses
    nothing. Text and bytes: the coefficients of a polynomial, seven bytes each, at a secret point modulo 2^61 - 1
    (two keys of n coefficients are equal with probability n / 2^61), then the same. Long keys: BLAKE2b.
    """

    def __init__(self, secret: bytes) -> None:
        if not secret:
            raise ValueError("the secret of a keyed hash must not be empty")
        self._secret = blake2b(secret, digest_size=32, person=b"levada keys").digest()
        numbers = blake2b(secret, digest_size=40, person=b"levada numbers").digest()
        self._factor = int.from_bytes(numbers[:16], "little") | 1
        self._term = int.from_bytes(numbers[16:32], "little")
        self._point = int.from_bytes(numbers[32:], "little") % _PRIME
        super().__init__()

    def many(self, keys: Keys) -> Hashes:
        import numpy as np

        from levada.grouping.batch.hashing import hash_packed, hash_words, packed

        if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
            return hash_words(keys, self._factor, self._term)
        together = packed(keys)
        if together is None:
            return super().many(keys)
        hashes = hash_packed(*together, self._point, self._factor, self._term)
        for place in np.flatnonzero(together[1] > LONG_KEY).tolist():
            hashes[place] = self._hash(keys[place])
        return hashes

    def _hash(self, key: Key) -> int:
        if isinstance(key, int) and -(1 << 63) <= key < 1 << 64:
            return self._mixed(key & _MASK)
        data = key_bytes(key)
        if len(data) > LONG_KEY:
            return int.from_bytes(blake2b(data, digest_size=8, key=self._secret).digest(), "little")
        value = len(data) + 1
        for start in range(0, len(data), 7):
            value = (value * self._point + int.from_bytes(data[start : start + 7], "little")) % _PRIME
        return self._mixed(value)

    def _mixed(self, word: int) -> int:
        word = ((self._factor * word + self._term) >> 64) & _MASK
        word ^= word >> 32
        word = word * 0xD6E8FEB86659FD93 & _MASK
        return word ^ (word >> 32)
