"""Which keys stand for all of them, where nobody knows how many there are?

Memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from levada.bulk.spans import Key

__all__ = ["drawn", "thinned"]


def thinned(ordered: Iterable[Key], size: int) -> list[Key]:
    """Every n-th of keys that come in order: between `size` and twice as many, or all if they are fewer."""
    kept: list[Key] = []
    every = 1
    for place, key in enumerate(ordered):
        if place % every == 0:
            kept.append(key)
            if len(kept) > 2 * size:
                kept, every = kept[::2], every * 2
    return kept


def drawn(keys: Iterable[Key], size: int, chance: Random) -> list[Key]:
    """`size` of keys that come in any order, each as likely as any other; all if they are fewer. (Reservoir, by
    Waterman's way: the n-th key takes a place with the chance size / n.)"""
    kept: list[Key] = []
    for place, key in enumerate(keys):
        if place < size:
            kept.append(key)
        elif (taken := int(chance.random() * (place + 1))) < size:
            kept[taken] = key
    return kept
