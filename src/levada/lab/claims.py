"""Does what a source printed come out again?

A claim is the printed value, the band we accept, what we measured, and the verdict. A claim that misses stays in
the table; a value that the source's own figures contradict is a misprint, judged by what it should have been.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

__all__ = ["Claim", "Section", "judge"]


class Claim(msgspec.Struct, frozen=True):
    name: str
    printed: float
    band: tuple[float, float]
    measured: float
    verdict: Literal["holds", "misses", "misprint"]
    note: str = ""


class Section(msgspec.Struct, frozen=True):
    """One table of a source, each cell a claim."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Claim, ...]], ...]

    @property
    def claims(self) -> list[Claim]:
        return [claim for _, cells in self.rows for claim in cells]


def judge(
    name: str,
    printed: float,
    measured: float,
    *,
    within: float = 0.0,
    share: float = 0.0,
    corrected: float | None = None,
    note: str = "",
) -> Claim:
    """Holds if `measured` is within so much of the printed value, or within that share of it.

    `corrected` is what a misprint should have been; the band is then around that.
    """
    meant = printed if corrected is None else corrected
    room = max(within, share * abs(meant))
    band = (meant - room, meant + room)
    if not (math.isfinite(measured) and band[0] <= measured <= band[1]):
        return Claim(name, printed, band, measured, "misses", note)
    return Claim(name, printed, band, measured, "holds" if corrected is None else "misprint", note)
