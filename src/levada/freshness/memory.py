"""What is kept of a page between two visits, in how many bytes?

First its evidence, two bytes a rate, then whatever the rule in use keeps, as it is. Thirty-two bytes with 16 rates.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from levada.freshness.rates import RATES

__all__ = ["evidence_of", "packed", "row_of"]

_EVIDENCE = struct.Struct(f"<{len(RATES)}e")


def packed(evidence: Sequence[float], row: Sequence[float] = ()) -> bytes:
    return _EVIDENCE.pack(*evidence) + struct.pack(f"<{len(row)}d", *row)


def evidence_of(memory: bytes) -> list[float]:
    """None in favour of any rate, if nothing is kept or it was kept by another Levada."""
    if len(memory) < _EVIDENCE.size:
        return [0.0] * len(RATES)
    return [min(value, 0.0) for value in _EVIDENCE.unpack_from(memory)]  # nor if it is no number


def row_of(memory: bytes, width: int) -> list[float] | None:
    """What a rule of this width kept; None if it was another rule."""
    if len(memory) != _EVIDENCE.size + 8 * width:
        return None
    return list(struct.unpack_from(f"<{width}d", memory, _EVIDENCE.size))
