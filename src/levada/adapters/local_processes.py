"""How are a stage's workers run as processes of this machine?

SIGTERM means: finish your job and stop. SIGKILL follows only after the grace. A process that ends by itself is
replaced; where it ended soon after its start, after a pause that doubles.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shlex
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from levada.errors import LevadaError, UsageError
from levada.ports import Clock
from levada.stages.looks import CrewLook

__all__ = ["LocalProcesses", "parse_command"]

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_SETTLED = 10.0  # seconds: whoever lived longer did not fail at its start
_MOST_STARTS = 32  # in one round: a machine that starts hundreds at once does nothing else


def parse_command(text: str) -> list[str]:
    """The words of a command; no shell is asked. `UsageError` if there is no such program."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the command {text!r} cannot be read: {error}") from None
    if not words:
        raise UsageError("a stage needs a command to run: name=queue,least,most,command")
    if shutil.which(words[0]) is None:
        raise UsageError(f"there is no program {words[0]!r}: give its full path, or install it")
    return words


class _Worker:
    def __init__(self, name: str, process: asyncio.subprocess.Process, born: float) -> None:
        self.name = name
        self.process = process
        self.born = born
        self.kill_at: float | None = None  # told to stop


class LocalProcesses:
    """Each process finds its stage and its name in `LEVADA_STAGE` and `LEVADA_WORKER`, and who started it in
    `LEVADA_CONTROL`: one whose parent is another by now is an orphan, and had better end.

    `is_busy` says who works just now, so that idle ones go first; `startup` seconds after its start a process
    counts as up; `on_end` hears the name of each that has ended.
    """

    def __init__(
        self,
        stage: str,
        command: Sequence[str],
        clock: Clock,
        *,
        grace: float = 30.0,
        startup: float = 0.0,
        is_busy: Callable[[str], bool] = lambda worker: False,
        on_end: Callable[[str], None] = lambda worker: None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._stage = stage
        self._command = list(command)
        self._clock = clock
        self._grace = grace
        self._startup = startup
        self._is_busy = is_busy
        self._on_end = on_end
        self._environment = {**os.environ, **(environment or {}), "LEVADA_STAGE": stage}
        self._environment["LEVADA_CONTROL"] = str(os.getpid())
        self._workers: list[_Worker] = []
        self._failures = 0
        self._not_before = float("-inf")

    @property
    def pids(self) -> list[int]:
        """Of those that run and are not told to stop."""
        return [worker.process.pid for worker in self._workers if worker.kill_at is None]

    async def look(self) -> CrewLook:
        self._bury()
        now = self._clock.monotonic()
        on = [worker for worker in self._workers if worker.kill_at is None]
        starting = sum(now - worker.born < self._startup for worker in on)
        return CrewLook(len(on), len(self._workers) - len(on), starting)

    async def resize(self, wanted: int) -> None:
        self._bury()
        self._kill_late()
        on = [worker for worker in self._workers if worker.kill_at is None]
        if len(on) < wanted:
            await self._start(min(wanted - len(on), _MOST_STARTS))
        elif len(on) > wanted:
            # Idle ones first, and of these the youngest.
            by_use = sorted(on, key=lambda worker: (self._is_busy(worker.name), -worker.born))
            for worker in by_use[: len(on) - wanted]:
                self._tell_to_stop(worker)

    async def close(self) -> None:
        """All finish their jobs and stop; after the grace nobody is waited for."""
        for worker in self._workers:
            if worker.kill_at is None:
                self._tell_to_stop(worker)
        waits = [asyncio.ensure_future(worker.process.wait()) for worker in self._workers]
        if waits:
            _, late = await asyncio.wait(waits, timeout=self._grace)
            if late:
                log.warning("%s: %d workers did not stop within %g s", self._stage, len(late), self._grace)
                for worker in self._workers:
                    _send(worker, signal.SIGKILL)
                await asyncio.wait(late)
        self._bury()

    async def _start(self, count: int) -> None:
        if self._clock.monotonic() < self._not_before:
            return
        for _ in range(count):
            name = f"{self._stage}-{os.getpid()}-{secrets.token_hex(4)}"
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.DEVNULL,
                    env={**self._environment, "LEVADA_WORKER": name},
                    start_new_session=True,  # Ctrl-C is for us; we tell them
                )
            except OSError as error:
                self._put_off()
                raise LevadaError(f"cannot start {self._command[0]!r}: {error.strerror or error}") from None
            self._workers.append(_Worker(name, process, self._clock.monotonic()))

    def _bury(self) -> None:
        now = self._clock.monotonic()
        failed = False
        for worker in [each for each in self._workers if each.process.returncode is not None]:
            self._workers.remove(worker)
            self._on_end(worker.name)
            if worker.kill_at is not None:
                continue
            status = worker.process.returncode
            if now - worker.born >= _SETTLED:
                self._failures = 0
                log.warning("%s: a worker ended by itself (status %s) and is replaced", self._stage, status)
            else:
                failed = True
        if failed:
            self._put_off()

    def _put_off(self) -> None:
        """Said at the first failure in a row, and no more: the pauses grow, the log must not."""
        if not self._failures:
            log.warning("%s: %r ends as soon as it starts; the pauses grow", self._stage, self._command[0])
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._failures, 30))
        self._failures += 1
        self._not_before = self._clock.monotonic() + pause

    def _tell_to_stop(self, worker: _Worker) -> None:
        worker.kill_at = self._clock.monotonic() + self._grace
        _send(worker, signal.SIGTERM)

    def _kill_late(self) -> None:
        now = self._clock.monotonic()
        for worker in self._workers:
            if worker.kill_at is not None and now >= worker.kill_at:
                _send(worker, signal.SIGKILL)


def _send(worker: _Worker, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        worker.process.send_signal(number)
