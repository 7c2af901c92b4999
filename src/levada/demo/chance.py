"""Seeded chance: the same draw for the same numbers in every process.

A page's whole life follows from (seed, page, question): nothing depends on the order in which it is asked. `mix` is
the finalizer of splitmix64, which is enough to look random and cheap enough to be asked for every sentence.
"""

from __future__ import annotations

from hashlib import blake2b

_MASK = (1 << 64) - 1


def mix(number: int, salt: int) -> int:
    """A 64-bit number that follows from the two."""
    value = (number + 0x9E3779B97F4A7C15 * (salt + 1)) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def hash_text(text: str, seed: int) -> int:
    """A 64-bit number that follows from the text and the seed."""
    return int.from_bytes(blake2b(f"{seed}/{text}".encode(), digest_size=8).digest(), "big")
