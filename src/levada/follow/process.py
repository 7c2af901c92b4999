"""Follower processes beside the crawl, one per shard, supervised as one.

The crawl writes to a follower's input how many changes were committed so far. The follower processes what is new
and writes to its output the number that it reached. A line `q` means: finish and end. If the input closes without
one, the crawl has died, and the next one catches up. The position is stored with the follower's own data, so it may
end at any time and be started again.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from levada.core.balance import MethodLoad
from levada.core.errors import BodiesAway, IndexAway, LevadaError
from levada.core.folder import DataFolder
from levada.core.processes import (
    FreedMemory,
    leave_signals_to_parent,
    module_command,
    signals_held_back,
    tune_allocator,
)
from levada.scale.statistics import InProcessStatistics

if TYPE_CHECKING:
    import subprocess


_STARTS = 3  # after so many ends in a row that nobody asked for, no more are tried
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # seconds
_FIRST_GATHERING = 0.5  # seconds: whoever has just begun wants to see something
_TRY_AGAIN = 5.0  # seconds after which a search engine that was away is asked again
_FREED_AFTER = 2_000  # changes, after which freed memory goes back to the kernel
_MOST_LINE = 4_000  # bytes: less than a pipe takes in one piece


class _Heard(msgspec.Struct, frozen=True):
    """Counters of the process since it began."""

    told: int = 0  # up to here everything is taken in
    beyond: int = 0  # changes taken in since; some may not be among those told
    is_even: bool = False  # everything that there was is taken in
    seconds: float = 0.0  # that it worked
    balance: MethodLoad | None = None


_decode = msgspec.json.Decoder(_Heard).decode


class Follower:
    """The crawl's side: a stage with at most one worker, which runs while there is something to do."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._command = module_command(module, *arguments)
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ending = False
        self._is_behind = True  # what an earlier crawl left undone is not known before the process says so
        self._arrived = self._told = self._done = 0
        self._work = 0.0  # seconds of processes that have ended
        self._heard = _Heard()
        self._unread = b""
        self._failures = 0
        self._trouble = ""
        self._start()

    @property
    def balance(self) -> MethodLoad | None:
        return self._heard.balance

    def wake(self, changes: int = 1) -> None:
        """Report that so many more changes were committed; if the pipe is full, the next call reports them."""
        self._arrived += changes
        self._tell()

    def poll(self) -> InProcessStatistics:
        self._listen()
        if self._told < self._arrived:
            self._tell()
        waiting = self._arrived - self._done
        is_on = self._process is not None and not self._is_ending
        return InProcessStatistics(
            queue=0 if self._failures >= _STARTS else max(waiting, int(self._is_behind)),
            on=is_on,
            busy=self._process is not None and (self._is_behind or self._told > self._done),
            starting=is_on and not self._heard.seconds,
            arrived=self._arrived,
            done=self._done,
            work=self._work + self._heard.seconds,
        )

    def resize(self, wanted: int) -> None:
        if wanted > 0 and self._process is None and self._failures < _STARTS:
            self._start()
        elif wanted <= 0 and self._process is not None and not self._is_behind and self._done >= self._arrived:
            self._is_ending = True
            self._say(b"q\n")

    def finish(self) -> str | None:
        """Wait until the last document is processed; a sentence if it could not be."""
        self._listen()
        if self._process is not None:
            self._end()
        if self._failures < _STARTS and (self._is_behind or self._done < self._arrived):
            self._start()
            self._end()
        is_done = not self._is_behind and self._done >= self._arrived
        return None if is_done else self._trouble or "its process ended before it was done"

    def _start(self) -> None:
        import subprocess  # here: the child starts nobody

        with signals_held_back():
            self._process = subprocess.Popen(  # noqa: S603
                self._command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        self._is_ending, self._heard, self._unread, self._told = False, _Heard(balance=self.balance), b"", 0
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for pipe in (self._process.stdin, self._process.stdout):
            os.set_blocking(pipe.fileno(), False)  # one that is far behind must not hold up the crawl
        if self._arrived:
            self._tell()

    def _end(self) -> None:
        """Ask the process to finish, and wait for it."""
        assert self._process is not None
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), True)
        self._say(f"{self._arrived}\nq\n".encode())
        heard, said = self._process.communicate()
        self._hear(heard)
        self._reap(said)

    def _tell(self) -> None:
        if self._say(b"%d\n" % self._arrived):
            self._told = self._arrived

    def _say(self, line: bytes) -> bool:
        if self._process is None or self._process.stdin is None:
            return False
        with suppress(BrokenPipeError, ValueError):  # it has ended; why is found out soon
            return self._process.stdin.write(line) is not None
        return False

    def _listen(self) -> None:
        """Read its output, and see whether it has ended."""
        if self._process is None:
            return
        has_ended = self._process.poll() is not None  # first: then nothing that it said is missed
        assert self._process.stdout is not None
        with suppress(BlockingIOError):
            while heard := os.read(self._process.stdout.fileno(), 65536):
                self._hear(heard)
        if has_ended:
            self._reap(self._process.communicate()[1])

    def _hear(self, heard: bytes) -> None:
        *lines, self._unread = (self._unread + heard).split(b"\n")
        for line in lines:
            with suppress(msgspec.MsgspecError):
                self._heard = _decode(line)
                self._is_behind = self._is_behind and not self._heard.is_even
                self._done = min(self._arrived, max(self._done, self._heard.told + self._heard.beyond))
                self._failures = 0

    def _reap(self, said: bytes) -> None:
        assert self._process is not None
        status = self._process.returncode
        self._work += self._heard.seconds
        self._heard = _Heard(balance=self.balance)
        self._process = None
        if status:
            self._failures += 1
            self._is_behind = True
            self._trouble = said.decode("utf-8", "replace").strip() or f"it ended with status {status}"


def run_child(main: Callable[[list[str]], None]) -> None:
    """Run a follower's main function; an error of ours is one line on standard error."""
    try:
        main(sys.argv[1:])
    except LevadaError as error:
        sys.exit(str(error))


def begin_following() -> None:
    """First call in the child."""
    leave_signals_to_parent()
    tune_allocator()
    os.nice(10)  # pages come first: what is taken in a little later is taken in larger batches
    os.set_blocking(sys.stdout.fileno(), False)  # a crawl that does not listen holds nobody up


CatchUp = Callable[[Callable[[int], None]], object]
"""Process what is new, and report after each batch the step that it reached."""


def follow(catch_up: CatchUp, gather_seconds: float, balance: Callable[[], MethodLoad | None] = lambda: None) -> None:
    """Catch up whenever the crawl reports changes, at most once in so many seconds, until it ends."""
    said, diary, seconds = b"\n", _CatchUpLog(balance), min(_FIRST_GATHERING, gather_seconds)
    while said:
        diary.begin(_told(said))
        try:
            _patiently(catch_up, diary.went_on)
        except IndexAway:
            if b"q" in said:
                raise
            said = _next_words(seconds, _TRY_AGAIN)  # what is new waits in the change log
            continue
        diary.end()
        if b"q" in said:
            return
        said = _next_words(seconds)
        seconds = min(2 * seconds, gather_seconds)


def _patiently(catch_up: CatchUp, went_on: Callable[[int], None]) -> None:
    """Try again for a minute while the place of the bodies cannot be reached."""
    for pause in _PAUSES:
        try:
            catch_up(went_on)
        except BodiesAway:
            time.sleep(pause)
        else:
            return
    catch_up(went_on)


class _CatchUpLog:
    """Reports to the crawl after each batch."""

    def __init__(self, balance: Callable[[], MethodLoad | None]) -> None:
        self._balance = balance
        self._told = self._beyond = 0
        self._seq: int | None = None
        self._seconds = self._began = 0.0
        self._freed = FreedMemory(_FREED_AFTER)

    def begin(self, told: int) -> None:
        self._began = time.perf_counter()
        self._told = max(self._told, told)

    def went_on(self, seq: int) -> None:
        taken = 0 if self._seq is None else max(0, seq - self._seq)
        self._beyond += taken
        self._seq = seq
        self._freed.passed(taken)
        self._work()
        _report(_Heard(0, self._beyond, False, self._seconds, self._balance()))

    def end(self) -> None:
        self._beyond = self._told  # now it is known exactly
        self._work()
        _report(_Heard(self._told, 0, True, self._seconds, self._balance()))

    def _work(self) -> None:
        now = time.perf_counter()
        self._seconds, self._began = self._seconds + now - self._began, now


def _told(said: bytes) -> int:
    """The latest number whose line is complete."""
    return max((int(line) for line in said.split(b"\n")[:-1] if line.isdigit()), default=0)


def _report(heard: _Heard) -> None:
    line = msgspec.json.encode(heard)
    if len(line) > _MOST_LINE:
        line = msgspec.json.encode(msgspec.structs.replace(heard, balance=None))
    with suppress(BlockingIOError, BrokenPipeError):  # the next one says it too
        os.write(sys.stdout.fileno(), line + b"\n")


def _next_words(gather_seconds: float, patience: float | None = None) -> bytes:
    """The crawl's messages, once some documents have gathered or it is about to end; nothing if it has died. With
    `patience` an empty line, if there are none for so many seconds."""
    if not select.select([sys.stdin], [], [], patience)[0]:
        return b"\n"
    said = b""
    until = time.monotonic() + gather_seconds
    while b"q" not in said:
        left = until - time.monotonic() if said else None
        if left is not None and (left <= 0 or not select.select([sys.stdin], [], [], left)[0]):
            break
        heard = os.read(sys.stdin.fileno(), 65536)
        if not heard:
            return b""
        said += heard
    return said


def followers(folder: DataFolder, follow: Callable[[DataFolder], Follower]) -> Follower | ShardFollowers:
    """A follower for each shard, or for the one store."""
    return ShardFollowers(folder, follow) if folder.placement.exists() else follow(folder)


class ShardFollowers:
    """Followers of all shards; those that a move adds while the crawl runs are followed from the next change on."""

    def __init__(self, folder: DataFolder, follow: Callable[[DataFolder], Follower]) -> None:
        from levada.store.sharded.plan import PlanFile  # here: most collections have one shard and no plan

        self._folder = folder
        self._follow = follow
        self._members: list[Follower] = []
        self._plan = PlanFile(folder.placement)
        self._grow()

    @property
    def balance(self) -> MethodLoad | None:
        """The load balance of the shard that counted most."""
        loads = [member.balance for member in self._members]
        return max((load for load in loads if load), key=lambda load: sum(load.loads), default=None)

    def wake(self, changes: int = 1) -> None:
        """Wake every follower: each sees for itself whether it has work, and looking costs little."""
        self._grow()
        for member in self._members:
            member.wake(changes)

    def poll(self) -> InProcessStatistics:
        each = [member.poll() for member in self._members]
        return InProcessStatistics(
            queue=max(one.queue for one in each),
            on=max(one.on for one in each),  # the team is one worker: each of its members has a shard to itself
            busy=max(one.busy for one in each),
            starting=max(one.starting for one in each),
            arrived=max(one.arrived for one in each),
            done=min(one.done for one in each),
            work=sum(one.work for one in each),
        )

    def resize(self, wanted: int) -> None:
        for member in self._members:
            member.resize(min(1, wanted))

    def finish(self) -> str | None:
        self._plan.close()
        said = [trouble for member in self._members if (trouble := member.finish())]
        return said[0] if said else None

    def _grow(self) -> None:
        for place in self._plan.read().shards[len(self._members) :]:
            shard = DataFolder(self._folder.path / place.folder)
            shard.make()
            self._members.append(self._follow(shard))
