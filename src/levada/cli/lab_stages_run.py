"""The stages laboratory with somebody watching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from levada.cli.watching import watching
from levada.lab.claims import Section
from levada.lab.stages import limits, money, report
from levada.lab.stages.comparison import Entry, compare

__all__ = ["Result", "run"]

_FRESH = 301  # ours was tuned on lower seeds than these


@dataclass(slots=True)
class Result:
    sections: list[Section] = field(default_factory=list)
    limits: list[Section] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        return {
            "claims": [claim for section in self.sections for claim in section.claims],
            "limits": [
                {"table": section.title, "row": row, "claims": claims}
                for section in self.limits
                for row, claims in section.rows
            ],
            "comparison": self.entries,
        }


def run(parts: Sequence[str], runs: int, seconds: float, *, quiet: bool) -> Result:
    seeds, fresh = range(1, runs + 1), range(_FRESH, _FRESH + runs)
    result = Result()
    if "checks" in parts:
        result.sections += _checks(seconds, seeds, quiet)
    if "scores" in parts:
        result.sections += [
            _watched(quiet, report.linear_section, seconds, seeds),
            _watched(quiet, report.drain_time_section, seconds, seeds),
        ]
    if "limits" in parts:
        result.limits += [
            _watched(quiet, limits.limits_section, seconds, fresh),
            _watched(quiet, limits.startup_section, seconds, fresh),
        ]
    if "comparison" in parts:
        with watching(quiet) as progress:
            result.entries = compare(seeds=fresh, seconds=seconds, progress=progress)
    return result


def _checks(seconds: float, seeds: Sequence[int], quiet: bool) -> list[Section]:
    with watching(quiet) as progress:
        best = money.run_best(seconds, seeds, progress)
    return [
        report.theory_section(seconds, seeds),
        report.queue_section(seconds, seeds),
        report.static_section(seconds, seeds),
        report.sizes_section(seconds, min(3, len(seeds))),
        report.overload_section(seeds),
        money.side_by_side_section(best),
        *money.money_sections(best),
    ]


def _watched(quiet: bool, make: Callable[..., Section], seconds: float, seeds: Sequence[int]) -> Section:
    with watching(quiet) as progress:
        return make(seconds, seeds, progress)
