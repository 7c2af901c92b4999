"""How does somebody watch many runs being done?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from levada.cli.logs import for_machines
from levada.cli.printing import printer

__all__ = ["watching"]


@contextmanager
def watching(quiet: bool) -> Iterator[Callable[[int, int, str], None] | None]:
    """A bar on a terminal, a plain line at each tenth when piped, both on standard error."""
    if quiet or for_machines():
        yield None
        return
    if not sys.stderr.isatty():
        yield _Tenths()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=printer(sys.stderr), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda done, total, what: bar.update(task, completed=done, total=total, description=what)


class _Tenths:
    """However many are done between two looks; a run that begins anew is told of anew."""

    def __init__(self) -> None:
        self._before = 0  # done
        self._told = 0  # tenths

    def __call__(self, done: int, total: int, what: str) -> None:
        tenth = done * 10 // max(1, total)
        if tenth > (self._told if done >= self._before else 0):
            print(f"{done:,} of {total:,} done: {what}", file=sys.stderr, flush=True)
        self._before, self._told = done, tenth
