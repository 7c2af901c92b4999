"""One parser child, as its parent sees it."""

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

from levada.core.errors import ParserDied
from levada.core.processes import signals_held_back
from levada.core.records import ParsedPage, RawPage
from levada.parser.channel import (
    HEAD,
    ParserSetup,
    ProgressMarker,
    SharedPageBuffer,
    decode_parsed,
    frame,
    parse_request,
)

_MOST_ANSWER = 256 * 1024 * 1024  # bytes: no page has that much on it
_MOST_SENTENCE = 2_000  # bytes


class ParseJob:
    __slots__ = ("answer", "is_buffered", "page")

    def __init__(self, page: RawPage, answer: asyncio.Future[ParsedPage]) -> None:
        self.page = page
        self.answer = answer
        self.is_buffered = False


class _Pool(Protocol):
    def ready(self) -> None: ...
    def answered(self, child: ParserProcess, count: int) -> None: ...
    def lost(self, child: ParserProcess, status: int) -> None: ...


class ParserProcess(asyncio.Protocol):
    def __init__(
        self,
        process: subprocess.Popen[bytes],
        progress_marker: ProgressMarker,
        page_buffer: SharedPageBuffer,
        pool: _Pool,
        setup: ParserSetup,
    ) -> None:
        self.process = process
        self.jobs: deque[ParseJob] = deque()
        self.is_ready = False
        self.has_left = False
        self.refusal = ""  # why it cannot read pages, as it says
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._pool = pool
        self._setup = setup
        self._progress_marker = progress_marker
        self._page_buffer = page_buffer
        self._outgoing: list[bytearray] = []
        self._started = self._loop.time()
        self._seconds = 0.0
        self._answered = 0
        self._spoke_nonsense = False
        self._buffer = bytearray()

    def load(self) -> int:
        return len(self.jobs)

    def reading(self) -> int:
        """Index of the job that the child is at, or was at when it died."""
        if self._spoke_nonsense:  # in place of the first answer that is missing, however far it has read since
            return 0
        place = self._progress_marker.begun() - self._answered - 1
        return place if 0 <= place < len(self.jobs) else 0  # a child that was broken may have written anything

    def seconds(self) -> float:
        """Seconds that it has read, as far as that is possible: no more than it lives, never less than before."""
        said = self._progress_marker.seconds()
        if math.isfinite(said):
            self._seconds = max(self._seconds, min(said, self._loop.time() - self._started))
        return self._seconds

    def give(self, job: ParseJob) -> None:
        """Add a page to what is sent next."""
        place = self._page_buffer.put(job.page.body)
        job.is_buffered = place is not None
        self.jobs.append(job)
        self._outgoing.append(frame(parse_request(job.page, place)))

    def send(self) -> None:
        """Send what was given, together: a child that is woken for each page runs on cold caches."""
        if self._outgoing:
            self._transport.write(b"".join(self._outgoing))
            self._outgoing.clear()

    def leave(self) -> None:
        """End it: it has nothing left to do."""
        self.has_left = True
        self._transport.close()

    def close(self) -> None:
        self.process.kill()
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is one without saying so
        self._transport.write(frame(self._setup))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            self._read_answers()
        except (msgspec.MsgspecError, ValueError):
            self._spoke_nonsense = True
            self.close()  # a page has taken the child over

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
            self.refusal = bytes(message[:_MOST_SENTENCE]).decode("utf-8", "replace")
            self.is_ready = not self.refusal
            if self.is_ready:
                self._pool.ready()
            return
        if not self.jobs:
            raise ValueError("an answer that nobody asked for")
        parsed = decode_parsed(message)
        job = self.jobs.popleft()
        self._answered += 1
        if job.is_buffered:
            self._page_buffer.take_oldest()
        if not job.answer.done():
            job.answer.set_result(parsed)

    def connection_lost(self, error: Exception | None) -> None:
        self.process.kill()
        self._pool.lost(self, self.process.wait())
        self._progress_marker.close()
        self._page_buffer.close()
        if not self.ended.done():
            self.ended.set_result(None)


def spawn(program: Sequence[str], descriptors: Sequence[int], arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", *program, *map(str, descriptors), *arguments]
    with signals_held_back():
        return subprocess.Popen(command, pass_fds=descriptors, stdin=subprocess.DEVNULL)  # noqa: S603


def death(status: int, url: str) -> ParserDied:
    if status in (-signal.SIGPROF, -signal.SIGALRM):
        return ParserDied(f"reading {url} took too long", "parse-seconds")
    return ParserDied(f"reading {url} ended the parser (status {status})")
