"""The freshness laboratory with somebody watching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from levada.cli.watching import watching
from levada.lab.claims import Section
from levada.lab.freshness.history import read_history
from levada.lab.freshness.paper import MISPRINTS, fitted_sections, trace_section
from levada.lab.freshness.table import HistoryFile, Row, rows

__all__ = ["Result", "run"]


@dataclass(frozen=True, slots=True)
class Result:
    rows: list[Row]
    sections: list[Section]
    repairs: tuple[str, ...]
    misprints: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "claims": [claim for section in self.sections for claim in section.claims],
            "repairs": self.repairs,
            "misprints": self.misprints,
        }


def run(
    worlds: Sequence[str | HistoryFile], policies: Sequence[str], seeds: Sequence[int], *, quiet: bool
) -> Result:
    """The paper's tables are rerun too, unless a file of histories is replayed."""
    files = [world for world in worlds if isinstance(world, HistoryFile)]
    repairs = tuple(repair for file in files for repair in read_history(file.path).repairs)
    with watching(quiet) as progress:
        found = rows(worlds, policies, seeds, progress)
    if files:
        return Result(found, [], repairs, ())
    return Result(found, [trace_section(), *fitted_sections()], repairs, MISPRINTS)
