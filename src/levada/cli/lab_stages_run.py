"""The stages laboratory with somebody watching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from levada.cli.watching import watching
from levada.lab.claims import Section
from levada.lab.stages import report
from levada.lab.stages.comparison import Entry, compare

__all__ = ["Result", "run"]

_FRESH = 101  # ours was tuned on lower seeds than these


@dataclass(slots=True)
class Result:
    sections: list[Section] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        claims = [claim for section in self.sections for claim in section.claims]
        return {"claims": claims, "comparison": self.entries}


def run(parts: Sequence[str], runs: int, seconds: float, *, quiet: bool) -> Result:
    seeds = range(1, runs + 1)
    result = Result()
    if "checks" in parts:
        result.sections += [
            report.mm1_section(seconds, seeds),
            report.queue_section(seconds, seeds),
            report.static_section(seconds, seeds),
            report.overload_section(seeds),
            report.comparison_section(seconds, seeds),
        ]
    if "scores" in parts:
        with watching(quiet) as progress:
            result.sections.append(report.linear_section(seconds, seeds, progress))
        with watching(quiet) as progress:
            result.sections.append(report.drain_time_section(seconds, seeds, progress))
    if "comparison" in parts:
        with watching(quiet) as progress:
            result.entries = compare(seeds=range(_FRESH, _FRESH + runs), seconds=seconds, progress=progress)
    return result
