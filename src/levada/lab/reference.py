"""Figures that the sources printed, and whether they come out again.

A claim is the printed value, the accepted band, the measured value and the verdict. A claim that misses stays in
the table. A value that the source's own figures contradict is a misprint, judged by what it should have been.
"""

from __future__ import annotations

import csv
import math
from importlib.resources import files
from typing import Literal

import msgspec


def reference_rows(name: str) -> list[dict[str, str]]:
    """The rows of a data file of the laboratory."""
    text = files("levada.lab").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


class Claim(msgspec.Struct, frozen=True):
    """A printed figure beside the measured one."""

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
    """Holds if `measured` is `within` a distance of the printed value, or within a `share` of it.

    `corrected` is what a misprint should have been; the band is then around it.
    """
    meant = printed if corrected is None else corrected
    room = max(within, share * abs(meant))
    band = (meant - room, meant + room)
    if not (math.isfinite(measured) and band[0] <= measured <= band[1]):
        return Claim(name, printed, band, measured, "misses", note)
    return Claim(name, printed, band, measured, "holds" if corrected is None else "misprint", note)


def at_most(name: str, limit: float, measured: float, note: str = "a limit") -> Claim:
    """Holds if `measured` does not exceed the limit."""
    return Claim(name, limit, (0.0, limit), measured, "holds" if measured <= limit else "misses", note)


def at_least(name: str, limit: float, measured: float, note: str = "a limit") -> Claim:
    """Holds if `measured` reaches the limit."""
    return Claim(name, limit, (limit, math.inf), measured, "holds" if measured >= limit else "misses", note)
