"""The freshness laboratory with somebody watching."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from levada.cli.printing import printer
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
    with _watching(quiet) as progress:
        found = rows(worlds, policies, seeds, progress)
    if files:
        return Result(found, [], repairs, ())
    return Result(found, [trace_section(), *fitted_sections()], repairs, MISPRINTS)


@contextmanager
def _watching(quiet: bool) -> Iterator[Callable[[int, int, str], None] | None]:
    """A bar on a terminal, a plain line at each tenth when piped, both on standard error."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield _plain_line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=printer(sys.stderr), transient=True) as bar:
        task = bar.add_task("compiling", total=None)
        yield lambda done, total, what: bar.update(task, completed=done, total=total, description=what)


def _plain_line(done: int, total: int, what: str) -> None:
    if done * 10 // total > (done - 1) * 10 // total:
        print(f"{done} of {total} done: {what}", file=sys.stderr, flush=True)
