"""Parse pages in child processes, so that no page can hurt the crawler.

A child says that it is ready, then reads one page after another. If it dies, the page that it was reading is to
blame (its bookmark tells which); those without an answer are read again by another child. One that dies before it
was ready is no page's fault. Children are started as they are needed, up to `children`.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from typing import cast

import msgspec

from levada.adapters.child_signals import signals_held_back
from levada.adapters.parser_bookmark import Bookmark
from levada.adapters.parser_wire import HEAD, decode_parsed, frame
from levada.errors import LevadaError, ParserDied
from levada.records import ParsedPage, RawPage

__all__ = ["ParserPool"]

_AHEAD = 32  # pages that a child is given before it has answered
_BURST = 16  # pages that are handed out together: a child that is woken for each one runs on cold caches
_GATHER_SECONDS = 0.01  # that a page waits for others
_STARTS = 3  # failed starts in a row after which no more are tried
_SOCKET_BYTES = 1024 * 1024  # on their way to a child, or back: a burst goes out in one piece
_MOST_ANSWER = 256 * 1024 * 1024  # bytes: no page has that much on it
_CHILD = ("-m", "levada.adapters.parser_child")


class _Job:
    __slots__ = ("answer", "message", "url")

    def __init__(self, url: str, message: bytearray, answer: asyncio.Future[ParsedPage]) -> None:
        self.url = url
        self.message = message
        self.answer = answer


class ParserPool:
    def __init__(
        self,
        children: int = 1,
        *,
        memory: int = 1024 * 1024 * 1024,
        cpu_seconds: float = 5.0,
        main_text: str = "builtin",
        program: Sequence[str] = _CHILD,
    ) -> None:
        self._most = children
        self._program = program
        self._arguments = (str(memory), str(cpu_seconds), main_text)
        self._children: list[_Child] = []
        self._waiting: deque[_Job] = deque()
        self._starting = 0
        self._soon: asyncio.TimerHandle | None = None
        self._failed_starts = 0
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def parse(self, page: RawPage) -> ParsedPage:
        if self._closed:
            raise LevadaError("the parser is closed")
        answer: asyncio.Future[ParsedPage] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Job(page.url, frame(page), answer))
        if len(self._waiting) >= _BURST:
            self._hand_out()
        elif self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._hand_out_soon)
        return await answer

    async def close(self) -> None:
        """No child is left when this returns; whoever still waits is told so."""
        self._closed = True
        if self._soon is not None:
            self._soon.cancel()
        self._fail_waiting(LevadaError("the parser is closed"))
        await asyncio.gather(*self._tasks)
        children = list(self._children)
        for child in children:
            child.close()
        await asyncio.gather(*(child.ended for child in children))

    def pids(self) -> list[int]:
        return [child.process.pid for child in self._children]

    def _hand_out_soon(self) -> None:
        self._soon = None
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting:
            child = (
                min(self._children, key=_Child.load, default=None)
                if len(self._children) != 1
                else self._children[0]
            )
            load = _AHEAD if child is None else len(child.jobs)
            if load >= 2:
                self._start_if_allowed()
            if child is None or load >= _AHEAD:
                return
            job = self._waiting.popleft()
            if not job.answer.done():  # its asker may have been cancelled meanwhile
                child.send(job)

    def _start_if_allowed(self) -> None:
        if not self._starting and not self._closed and len(self._children) < self._most:
            self._starting += 1
            task = asyncio.get_running_loop().create_task(self._start())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        bookmark = Bookmark()
        try:
            with theirs:
                for end in (ours, theirs):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
                process = _spawn(self._program, (theirs.fileno(), bookmark.fileno()), self._arguments)
            child = _Child(process, bookmark, self)
            await asyncio.get_running_loop().create_connection(lambda: child, sock=ours)
        except OSError as error:
            ours.close()
            bookmark.close()
            self._fail_waiting(LevadaError(f"the parser child cannot be started: {error}"))
            return
        finally:
            self._starting -= 1
        self._children.append(child)
        self._hand_out()

    def ready(self) -> None:
        self._failed_starts = 0

    def answered(self) -> None:
        if self._waiting:
            self._hand_out()

    def lost(self, child: _Child, status: int) -> None:
        """A child is gone: blame the page that it was reading, hand the others out again."""
        self._children.remove(child)
        jobs = list(child.jobs)
        if self._closed:
            self._fail(jobs, LevadaError("the parser is closed"))
            return
        if not child.is_ready:
            self._failed_starts += 1
        elif jobs:
            guilty = jobs.pop(child.reading())
            self._fail([guilty], _death(status, guilty.url))
        self._waiting.extendleft(reversed(jobs))
        if self._failed_starts >= _STARTS:
            failure = f"the parser child does not start (status {status}): raise parse.memory, or run levada doctor"
            self._fail_waiting(LevadaError(failure))
        self._hand_out()

    def _fail_waiting(self, error: LevadaError) -> None:
        self._fail(list(self._waiting), error)
        self._waiting.clear()

    def _fail(self, jobs: list[_Job], error: LevadaError) -> None:
        for job in jobs:
            if not job.answer.done():
                job.answer.set_exception(error)


class _Child(asyncio.Protocol):
    def __init__(self, process: subprocess.Popen[bytes], bookmark: Bookmark, pool: ParserPool) -> None:
        self.process = process
        self.jobs: deque[_Job] = deque()
        self.is_ready = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pool = pool
        self._bookmark = bookmark
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

    def send(self, job: _Job) -> None:
        self.jobs.append(job)
        self._transport.write(job.message)

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
        buffer, start = self._buffer, 0
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
        self._pool.answered()

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
        if not job.answer.done():
            job.answer.set_result(parsed)

    def connection_lost(self, error: Exception | None) -> None:
        self.process.kill()
        self._pool.lost(self, self.process.wait())
        self._bookmark.close()
        if not self.ended.done():
            self.ended.set_result(None)


def _spawn(program: Sequence[str], descriptors: Sequence[int], arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", *program, *map(str, descriptors), *arguments]
    with signals_held_back():
        return subprocess.Popen(command, pass_fds=descriptors, stdin=subprocess.DEVNULL)  # noqa: S603


def _death(status: int, url: str) -> ParserDied:
    if status == -signal.SIGPROF:
        return ParserDied(f"reading {url} took too much CPU", "parse-seconds")
    return ParserDied(f"reading {url} ended the parser (status {status})")
