"""Worker pools on this machine: fetch slots, pools inside the process, and processes started from a command."""

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
from typing import Protocol

import msgspec

from levada.core.errors import LevadaError, UsageError
from levada.core.protocols import Clock
from levada.scale.statistics import InProcessStatistics, PoolStatistics

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_STARTED = 10.0  # seconds: a process that lived longer did not fail at its start
_MOST_STARTS = 32  # in one round: a machine that starts hundreds at once does nothing else


class WorkerPool(Protocol):
    """The workers of one stage."""

    async def poll(self) -> PoolStatistics: ...

    async def resize(self, wanted: int) -> None:
        """Have this many workers from now on.

        A worker that is stopped finishes its job first; a crashed one is replaced, with growing pauses.
        """
        ...

    async def close(self) -> None: ...


class InProcessPool(Protocol):
    """A pool inside this process: it answers at once, counts its own jobs, and is closed by its owner."""

    def poll(self) -> InProcessStatistics: ...

    def resize(self, wanted: int) -> None:
        """Have this many workers soon. A worker that is stopped finishes its job first; nothing is lost."""
        ...


class InProcess:
    """A pool inside this process as the autoscaler uses it."""

    def __init__(self, pool: InProcessPool) -> None:
        self._pool = pool

    async def poll(self) -> InProcessStatistics:
        return self._pool.poll()

    async def resize(self, wanted: int) -> None:
        self._pool.resize(wanted)

    async def close(self) -> None:
        """Nothing to do: the owner closes the pool."""


class FetchSlots:
    """Fetch slots: how many pages may be fetched at the same time; the workers of the fetch stage.

    A slot is not a process: one more or fewer costs nothing, and a fetch keeps its slot until it has its answer.
    `waiting` returns how many pages wait only for a slot. Seconds are wall time.
    """

    def __init__(self, most: int, clock: Clock, speed: float, waiting: Callable[[], int]) -> None:
        self.most = most
        self.limit = most
        self.under_way = 0
        self._clock = clock
        self._speed = speed
        self._waiting = waiting
        self._begun = self._done = 0
        self._work = 0.0
        self._since = self._wall()

    @property
    def free(self) -> bool:
        return self.under_way < self.limit

    def begin(self) -> None:
        self._count_work()
        self.under_way += 1
        self._begun += 1

    def end(self) -> None:
        self._count_work()
        self.under_way -= 1
        self._done += 1

    def poll(self) -> InProcessStatistics:
        self._count_work()
        return InProcessStatistics(
            queue=0 if self.free else self._waiting(),
            on=self.limit,
            busy=self.under_way,
            arrived=self._begun,
            done=self._done,
            work=self._work,
        )

    def resize(self, wanted: int) -> None:
        self.limit = min(max(1, wanted), self.most)

    def _count_work(self) -> None:
        now = self._wall()
        self._work += self.under_way * (now - self._since)
        self._since = now

    def _wall(self) -> float:
        return self._clock.monotonic() / self._speed


class OneOfSeveral:
    """A pool that several processes see: it is resized by the one that `leads`."""

    def __init__(self, pool: WorkerPool, leads: Callable[[], bool]) -> None:
        self._pool = pool
        self._leads = leads

    async def poll(self) -> PoolStatistics:
        return await self._pool.poll()

    async def resize(self, wanted: int) -> None:
        if self._leads():
            await self._pool.resize(wanted)

    async def close(self) -> None:
        await self._pool.close()


class RemoteWorkers:
    """Workers that others run: this only sees how many report."""

    def __init__(self, reporting: Callable[[], int]) -> None:
        self._reporting = reporting

    async def poll(self) -> PoolStatistics:
        return PoolStatistics(self._reporting())

    async def resize(self, wanted: int) -> None:
        """Nothing to do: how many there should be is only told."""

    async def close(self) -> None:
        """They go on."""


def parse_command(text: str) -> list[str]:
    """The words of a command, without a shell. `UsageError` if there is no such program."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the command {text!r} cannot be read: {error}") from None
    if not words:
        raise UsageError("a stage needs a command to run: name=queue,least,most,command")
    if shutil.which(words[0]) is None:
        raise UsageError(f"there is no program {words[0]!r}: give its full path, or install it")
    return words


class _Worker(msgspec.Struct, eq=False):
    name: str
    process: asyncio.subprocess.Process
    born: float
    kill_at: float | None = None  # told to stop


class LocalProcesses:
    """Workers that are processes of this machine.

    SIGTERM tells a process to finish its job and stop; SIGKILL follows after `grace` seconds. A process that ends
    by itself is replaced. If it ended soon after its start, the replacement waits for a pause that doubles.

    Each process finds its stage and its name in `LEVADA_STAGE` and `LEVADA_WORKER`, and the process that started it
    in `LEVADA_CONTROL`: a worker with another parent is an orphan and should end.

    `is_busy` tells which workers have a job, so that idle ones go first. A process counts as up `startup` seconds
    after its start. `on_end` is called with the name of each process that has ended.
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
        """The ids of the processes that run and are not told to stop."""
        return [worker.process.pid for worker in self._workers if worker.kill_at is None]

    async def poll(self) -> PoolStatistics:
        self._remove_ended()
        now = self._clock.monotonic()
        on = [worker for worker in self._workers if worker.kill_at is None]
        starting = sum(now - worker.born < self._startup for worker in on)
        return PoolStatistics(len(on), len(self._workers) - len(on), starting)

    async def resize(self, wanted: int) -> None:
        self._remove_ended()
        now = self._clock.monotonic()
        for late in (worker for worker in self._workers if worker.kill_at is not None and now >= worker.kill_at):
            _send(late, signal.SIGKILL)
        on = [worker for worker in self._workers if worker.kill_at is None]
        if len(on) < wanted:
            await self._start(min(wanted - len(on), _MOST_STARTS))
        elif len(on) > wanted:
            # Idle ones first, and of these the youngest.
            by_use = sorted(on, key=lambda worker: (self._is_busy(worker.name), -worker.born))
            for worker in by_use[: len(on) - wanted]:
                self._tell_to_stop(worker)

    async def close(self) -> None:
        """Let all finish their jobs and stop; after the grace period they are killed."""
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
        self._remove_ended()

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
                    start_new_session=True,  # Ctrl-C reaches only this process, which stops them
                )
            except OSError as error:
                self._delay_starts()
                raise LevadaError(f"cannot start {self._command[0]!r}: {error.strerror or error}") from None
            self._workers.append(_Worker(name, process, self._clock.monotonic()))

    def _remove_ended(self) -> None:
        now = self._clock.monotonic()
        failed = False
        for worker in [each for each in self._workers if each.process.returncode is not None]:
            self._workers.remove(worker)
            self._on_end(worker.name)
            if worker.kill_at is not None:
                continue
            status = worker.process.returncode
            if now - worker.born >= _STARTED:
                self._failures = 0
                log.warning("%s: a worker ended by itself (status %s) and is replaced", self._stage, status)
            else:
                failed = True
        if failed:
            self._delay_starts()

    def _delay_starts(self) -> None:
        """Pause before the next start; of failures in a row, only the first is logged."""
        if not self._failures:
            log.warning("%s: %r ends as soon as it starts; the pauses grow", self._stage, self._command[0])
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._failures, 30))
        self._failures += 1
        self._not_before = self._clock.monotonic() + pause

    def _tell_to_stop(self, worker: _Worker) -> None:
        worker.kill_at = self._clock.monotonic() + self._grace
        _send(worker, signal.SIGTERM)


def _send(worker: _Worker, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        worker.process.send_signal(number)
