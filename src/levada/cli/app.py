"""The command `levada`: the table of its subcommands, and how their errors reach the user.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 nothing found or refused. The module of a command is imported when
the command is used, and imports what it needs inside the command, so that `levada --help` answers at once. A
command that is ended by Ctrl-C or SIGTERM before it handles them itself exits with 130 or 143, as shells expect.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from copy import copy
from importlib import import_module
from keyword import iskeyword
from typing import Annotated, Any, Literal, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from levada import __version__
from levada.cli.options import InOption, is_for_collection, must_take_name
from levada.core.errors import LevadaError


def _open_missing_streams() -> None:
    """Open standard streams that are closed: the next file would get their number, and be written to by print."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:  # else it got the number by itself
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


class Family(TyperGroup):
    """A group that takes the defaults of its own options as they are, without checks and callbacks.

    To check them, Typer loads Pydantic, which takes as long as all of Typer. Not for options that may be repeated:
    Typer makes their default a list.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        params = super().get_params(ctx)
        for param in params:
            _leave_default(param)
        return params


def make_family(about: Any, *members: Any, cls: type[TyperGroup] = Family, **options: Any) -> typer.Typer:
    """A group of commands: `about` is its callback and help, `members` are functions or groups within it."""
    family = typer.Typer(name=about.__name__, cls=cls, add_completion=False, **options)
    family.callback()(about)
    for member in members:
        family.add_typer(member) if isinstance(member, typer.Typer) else family.command()(member)
    return family


def _leave_default(param: Any) -> None:
    if "process_value" not in vars(param):
        process = param.process_value
        param.process_value = lambda ctx, value: value if value is param.default else process(ctx, value)


# Every command by its name: its module below levada.cli, and its line in the help. The help page needs no more, so
# no command is loaded to show it. A test compares each line with the command's own docstring.
COMMANDS = {
    "A collection": {
        "demo": (
            "demo.command",
            "Crawls a small web that comes with Levada, offline: 23 sites that change at known rates, and a "
            "hostile one.",
        ),
        "crawl": (
            "run.crawl",
            "Crawls from the URLs given, stores every page, and revisits it when that is worth it.",
        ),
        "add": (
            "run.add",
            "Adds addresses to crawl, and says what of their sites belongs to the collection.",
        ),
        "sites": (
            "sites",
            "Shows each site with its pages, its rule and what that keeps out, and changes the rules.",
        ),
        "try": (
            "run.trial",
            "Shows what a rule would keep of a page, as it is stored and as it is now, before it is set.",
        ),
        "check": ("run.check", "Visits pages now, whatever their plans say, and shows what changed on them."),
        "serve": ("run.serve", "Serves the dashboard and the API, of one collection or of several."),
        "mcp": (
            "run.mcp",
            "Lets a language model search the pages, read them as Markdown and see what changed (MCP).",
        ),
        "notify": ("notify", "Tells you of changes by mail, Slack, Matrix, Telegram, ntfy and others."),
        "forget": (
            "forget",
            "Deletes pages, a site or old versions for good, from every file, and keeps them from coming back.",
        ),
        "settings": ("settings", "Shows the settings of a collection and where each comes from, and changes them."),
        "collections": ("collections", "Lists the collections that have names, and gives names to others."),
        "doctor": (
            "doctor",
            "Checks this installation, the settings, their servers and the collection, and says what to do.",
        ),
        "users": (
            "access.users",
            "Says who may use a server: readers, editors and admins, who log in with a password or by OpenID Connect.",
        ),
        "keys": (
            "access.keys",
            "Makes keys for programs and search boxes: each has scopes, may expire, and can be revoked.",
        ),
        "embed": (
            "access.embed",
            "Puts the search box of the collection on your site: makes a key, and prints the line of HTML to paste.",
        ),
        "plugins": ("parts.plugins", "Lists the plug-ins of every extension point, and where each comes from."),
    },
    "Ask it": {
        "search": ("pages.search", "Finds stored pages by their words, the best first."),
        "page": ("pages.page", "Shows a stored page: its title, what is known of it, and its text."),
        "postings": ("pages.postings", "Lists in which pages a word stands and how often, as `site-url-count`."),
        "changes": ("pages.changes", "Lists what changed lately, with the lines that came and went."),
        "diff": ("pages.diff", "Shows what changed on a page, the last time or earlier."),
        "why": (
            "pages.why",
            "Says when a page is visited next, and why then; or, with --budget, what more fetches would gain.",
        ),
        "trends": ("pages.trends", "Shows the terms that pages gained lately, and more often than before."),
        "export": (
            "pages.export",
            "Writes the stored pages, in one of five formats or that of a plug-in, whatever their number.",
        ),
    },
    "Keep it": {
        "upgrade": (
            "storage.upgrade",
            "Brings a collection of an older Levada to the newest format, after a backup of each shard.",
        ),
        "backup": (
            "storage.backup",
            "Saves a whole collection in one file, also while it is crawled, and reads the file back.",
        ),
        "restore": ("storage.restore", "Puts a backup into a new folder: all of it, verified, or nothing."),
        "move": (
            "storage.move",
            "Moves a collection to another folder, to PostgreSQL servers, or from servers back into files.",
        ),
    },
    "Several machines": {
        "control": (
            "run.control",
            "Reads the lengths of RabbitMQ queues, decides how many workers each stage should have, and starts and "
            "stops them as processes of this machine; or tells Kubernetes.",
        ),
        "work": (
            "run.work",
            "Fetches pages that `levada control --data` hands out, or stores what was fetched; any number of times.",
        ),
        "warm": ("pages.warm", "Fills a map with a summary of each page, from the collection's own shards."),
        "load": (
            "load.command",
            "Reads a whole table with as many instances as there are, into a map that everyone reads.",
        ),
        "shard": (
            "shard.command",
            "Captures what a store is asked, and finds the key that splits its documents the way they are asked for.",
        ),
    },
    "The parts alone": {
        "freshness": ("parts.freshness", "Prints the intervals at which a rule revisits a page."),
        "group": (
            "parts.group",
            "Runs one method on one stream, in virtual time: ten senders that decide alone, workers of 1.04 ms per "
            "record.",
        ),
        "simulate": (
            "simulate.command",
            "Simulates scanners that make jobs, orchestrators that prepare them and catalogs that finish them, or "
            "another chain, with a queue before each stage; or a `sweep` over settings; or says what `size` is "
            "enough, or how large a `cluster` must be.",
        ),
        "lab": ("lab.command", "Reruns the tables of the sources, and ours beside them."),
    },
}
MARKUP: Literal["markdown"] = "markdown"
_MODULES = {name: module for panel in COMMANDS.values() for name, (module, _) in panel.items()}


class _OnDemand(Mapping[str, Any]):
    """Every command by its name, built when it is taken out; the names alone cost nothing."""

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = build_command(name)
        return self._built[name]

    def __contains__(self, name: object) -> bool:
        return name in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


class OnDemandGroup(Family):
    """The commands of the table, in their order and panels."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _OnDemand()

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        resolved = super().resolve_command(ctx, args)
        must_take_name(ctx, resolved[1])
        return resolved

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help page, from the lines of the table."""
        page = copy(self)
        page.commands = {
            name: TyperCommand(name, help=line, rich_help_panel=panel)
            for panel, commands in COMMANDS.items()
            for name, (_, line) in commands.items()
        }
        Family.format_help(page, ctx, formatter)


def build_command(name: str) -> Any:
    """One command of the table: the function of its name, or the `family`, in its module.

    Where the name is a keyword of Python, its function has an underscore after it. A module may name a class of its
    own for the command in `COMMAND_CLASS`.
    """
    module = import_module(f"levada.cli.{_MODULES[name]}")
    alone = typer.Typer(rich_markup_mode=MARKUP)
    alone.command("named")(_named)
    if hasattr(module, "family"):
        alone.add_typer(module.family, name=name)
    else:
        function = getattr(module, f"{name}_" if iskeyword(name) else name)
        alone.command(name, cls=getattr(module, "COMMAND_CLASS", None))(function)
    commands = typer.main.get_group(alone).commands
    (option, *_) = commands["named"].params
    option.expose_value = False  # the option --data takes note of it
    _let_be_named(commands[name], option)
    return commands[name]


def _named(named_collection: InOption = None) -> None:
    """Has the option that every command for a collection takes; no command has a parameter of this name."""


def _let_be_named(command: Any, option: Any) -> None:
    """Give a command, and those below it, the option --in, if they work on a collection."""
    for each in getattr(command, "commands", {}).values():
        _let_be_named(each, option)
    if is_for_collection(command):
        place = next(place for place, param in enumerate(command.params) if param.name == "data")
        command.params.insert(place + 1, option)


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
        typer.Option("--log", callback=_log, help="Log on standard error: text for people, or a JSON object per line."),
    ] = "text",
    collection: InOption = None,
) -> None:
    """Keeps a large collection of web pages fresh and searchable within a fetch budget."""


def _end(_number: int, _frame: object) -> NoReturn:
    """End like at Ctrl-C, which a terminal sends to children too: no half-written file and no child stays."""
    from multiprocessing import active_children

    for child in active_children():
        child.terminate()
    sys.exit(_TERMINATED)


def main() -> None:
    _open_missing_streams()
    # Commands that serve or crawl handle it themselves.
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
