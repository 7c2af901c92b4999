"""Who gets how many workers where there are too few for all? Every stage gives way by the same share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["cut_to_budget", "share_budget"]


def share_budget(wanted: Sequence[int], least: Sequence[int], budget: int) -> list[int]:
    """At most `budget` in all, and at least `least` each."""
    given = list(wanted)
    cut_to_budget(given, least, budget)
    return given


def cut_to_budget(wanted: Any, least: Any, budget: float) -> None:
    """In place, lists or arrays. What is rounded away from one stage goes to the next, so that the sum is right."""
    extra, room = 0.0, float(budget)
    for place in range(len(wanted)):
        extra += max(0, wanted[place] - least[place])
        room -= least[place]
    if extra <= room:
        return
    so_far = 0.0
    for place in range(len(wanted)):
        before = int(so_far * room / extra + 0.5)
        so_far += max(0, wanted[place] - least[place])
        wanted[place] = least[place] + int(so_far * room / extra + 0.5) - before
