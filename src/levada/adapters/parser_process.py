"""One parser child, seen from its parent: what it was given, what it answered, how it ended."""

from __future__ import annotations

import asyncio
import math
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from typing import Protocol, cast

import msgspec

from levada.adapters.child_signals import signals_held_back
from levada.adapters.parser_bookmark import Bookmark
from levada.adapters.parser_desk import Desk
from levada.adapters.parser_wire import HEAD, decode_parsed, errand, frame
from levada.errors import ParserDied
from levada.records import ParsedPage, RawPage

__all__ = ["Job", "ParserProcess", "death", "spawn"]

_MOST_ANSWER = 256 * 1024 * 1024  # bytes: no page has that much on it


class Job:
    __slots__ = ("answer", "lies_on_desk", "page")

    def __init__(self, page: RawPage, answer: asyncio.Future[ParsedPage]) -> None:
        self.page = page
        self.answer = answer
        self.lies_on_desk = False


class _Pool(Protocol):
    def ready(self) -> None: ...
    def answered(self, child: ParserProcess, count: int) -> None: ...
    def lost(self, child: ParserProcess, status: int) -> None: ...


class ParserProcess(asyncio.Protocol):
    def __init__(self, process: subprocess.Popen[bytes], bookmark: Bookmark, desk: Desk, pool: _Pool) -> None:
        self.process = process
        self.jobs: deque[Job] = deque()
        self.is_ready = False
        self.has_left = False
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._pool = pool
        self._bookmark = bookmark
        self._desk = desk
        self._outgoing: list[bytearray] = []
        self._started = self._loop.time()
        self._seconds = 0.0
        self._answered = 0
        self._spoke_nonsense = False
        self._buffer = bytearray()

    def load(self) -> int:
        return len(self.jobs)

    def reading(self) -> int:
        """Which of its jobs the child is at, or was when it died."""
        if self._spoke_nonsense:  # over the first that it has not answered, however far it has read since
            return 0
        place = self._bookmark.begun() - self._answered - 1
        return place if 0 <= place < len(self.jobs) else 0  # a child that was broken may have written anything

    def seconds(self) -> float:
        """How long it has read, as far as that can be: no longer than it lives, and never less than before."""
        said = self._bookmark.seconds()
        if math.isfinite(said):
            self._seconds = max(self._seconds, min(said, self._loop.time() - self._started))
        return self._seconds

    def give(self, job: Job) -> None:
        """One page more, once it is sent."""
        place = self._desk.put(job.page.body)
        job.lies_on_desk = place is not None
        self.jobs.append(job)
        self._outgoing.append(frame(errand(job.page, place)))

    def send(self) -> None:
        """What was given goes out together: a child that is woken for each page runs on cold caches."""
        if self._outgoing:
            self._transport.write(b"".join(self._outgoing))
            self._outgoing.clear()

    def leave(self) -> None:
        """It has nothing left to do."""
        self.has_left = True
        self._transport.close()

    def close(self) -> None:
        self.process.kill()
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is one without saying so

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            self._read_answers()
        except (msgspec.MsgspecError, ValueError):
            self._spoke_nonsense = True
            self.close()  # whatever speaks there is no longer our child

    def _read_answers(self) -> None:
        buffer, start, before = self._buffer, 0, self._answered
        try:
            while len(buffer) - start >= HEAD.size:
                size = HEAD.unpack_from(buffer, start)[0]
                if size > _MOST_ANSWER:
                    raise ValueError(f"an answer of {size} bytes")
                end = start + HEAD.size + size
                if len(buffer) < end:
                    break
                with memoryview(buffer) as view:
                    self._answer(view[start + HEAD.size : end])
                start = end
            del buffer[:start]
        finally:
            self._pool.answered(self, self._answered - before)

    def _answer(self, message: memoryview) -> None:
        if not self.is_ready:
            self.is_ready = True
            self._pool.ready()
            return
        if not self.jobs:
            raise ValueError("an answer that nobody asked for")
        parsed = decode_parsed(message)
        job = self.jobs.popleft()
        self._answered += 1
        if job.lies_on_desk:
            self._desk.take_oldest()
        if not job.answer.done():
            job.answer.set_result(parsed)

    def connection_lost(self, error: Exception | None) -> None:
        self.process.kill()
        self._pool.lost(self, self.process.wait())
        self._bookmark.close()
        self._desk.close()
        if not self.ended.done():
            self.ended.set_result(None)


def spawn(program: Sequence[str], descriptors: Sequence[int], arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", *program, *map(str, descriptors), *arguments]
    with signals_held_back():
        return subprocess.Popen(command, pass_fds=descriptors, stdin=subprocess.DEVNULL)  # noqa: S603


def death(status: int, url: str) -> ParserDied:
    if status == -signal.SIGPROF:
        return ParserDied(f"reading {url} took too much CPU", "parse-seconds")
    return ParserDied(f"reading {url} ended the parser (status {status})")
