"""The command `levada`: its subcommands, and how their errors reach the user.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 nothing found or refused. The module of a command is imported when
it is asked for, and imports what it needs inside the command, so that `levada --help` answers at once. A command
that is told to end (Ctrl-C, SIGTERM) before it listens to that itself ends with 130 or 143, as shells say it.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated, Literal, NoReturn

import typer

from levada import __version__
from levada.cli.on_demand import MARKUP, OnDemandGroup
from levada.cli.standard_streams import open_missing_streams
from levada.errors import LevadaError

__all__ = ["app", "main"]

_TERMINATED = 143  # 128 and the number of the signal

app = typer.Typer(
    name="levada",
    cls=OnDemandGroup,
    help="Keeps a large collection of web pages fresh and searchable within a fetch budget.",
    epilog="Start with: levada demo    (offline, about a minute)",
    no_args_is_help=True,
    rich_markup_mode=MARKUP,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"levada {__version__}")
        raise typer.Exit


def _log(kind: str) -> str:
    if kind == "json":  # lines for a person are what Python does anyway
        from levada.cli.logs import LogKind, set_up_logs

        set_up_logs(LogKind.JSON)
    return kind


@app.callback()
def levada(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
    log: Annotated[
        Literal["text", "json"],
        typer.Option(
            "--log", callback=_log, help="What happens, on standard error: for a person, or an object per line."
        ),
    ] = "text",
) -> None:
    """Keeps a large collection of web pages fresh and searchable within a fetch budget."""


def _end(_number: int, _frame: object) -> NoReturn:
    """As at Ctrl-C, which a terminal sends to children too: half-written files go, and nobody stays behind."""
    from multiprocessing import active_children

    for child in active_children():
        child.terminate()
    sys.exit(_TERMINATED)


def main() -> None:
    open_missing_streams()
    # Commands that serve or crawl have ways of their own.
    signal.signal(signal.SIGTERM, _end)
    try:
        app()
    except LevadaError as error:
        from levada.cli.logs import tell

        tell(str(error))  # one line, whatever was quoted in it
        sys.exit(error.exit_code)
    except OSError as error:  # of standard output, mostly: what has a name is translated where it is met
        what = f"cannot read or write {error.filename}" if error.filename else "cannot write the answer"
        print(f"levada: {what}: {error.strerror or error}", file=sys.stderr)
        os._exit(1)  # a full output cannot be flushed on the way out either
