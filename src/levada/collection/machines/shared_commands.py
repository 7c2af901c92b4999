"""Control commands where several controls share a collection: given to one of them, executed by all."""

from __future__ import annotations

from typing import Protocol

from levada.core.commands import ControlCommand, DesiredState
from levada.core.protocols import CommandQueue
from levada.crawl.commands import desired_state_after


class CommandLog(Protocol):
    """The commands that all controls execute, in their order."""

    def append(self, command: ControlCommand) -> None: ...

    def after(self, number: int) -> list[tuple[int, ControlCommand]]: ...

    def newest(self) -> int: ...

    def state(self) -> DesiredState | None: ...

    def keep_state(self, number: int, state: DesiredState) -> None: ...

    def close(self) -> None: ...


class SharedCommands(CommandQueue):
    """The commands of the folder of this control, passed on to all, and those that others pass on."""

    def __init__(self, own: CommandQueue, log: CommandLog) -> None:
        self._own = own
        self._log = log
        self._position = log.newest()  # what was commanded before is in the store and in the desired state

    def submit(self, command: ControlCommand) -> int:
        return self._own.submit(command)

    def pending(self) -> list[tuple[int, ControlCommand]]:
        for number, command in self._own.pending():
            self._log.append(command)  # first: killed in between, it is passed on twice, and never lost
            self._own.mark_done(number, desired_state_after(command, self._own.desired_state()))
        return self._log.after(self._position)

    def mark_done(self, number: int, desired_state: DesiredState) -> None:
        self._log.keep_state(number, desired_state)
        self._position = number

    def desired_state(self) -> DesiredState:
        return self._log.state() or self._own.desired_state()

    def close(self) -> None:
        self._log.close()
        self._own.close()
