"""Control commands of a data folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import msgspec

from levada.core.commands import ChangeBudget
from levada.core.configuration.kept import SettingChange
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


def change_settings(folder: DataFolder, values: Mapping[str, Any], by: str) -> list[SettingChange]:
    """Change what the collection keeps of its settings; a budget that was commanded ends if the budget is set."""
    changes = folder.change_settings(values, by)
    if "budget.per_hour" in values and folder.commands.exists():
        with closing(SqliteCommandQueue(folder.commands)) as commands:
            waiting = any(isinstance(command, ChangeBudget) for _, command in commands.pending())
            if waiting or commands.desired_state().per_hour is not None:
                commands.submit(ChangeBudget(None))
    return changes


def commanded_budget(folder: DataFolder) -> int | None:
    """The fetches per hour that a control command set; None: as in the settings."""
    if not folder.commands.exists():
        return None
    with closing(SqliteCommandQueue(folder.commands)) as commands:
        return commands.desired_state().per_hour


def open_commands(folder: DataFolder, settings: Settings | None = None) -> SqliteCommandQueue:
    """The control commands of a folder; `settings` are those of a crawl that begins.

    A budget that was commanded outlives the crawl, unless the settings name another one than they did before.
    """
    commands = SqliteCommandQueue(folder.commands)
    if settings is None:
        return commands
    before = DataFolder(folder.path).settings().budget.per_hour  # without what this crawl is given
    try:
        if commands.desired_state().per_hour is not None and before != settings.budget.per_hour:
            commands.submit(ChangeBudget(None))
    except StoreError:
        commands.close()
        raise
    return commands
