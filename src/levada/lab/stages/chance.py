"""What does chance say? Numbers from the machine's own state, so that a seed says all.

Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014), SplitMix64; in signed
integers, which wrap around once they are compiled.
"""

from __future__ import annotations

import math

from levada.lab.stages.machine import Integers
from levada.lab.stages.places import T_CHANCE

__all__ = ["exponential", "normal", "uniform"]

_GAMMA, _MIX, _MIX_AGAIN = 0x9E3779B97F4A7C15 - 2**64, 0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64
_UNIT = 2.0**-53


def uniform(n: Integers) -> float:
    """From 0 on, below 1. A mask makes each shift one that fills up with zeros."""
    n[T_CHANCE] += _GAMMA
    word = int(n[T_CHANCE])
    word = (word ^ ((word >> 30) & (2**34 - 1))) * _MIX
    word = (word ^ ((word >> 27) & (2**37 - 1))) * _MIX_AGAIN
    word ^= (word >> 31) & (2**33 - 1)
    return ((word >> 11) & (2**53 - 1)) * _UNIT


def exponential(n: Integers, mean: float) -> float:
    return -mean * math.log(1.0 - uniform(n)) if mean > 0.0 else 0.0


def normal(n: Integers) -> float:
    """By Box and Muller."""
    return math.sqrt(2.0 * exponential(n, 1.0)) * math.cos(2.0 * math.pi * uniform(n))
