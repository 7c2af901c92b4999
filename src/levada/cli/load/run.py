"""Taking part in a load, and showing its progress."""

from __future__ import annotations

import logging
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import typer

from levada.bulk import loads
from levada.bulk.tasks import LoadStatus
from levada.cli.load.output import MAPS, print_loaded, progress_line, short_line, status_facts
from levada.cli.logs import for_machines, tell
from levada.cli.options import print_result
from levada.cli.terminal import printer
from levada.core.errors import LevadaError, Refused, UsageError
from levada.core.processes import module_command

_INTERRUPTED = 130
_EVERY = 5.0  # seconds between two lines when piped


def run(
    request: loads.LoadRequest,
    maps: Path,
    processes: int,
    metrics_port: int,
    json: bool,
    *,
    noted: Callable[[], None] = lambda: None,
) -> None:
    """Load until the map is published; the other processes of this machine start when the load has begun."""
    if request.wake:
        for client in ("aio_pika", "aiormq"):  # they say nothing that we do not say better
            logging.getLogger(client).setLevel(logging.CRITICAL)
    others: list[subprocess.Popen[bytes]] = []
    begun = False
    with ExitStack() as watching:
        watchers = [watching.enter_context(_shown(json))]
        if metrics_port:
            from levada.bulk.metrics import LoadMetrics

            watchers.append(watching.enter_context(closing(LoadMetrics(request.name, metrics_port))).show)

        def watch(status: LoadStatus) -> None:
            nonlocal begun
            if not begun:
                begun = True
                noted()
                others.extend(_instance(request.name, maps) for _ in range(processes - 1))
            for show in watchers:
                show(status)

        try:
            loaded = loads.load(request, watch, say=partial(tell, level=logging.WARNING))
        except KeyboardInterrupt:
            where = [] if maps == MAPS else ["--maps", str(maps)]
            again = shlex.join(["levada", "load", "resume", request.name, *where])
            tell(f"interrupted; go on with: {again}")
            raise typer.Exit(_INTERRUPTED) from None
        except LevadaError as error:
            if not isinstance(error, UsageError | Refused):
                noted()  # so that resume, status and cancel know where
            raise
        finally:
            for other in others:
                other.terminate()
            for other in others:
                other.wait()
    facts = status_facts(loaded.status, None) | {"restarts": loaded.restarts, "began": loaded.began}
    print_result(json, facts, print_loaded, loaded.status, request)


def _instance(name: str, maps: Path) -> subprocess.Popen[bytes]:
    command = [*module_command("levada"), "load", "resume", name, "--maps", str(maps), "--json"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)  # noqa: S603 -- ourselves


@contextmanager
def _shown(quiet: bool) -> Iterator[Callable[[LoadStatus], None]]:
    """Show progress on standard error: a bar on a terminal, a plain line now and then when piped."""
    if quiet or for_machines():
        yield lambda status: None
    elif sys.stderr.isatty():
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        columns = (TextColumn("loading"), BarColumn(16), TaskProgressColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=printer(sys.stderr), transient=True) as bar:
            task = bar.add_task("", total=1.0)

            def show(status: LoadStatus) -> None:
                share, words = short_line(status)
                bar.update(task, completed=share, description=words)

            yield show
    else:
        next_line = 0.0

        def tell_line(status: LoadStatus) -> None:
            nonlocal next_line
            if status.now >= next_line:
                share, words = progress_line(status)
                print(f"loading {100 * share:.0f}%: {words}", file=sys.stderr, flush=True)
                next_line = status.now + _EVERY

        yield tell_line
