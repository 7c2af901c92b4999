"""Evidence of a page: what its visits say about each rate and about shared changes, and how that is stored.

It is kept with the page (`PageRecord.memory`): two bytes per rate, 32 with 16 rates; then the row of the rule in use;
then 33 bytes more if its server dates it; then six for its part in shared changes, or three if it has none and is in
the page sample. What an earlier version stored is read.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import msgspec

from levada.freshness.rates import RATES, WORST
from levada.freshness.shared import PAGE_WIDTH

_EVIDENCE = struct.Struct(f"<{len(RATES)}e")


_LEAST_PART = 0.01  # events: less is not worth keeping
_CAUTIOUS = b"c"  # after the cautious evidence, at the end of a page's memory
_EXPECTED = struct.Struct("<ec")  # how likely a change was, and what marks it: after everything else
_MARK = b"p"
_SHARED = struct.Struct("<eee")  # instead of it: the page's part in shared changes, and the same or -1


class Evidence(msgspec.Struct, eq=False):
    """What the visits of a page say about each rate: for the plan, and for what is said about the page.

    Both are the same list while no date tells them apart.
    """

    plan: list[float]
    cautious: list[float]
    expected: float | None = None  # how likely a change was, before the last visit to a page of the sample
    part: list[float] = msgspec.field(default_factory=lambda: [0.0] * PAGE_WIDTH)  # `levada.freshness.shared`

    @staticmethod
    def none() -> Evidence:
        nothing = [0.0] * len(RATES)
        return Evidence(nothing, nothing)

    @staticmethod
    def of(memory: bytes) -> Evidence:
        """The stored evidence; zeros if there is none or another version of Levada stored it."""
        if len(memory) < _EVIDENCE.size:
            return Evidence.none()
        expected, part, memory = _end_of_memory(memory)
        plan = _evidence_at(memory, 0)
        return Evidence(plan, _evidence_at(memory, _end(memory)) if _is_cautious(memory) else plan, expected, part)

    def packed(self, row: Sequence[float] = ()) -> bytes:
        memory = _EVIDENCE.pack(*self.plan) + struct.pack(f"<{len(row)}d", *row)
        if self.cautious is not self.plan:
            memory += _EVIDENCE.pack(*self.cautious) + _CAUTIOUS
        if self.part[1] > _LEAST_PART:
            return memory + _SHARED.pack(*self.part, -1.0 if self.expected is None else self.expected)
        return memory if self.expected is None else memory + _EXPECTED.pack(self.expected, _MARK)


def _evidence_at(memory: bytes, place: int) -> list[float]:
    found = _EVIDENCE.unpack_from(memory, place)
    return [max(WORST, min(0.0, value)) for value in found]  # in this order also for nan


def _end_of_memory(memory: bytes) -> tuple[float | None, list[float], bytes]:
    """How likely a change was before the last visit, the part in shared changes, and the memory without both.

    Everything before is in eights, or one byte more: so the length tells what is at the end.
    """
    expected, part = -1.0, [0.0] * PAGE_WIDTH
    over, place = len(memory) % 8, len(memory)
    if over >= 6 and place >= _EVIDENCE.size + _SHARED.size:
        place -= _SHARED.size
        caught, covered, expected = _SHARED.unpack_from(memory, place)
        if 0.0 <= caught <= covered < math.inf:
            part = [caught, covered]
    elif over in (3, 4) and place >= _EVIDENCE.size + _EXPECTED.size and memory.endswith(_MARK):
        place -= _EXPECTED.size
        (expected, _) = _EXPECTED.unpack_from(memory, place)
    return (expected if 0.0 <= expected <= 1.0 else None), part, memory[:place]


def _is_cautious(memory: bytes) -> bool:
    return len(memory) % 8 == 1 and len(memory) > 2 * _EVIDENCE.size  # everything else is in eights


def _end(memory: bytes) -> int:
    """Where the row of a rule ends."""
    return len(memory) - (_EVIDENCE.size + len(_CAUTIOUS) if _is_cautious(memory) else 0)


def row_of(memory: bytes, width: int) -> list[float] | None:
    """The stored row of a rule of this width; None if another rule stored it."""
    _, _, memory = _end_of_memory(memory)
    if _end(memory) != _EVIDENCE.size + 8 * width:
        return None
    return list(struct.unpack_from(f"<{width}d", memory, _EVIDENCE.size))
