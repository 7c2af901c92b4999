"""Control commands of a data folder."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from levada.core.commands import ChangeBudget
from levada.core.errors import StoreError
from levada.core.folder import DataFolder
from levada.core.settings import Settings
from levada.store.commands import SqliteCommandQueue


class Receipt(msgspec.Struct, frozen=True):
    """Confirms that a control command is queued; the running crawl, or the next one, executes it.

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
    before = None  # the budget in the settings of the crawl before, if it is known
    with suppress(StoreError):
        before = folder.settings().budget.per_hour
    try:
        if commands.desired_state().per_hour is not None and before != settings.budget.per_hour:
            commands.submit(ChangeBudget(None))
    except StoreError:
        commands.close()
        raise
    return commands
