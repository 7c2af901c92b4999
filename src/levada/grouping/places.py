"""Where may a key go, and how far is it to each? All senders give the same answer.

A key has three workers, from three parts of its hash. The first is its home; to the second it is a hashed step
between 0 and 1, to the third another such step more. A hot key goes on from there through all workers, by a stride
of its own: where the ways of two such keys cross, they come from elsewhere, and share one worker instead of many.
What a step means is in `levada.grouping.levelled`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

__all__ = ["Place", "place_of", "stride_of"]

_LOW = 0xFFFFFFFF


class Place(NamedTuple):
    hashed: int
    first: int
    second: int
    third: int
    step: float
    further: float


def place_of(hashed: int, slots: Sequence[int]) -> Place:
    size = len(slots)
    low, high = hashed & _LOW, hashed >> 32
    third = (low * 0x9E3779B1 ^ high * 0x85EBCA6B) & _LOW
    mix = (third ^ (third >> 15)) * 0xC2B2AE35 & _LOW
    step = ((mix & 0xFFFF) + 1) / 65536.0
    further = step + ((mix >> 16) + 1) / 65536.0
    return Place(
        hashed, slots[low * size >> 32], slots[high * size >> 32], slots[third * size >> 32], step, further
    )


def stride_of(hashed: int, workers: int) -> int:
    """A stride that meets every worker before it comes back; compiled too."""
    stride = (hashed >> 33 & 0x3FFFFFFF) % workers  # bits that a signed word has too
    while gcd(stride, workers) != 1:
        stride += 1
    return stride % workers
