"""Options and output that several commands share."""

from __future__ import annotations

import os
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


_NAMED = "levada.named"  # in the context of a command: the name that was given with --in
_MAY_CREATE = ("add", "crawl", "control", "try")


def _take_name(context: typer.Context, name: str | None) -> str | None:
    if name is not None:
        context.meta[_NAMED] = name  # the one nearest to the command holds
    return name


def _take_names(context: typer.Context, names: list[str] | None) -> list[str]:
    """The names of a command that takes several, after the one that was given before the command."""
    first = context.meta.get(_NAMED)
    return [*([] if first is None else [first]), *(names or [])]


def _folder(context: typer.Context, typed: Path | None) -> Path | None:
    """The folder of the collection that --in names; else what --data, or LEVADA_DATA, says."""
    name = context.meta.get(_NAMED)
    if name is None:
        return typed
    source = context.get_parameter_source("data")
    if source is not None and source.name == "COMMANDLINE":
        raise UsageError(f"--in {name} and --data {typed} are two collections: give one of them")
    from levada.core.configuration.places import folder_named

    return folder_named(name, create=context.info_name in _MAY_CREATE)


def must_take_name(context: typer.Context, command: Any) -> None:
    """`UsageError` if a collection was named for a command that works on none."""
    if _NAMED in context.meta and not _takes_name(command):
        raise UsageError(f"'levada {command.name}' works on no named collection: leave out --in {context.meta[_NAMED]}")


def _takes_name(command: Any) -> bool:
    below = getattr(command, "commands", {}).values()
    return any(map(_takes_name, below)) or any("--in" in param.opts for param in command.params)


def is_for_collection(command: Any) -> bool:
    """Whether a command works on a collection that can be named."""
    return any(param.name == "data" and param.callback is not None for param in command.params)


DATA_VARIABLE = "LEVADA_DATA"


def environment_folder() -> Path | None:
    """The folder that the variable LEVADA_DATA names."""
    return Path(os.environ[DATA_VARIABLE]) if os.environ.get(DATA_VARIABLE) else None


InOption = Annotated[
    str | None,
    typer.Option(
        "--in",
        metavar="NAME",
        callback=_take_name,
        is_eager=True,
        help="The collection of this name, in place of --data.",
    ),
]
NamesOption = Annotated[
    list[str] | None,
    typer.Option("--in", metavar="NAME", callback=_take_names, help="The collection of this name; may be repeated."),
]
DataOption = Annotated[
    Path,
    typer.Option(
        "--data",
        metavar="DIR",
        envvar=DATA_VARIABLE,
        callback=_folder,
        help="The folder that holds the collection.",
    ),
]
OptionalDataOption = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", callback=_folder, help="The folder that holds the collection.")
]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="LEVADA_STORE",
        metavar="DSN",
        help="Without the folder: the first PostgreSQL server. A folder that is named counts for more.",
    ),
]
CollectionOption = Annotated[
    str | None, typer.Option("--collection", metavar="NAME", help="With --store: which one, of several there.")
]
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
