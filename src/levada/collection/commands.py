"""Control commands of a data folder."""

from __future__ import annotations

from contextlib import closing

import msgspec

from levada.collection.live import read_live
from levada.core.commands import ChangeBudget, ControlCommand
from levada.core.errors import StoreError, TooMany
from levada.core.folder import DataFolder
from levada.core.settings import Settings
from levada.store.commands import SqliteCommandQueue

_MOST_WAITING = 1_000  # commands that no crawl has carried out yet


class Receipt(msgspec.Struct, frozen=True):
    """A control command is kept; the crawl that runs, or the next one, carries it out.

    >>> news.pause().crawling
    False
    >>> news.resume().waiting
    2
    """

    number: int
    waiting: int  # commands that no crawl has carried out yet
    crawling: bool  # a crawl runs now


def open_commands(folder: DataFolder, settings: Settings | None = None) -> SqliteCommandQueue:
    """The control commands of a folder; `settings` are those of a crawl that begins.

    A budget that was commanded outlives the crawl, unless the settings name another one than they did before.
    """
    commands = SqliteCommandQueue(folder.commands)
    if settings is None:
        return commands
    try:
        if commands.desired_state().per_hour is not None and _before(folder) != settings.budget.per_hour:
            commands.submit(ChangeBudget(None))
    except StoreError:
        commands.close()
        raise
    return commands


def _before(folder: DataFolder) -> int | None:
    """The budget in the settings of the crawl before; None if it is not known."""
    try:
        return folder.settings().budget.per_hour
    except StoreError:
        return None


def submit_command(folder: DataFolder, command: ControlCommand) -> Receipt:
    """Keep a command for the crawl that runs, or for the next one; `NotFound` without a collection."""
    folder.must_exist()
    with closing(open_commands(folder)) as commands:
        waiting = len(commands.pending())
        if waiting >= _MOST_WAITING:
            raise TooMany(f"{waiting} commands wait already: start a crawl that carries them out")
        return Receipt(commands.submit(command), waiting + 1, read_live(folder.live_file) is not None)
