"""Which keys are hot? Three generations, modelled on a generational garbage collector.

Source: the Dynamic Key Grouping thesis (2018). A key is born young; sweeps move what is counted most often up, from
young to middle and from middle to old, and bring the least counted down in exchange. Keys in old are hot. The
thesis keeps when a key was last seen, too; no rule of it asks for that.
"""

from __future__ import annotations

__all__ = ["Generations"]


class Generations:
    """`capacity` is split 10 : 40 : 50. Old and middle are hard limits, young may grow between sweeps."""

    def __init__(self, capacity: int = 100) -> None:
        if capacity < 1:
            raise ValueError(f"the key space needs room for at least one key, not {capacity}")
        self.old_size = capacity // 10
        self.middle_size = capacity * 4 // 10
        self.young_size = capacity - self.old_size - self.middle_size
        self.old: dict[int, int] = {}
        self.middle: dict[int, int] = {}
        self.young: dict[int, int] = {}

    def count(self, key: int) -> None:
        for generation in (self.old, self.middle):
            if key in generation:
                generation[key] += 1
                return
        self.young[key] = self.young.get(key, 0) + 1

    def sweep_young(self) -> None:
        """Every 15 seconds: the best of young change places with the worst of middle; young is cut to its size."""
        kept = sorted(self.young.items(), key=_most_counted)[: self.young_size]
        self.young = dict(kept)
        _exchange(self.young, self.middle, self.middle_size)

    def sweep_middle(self) -> None:
        """Every 60 seconds: the best of middle change places with the worst of old."""
        _exchange(self.middle, self.old, self.old_size)


def _exchange(lower: dict[int, int], upper: dict[int, int], size: int) -> None:
    rising = sorted(lower.items(), key=_most_counted)
    falling = sorted(upper.items(), key=_least_counted)
    room = size - len(upper)
    for key, _ in rising[:room]:
        upper[key] = lower.pop(key)
    for (key, count), (worst, least) in zip(rising[room:], falling, strict=False):
        if count <= least:
            break
        del lower[key], upper[worst]
        upper[key], lower[worst] = count, least


def _most_counted(item: tuple[int, int]) -> tuple[int, int]:
    return -item[1], item[0]


def _least_counted(item: tuple[int, int]) -> tuple[int, int]:
    return item[1], item[0]
