"""Control commands of a data folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from levada.core.commands import ChangeBudget, DesiredState
from levada.core.configuration.kept import SettingChange
from levada.core.errors import StoreError
from levada.core.folder import DataFolder
from levada.core.protocols import CommandQueue
from levada.core.settings import Settings
from levada.store.commands import SqliteCommandQueue
from levada.store.opening import collection_name
from levada.store.workplace import home_of, is_shared


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


if TYPE_CHECKING:
    from levada.store.postgresql.shared_commands import PostgresqlCommandQueue


class Commands(CommandQueue, Protocol):
    """The command queue of a collection, in its folder or beside its pages on a server."""

    def forget(self, is_forgotten: Callable[[str], bool]) -> None:
        """Delete what waiting commands ask about forgotten URLs and sites."""

    def compact(self) -> None:
        """Leave no byte of what was deleted."""


def change_settings(folder: DataFolder, values: Mapping[str, Any], by: str) -> list[SettingChange]:
    """Change what the collection keeps of its settings; a budget that was commanded ends if the budget is set."""
    changes = folder.change_settings(values, by)
    if "budget.per_hour" in values and _has_commands(folder):
        with closing(open_commands(folder)) as commands:
            waiting = any(isinstance(command, ChangeBudget) for _, command in commands.pending())
            if waiting or commands.desired_state().per_hour is not None:
                commands.submit(ChangeBudget(None))
    return changes


def commanded_budget(folder: DataFolder) -> int | None:
    """The fetches per hour that a control command set; None: as in the settings."""
    if not _has_commands(folder):
        return None
    with closing(open_commands(folder)) as commands:
        return commands.desired_state().per_hour


def _has_commands(folder: DataFolder) -> bool:
    return folder.commands.exists() or is_shared(folder)


def open_commands(folder: DataFolder, settings: Settings | None = None) -> Commands:
    """The control commands of a collection; `settings` are those of a crawl that begins.

    A budget that was commanded outlives the crawl, unless the settings name another one than they did before.
    """
    commands = _opened(folder, taking_over=settings is not None)
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


def _opened(folder: DataFolder, *, taking_over: bool) -> Commands:
    home = home_of(folder)
    if not home:
        return SqliteCommandQueue(folder.commands)
    from levada.store.postgresql.shared_commands import PostgresqlCommandQueue

    commands = PostgresqlCommandQueue(home, collection_name(folder), executing=taking_over)
    if taking_over:
        _move(folder, commands)
    return commands


def _move(folder: DataFolder, commands: PostgresqlCommandQueue) -> None:
    """Take over what was commanded before the collection was shared: the file is empty afterwards."""
    if not folder.commands.exists():
        return
    with closing(SqliteCommandQueue(folder.commands)) as before:
        pending, desired = before.pending(), before.desired_state()
        if desired != DesiredState():
            commands.mark_done(0, desired)
        for _, command in pending:
            commands.submit(command)
        if pending or desired != DesiredState():
            before.mark_done(max((number for number, _ in pending), default=0), DesiredState())
