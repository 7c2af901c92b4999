"""The command `levada`: its subcommands, and how their errors reach the user.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 nothing found or refused. Command modules import what they need
inside the command, so that `levada --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

import typer

from levada import __version__
from levada.cli import (
    control,
    crawl,
    demo,
    diff,
    doctor,
    export,
    freshness,
    group,
    lab,
    load,
    postings,
    search,
    serve,
    shard,
    simulate,
    trends,
    warm,
    why,
    work,
)
from levada.errors import LevadaError

__all__ = ["app", "main"]

app = typer.Typer(
    name="levada",
    help="Keeps a large collection of web pages fresh and searchable within a fetch budget.",
    epilog="Start with: levada demo    (offline, about a minute)",
    no_args_is_help=True,
    rich_markup_mode="markdown",
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


for module in (
    demo,
    crawl,
    search,
    serve,
    postings,
    trends,
    diff,
    why,
    freshness,
    group,
    simulate,
    control,
    work,
    shard,
    lab,
    load,
    warm,
    export,
    doctor,
):
    module.register(app)


def main() -> None:
    try:
        app()
    except LevadaError as error:
        from levada.cli.printing import harmless

        print(f"levada: {harmless(str(error))}", file=sys.stderr)  # one line, whatever was quoted in it
        sys.exit(error.exit_code)
    except OSError as error:  # of standard output: everything else is translated where it is met
        print(f"levada: cannot write the answer: {error.strerror or error}", file=sys.stderr)
        os._exit(1)  # a full output cannot be flushed on the way out either
