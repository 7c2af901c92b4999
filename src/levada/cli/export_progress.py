"""How far is a long export or count? A bar on a terminal, silence when piped."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from levada.cli.logs import for_machines
from levada.cli.printing import printer

__all__ = ["shown_progress"]

_SECONDS_BETWEEN = 0.2


@contextmanager
def shown_progress(total: int, seen: Callable[[], int], doing: str = "exporting") -> Iterator[None]:
    """Watch `seen` while the block runs; it is read, never waited for."""
    if not sys.stderr.isatty() or for_machines():
        yield
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    done = threading.Event()
    with Progress(*columns, console=printer(sys.stderr), transient=True) as bar:
        task = bar.add_task(doing, total=total)

        def watch() -> None:
            while not done.wait(_SECONDS_BETWEEN):
                bar.update(task, completed=seen())

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
