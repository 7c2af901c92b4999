"""Taking part in a load, and showing its progress."""

from __future__ import annotations

import logging
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from levada.cli.load.output import MAPS
from levada.cli.options import print_result
from levada.core.errors import LevadaError, Refused, UsageError

if TYPE_CHECKING:
    from levada.bulk.loads import LoadRequest
    from levada.bulk.tasks import LoadStatus

_INTERRUPTED = 130
_EVERY = 5.0  # seconds between two lines when piped


def run(
    request: LoadRequest,
    maps: Path,
    processes: int,
    metrics_port: int,
    json: bool,
    *,
    noted: Callable[[], None] = lambda: None,
) -> None:
    """Load until the map is published; the other processes of this machine start when the load has begun."""
    from levada.bulk.loads import load
    from levada.cli.load.output import print_loaded, status_facts

    if request.wake:
        for client in ("aio_pika", "aiormq"):  # they say nothing that we do not say better
            logging.getLogger(client).setLevel(logging.CRITICAL)
    others: list[subprocess.Popen[bytes]] = []
    begun: list[bool] = []
    with ExitStack() as watching:
        shown = watching.enter_context(_shown(json))
        measured = watching.enter_context(_measured(request.name, metrics_port))

        def watch(status: LoadStatus) -> None:
            if not begun:
                begun.append(True)
                noted()
                others.extend(_instance(request.name, maps) for _ in range(processes - 1))
            shown(status)
            measured(status)

        try:
            loaded = load(request, watch, say=_warn)
        except KeyboardInterrupt:
            print(f"levada: interrupted; go on with: {_resume_line(request.name, maps)}", file=sys.stderr)
            raise typer.Exit(_INTERRUPTED) from None
        except LevadaError as error:
            if not isinstance(error, UsageError | Refused):
                noted()  # so that resume, status and cancel know where
            raise
        finally:
            _end(others)
    facts = status_facts(loaded.status, None) | {"restarts": loaded.restarts, "began": loaded.began}
    print_result(json, facts, print_loaded, loaded.status, request)


def _warn(words: str) -> None:
    from levada.cli.logs import tell

    tell(words, logging.WARNING)


def _resume_line(name: str, maps: Path) -> str:
    where = [] if maps == MAPS else ["--maps", str(maps)]
    return shlex.join(["levada", "load", "resume", name, *where])


def _instance(name: str, maps: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "levada", "load", "resume", name, "--maps", str(maps), "--json"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)  # noqa: S603 -- ourselves


def _end(others: list[subprocess.Popen[bytes]]) -> None:
    for other in others:
        other.terminate()
    for other in others:
        other.wait()


@contextmanager
def _shown(quiet: bool) -> Iterator[Callable[[LoadStatus], None]]:
    """Show progress on standard error: a bar on a terminal, a plain line now and then when piped."""
    if quiet:
        yield lambda status: None
    elif sys.stderr.isatty():
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        from levada.cli.load.output import short_line
        from levada.cli.terminal import printer

        columns = (TextColumn("loading"), BarColumn(16), TaskProgressColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=printer(sys.stderr), transient=True) as bar:
            task = bar.add_task("", total=1.0)

            def show(status: LoadStatus) -> None:
                share, words = short_line(status)
                bar.update(task, completed=share, description=words)

            yield show
    else:
        yield _PlainLines().show


class _PlainLines:
    def __init__(self) -> None:
        self._next = 0.0

    def show(self, status: LoadStatus) -> None:
        from levada.cli.load.output import progress_line

        if status.now >= self._next:
            share, words = progress_line(status)
            print(f"loading {100 * share:.0f}%: {words}", file=sys.stderr, flush=True)
            self._next = status.now + _EVERY


@contextmanager
def _measured(name: str, port: int) -> Iterator[Callable[[LoadStatus], None]]:
    if not port:
        yield lambda status: None
        return
    from levada.bulk.metrics import LoadMetrics

    metrics = LoadMetrics(name, port)
    try:
        yield metrics.show
    finally:
        metrics.close()
