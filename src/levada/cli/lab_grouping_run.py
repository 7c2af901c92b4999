"""The grouping laboratory with somebody watching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from levada.cli.watching import watching
from levada.lab.claims import Section
from levada.lab.grouping.comparison import SKEWS, WORKERS, Cell, Verdict, compare, judge_ours
from levada.lab.grouping.growth import Growth, follow_hot_key
from levada.lab.grouping.thesis import MISPRINTS, thesis_sections

__all__ = ["Result", "run"]

_FOLLOWED = ("dynamic", "levelled")


@dataclass(slots=True)
class Result:
    sections: list[Section] = field(default_factory=list)
    growths: list[Growth] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    verdict: Verdict | None = None

    @property
    def misprints(self) -> tuple[str, ...]:
        return MISPRINTS if self.sections else ()

    def facts(self) -> dict[str, Any]:
        return {
            "claims": [claim for section in self.sections for claim in section.claims],
            "misprints": self.misprints,
            "growth": {growth.method: growth.workers for growth in self.growths},
            "cells": self.cells,
            "verdict": self.verdict,
        }


def run(
    parts: Sequence[str],
    seeds: Sequence[int],
    records: int,
    thesis_records: int,
    streams: Sequence[str],
    *,
    quiet: bool,
) -> Result:
    result = Result()
    if "thesis" in parts:
        with watching(quiet) as progress:
            result.sections = thesis_sections(thesis_records, progress)
    if "growth" in parts:
        result.growths = [follow_hot_key(method, thesis_records, seed=1) for method in _FOLLOWED]
    if "comparison" in parts:
        with watching(quiet) as progress:
            result.cells = compare(streams or SKEWS, WORKERS, seeds, records, progress=progress)
        result.verdict = judge_ours(result.cells)
    return result
