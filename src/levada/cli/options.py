"""Options and output that several commands share."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from levada.core.errors import NotFound, UsageError

PORT = 8400  # of the dashboard
BESIDE = "LEVADA_BESIDE"  # the process that started a dashboard for itself; the dashboard ends with it


DataOption = Annotated[Path, typer.Option("--data", metavar="DIR", help="The folder that holds the collection.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings; default: levada.toml if it is here.")
]
ControllerOption = Annotated[str, typer.Option(metavar="NAME", help="Who says how many; a wrong name lists all.")]
RabbitOption = Annotated[str, typer.Option(envvar="LEVADA_RABBITMQ", metavar="URL", help="amqp://user:password@host/")]
OutOption = Annotated[str, typer.Option("--out", metavar="FILE", help="Where to; - is standard output.")]
STDOUT = "-"
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object for programs instead of text.")]


def check_range(option: str, value: float, least: float, most: float) -> None:
    """`UsageError` unless the value of this option lies within the bounds."""
    if not least <= value <= most:
        raise UsageError(f"{option} must be between {least} and {most}, not {value}")


def split_names(typed: str | None) -> tuple[str, ...]:
    """The words of a list with commas."""
    return tuple(name.strip() for name in (typed or "").split(",") if name.strip())


def print_json(value: Any) -> None:
    """Print anything that msgspec can encode as one line of JSON; subclasses of `str` as text."""
    sys.stdout.buffer.write(msgspec.json.encode(value, enc_hook=str.__str__) + b"\n")
    sys.stdout.buffer.flush()


def print_result(json: bool, facts: Any, show: Callable[..., object], *shown: Any) -> None:
    """Print the facts as JSON, or call `show` with what is to be shown to people; unless named, with the facts."""
    if json:
        print_json(facts)
    else:
        show(*(shown or (facts,)))


def print_found(json: bool, facts: Any, found: object, nothing: str, show: Callable[..., object], *shown: Any) -> None:
    """Like `print_result`; where nothing was found, exit with 3: after the JSON, or with `nothing` as the error."""
    if not (found or json):
        raise NotFound(nothing)
    print_result(json, facts, show, *shown)
    if not found:
        raise typer.Exit(NotFound.exit_code)


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the process at once, without Python.

    Compiled arithmetic may run for a minute, and Python handles a signal only after it. Only for work that has
    written nothing yet and has no children.
    """
    if threading.current_thread() is not threading.main_thread():  # only it may set signal handlers
        yield
        return
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
