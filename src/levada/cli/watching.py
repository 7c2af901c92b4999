"""How does somebody watch many runs being done?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from levada.cli.printing import printer

__all__ = ["watching"]


@contextmanager
def watching(quiet: bool) -> Iterator[Callable[[int, int, str], None] | None]:
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
