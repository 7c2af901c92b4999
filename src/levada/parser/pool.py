"""Pool of parser children; no page can hurt the crawler.

A child says that it is ready, then reads one page after another. If it dies, the page that it was reading is to
blame (its progress marker tells which); those without an answer are read again by another child. If it dies before
it was ready, no page is to blame.

Children are started as they are needed, up to `children`, or as the autoscaler decides (`resize`). A child that is
to end finishes its pages first; while pages wait there is always one child. One that gets nowhere for minutes, though
its CPU limit does not end it (it was stopped, or waits for a disk), is killed.
"""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import cast

import msgspec

from levada.core.errors import LevadaError, ParserDied, PluginError
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
from levada.parser.waiting import SLOW, WaitingPages
from levada.scale.statistics import InProcessStatistics

_AHEAD = 32  # pages that a child is given before it has answered
_BURST = 16  # pages that are handed out together
_GATHER_SECONDS = 0.01  # that a page waits for others
_STARTS = 3  # failed starts in a row after which no more are tried
_SOCKET_BYTES = 1024 * 1024  # on their way to a child, or back: a burst goes out in one piece
_CHILD = ("-m", "levada.parser.child")
_MOST_ANSWER = 256 * 1024 * 1024  # bytes: no page has that much on it
_MOST_SENTENCE = 2_000  # bytes
_LOOK = 5.0  # seconds between two looks at whether children get on
_STALLED = 12  # times its CPU seconds, and half a minute more: then a child gets nowhere


class ParseJob(msgspec.Struct, eq=False):
    page: RawPage
    answer: asyncio.Future[ParsedPage]
    site: str
    is_buffered: bool = False


class ParserProcess(asyncio.Protocol):
    def __init__(
        self,
        process: subprocess.Popen[bytes],
        progress_marker: ProgressMarker,
        page_buffer: SharedPageBuffer,
        pool: ParserPool,
        setup: ParserSetup,
    ) -> None:
        self.process = process
        self.jobs: deque[ParseJob] = deque()
        self.is_ready = False
        self.has_left = False
        self.refusal = ""  # why it cannot read pages, as it says
        self.alone = False  # it reads one page of a slow site, and is given nothing else
        self.read: list[str] = []  # the sites of pages that it answered, and nobody has paid for
        self.paid = 0.0  # seconds of reading
        self.seen: tuple[int, int, float] = (-1, -1, 0.0)  # pages begun and answered, and since when it stands there
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
        place = self._progress_marker.read()[0] - self._answered - 1
        return place if 0 <= place < len(self.jobs) else 0  # a child that was broken may have written anything

    def seconds(self) -> float:
        """Seconds that it has read, as far as that is possible: no more than it lives, never less than before."""
        _, said = self._progress_marker.read()
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

    def has_stalled(self, now: float, seconds: float) -> bool:
        """Whether it has pages, and neither began nor answered one in so many seconds."""
        begun, answered, since = self.seen
        progress = self._progress_marker.read()[0], self._answered
        if not self.jobs or progress != (begun, answered):
            self.seen = (*progress, now)
            return False
        return now - since > seconds

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
                self._pool.failed_starts = 0
            return
        if not self.jobs:
            raise ValueError("an answer that nobody asked for")
        parsed = decode_parsed(message)
        job = self.jobs.popleft()
        self._answered += 1
        self.read.append(job.site)
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


class ParserPool:
    def __init__(
        self,
        children: int = 1,
        *,
        memory: int = 1024 * 1024 * 1024,
        cpu_seconds: float = 5.0,
        setup: ParserSetup = ParserSetup(),  # noqa: B008 - frozen
        program: Sequence[str] = _CHILD,
        capacity: float = float("inf"),
    ) -> None:
        self.most = children
        self._wanted = children
        self._program = program
        self._arguments = (str(memory), str(cpu_seconds))
        self._setup = setup
        self._capacity = capacity  # pages that may wait before no more should come
        self._children: list[ParserProcess] = []
        self._leaving: list[ParserProcess] = []  # get no more pages, and end after those that they have
        self._waiting = WaitingPages[ParseJob]()
        self._cpu_seconds = cpu_seconds
        self._looking: asyncio.TimerHandle | None = None
        self._starting = 0
        self._soon: asyncio.TimerHandle | None = None
        self.failed_starts = 0
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived = self._done = 0
        self._work = 0.0  # seconds of reading by children that have ended

    async def parse(self, page: RawPage) -> ParsedPage:
        if self._closed:
            raise LevadaError("the parser is closed")
        answer: asyncio.Future[ParsedPage] = asyncio.get_running_loop().create_future()
        self._waiting.add(ParseJob(page, answer, _site(page.url)))
        self._arrived += 1
        if len(self._waiting) >= _BURST:
            self._hand_out()
        elif self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._hand_out_soon)
        return await answer

    async def close(self) -> None:
        """End all children; pages that still wait fail."""
        self._closed = True
        for timer in (self._soon, self._looking):
            if timer is not None:
                timer.cancel()
        self._fail_waiting(LevadaError("the parser is closed"))
        await asyncio.gather(*self._tasks)
        children = self._children + self._leaving
        for child in children:
            child.close()
        await asyncio.gather(*(child.ended for child in children))

    def pids(self) -> list[int]:
        return [child.process.pid for child in self._children + self._leaving]

    def poll(self) -> InProcessStatistics:
        children = self._children + self._leaving
        loads = [child.load() for child in children]
        return InProcessStatistics(
            queue=len(self._waiting) + sum(max(0, load - 1) for load in loads),
            on=len(self._children) + self._starting,
            busy=sum(load > 0 for load in loads),
            starting=self._starting + sum(not child.is_ready for child in self._children),
            arrived=self._arrived,
            done=self._done,
            work=self._work + sum(child.seconds() for child in children),
            capacity=self._capacity,
        )

    def resize(self, wanted: int) -> None:
        """Idle children end first; one that is leaving and still busy is kept before another is started."""
        if self._closed:
            return
        self._wanted = min(max(0, wanted), self.most)
        missing = self._wanted - len(self._children) - self._starting
        while missing > 0 and (self._keep_one() or self._may_start()):
            missing -= 1
        surplus = len(self._children) + self._starting - max(self._wanted, bool(self._waiting))
        for child in sorted(self._children, key=ParserProcess.load)[: max(0, surplus)]:
            self._children.remove(child)
            self._leaving.append(child)
            self._end_if_idle(child)

    def _keep_one(self) -> bool:
        """Whether a child that was about to end stays."""
        child = next((child for child in self._leaving if not child.has_left), None)
        if child is None:
            return False
        self._leaving.remove(child)
        self._children.append(child)
        return True

    def _may_start(self) -> bool:
        """Start one, unless the last start failed and no page waits; whether it is started."""
        if self.failed_starts and not self._waiting:
            return False
        self._begin_start()
        return True

    def _end_if_idle(self, child: ParserProcess) -> None:
        if not child.jobs and not child.has_left and child in self._leaving:
            child.leave()

    def _hand_out_soon(self) -> None:
        self._soon = None
        self._hand_out()

    def _hand_out(self) -> None:
        self._divide()
        for child in self._children:
            child.send()
        if self._looking is None and not self._closed:
            self._looking = asyncio.get_running_loop().call_later(_LOOK, self._look)

    def _look(self) -> None:
        """Kill children that get nowhere: the page that such a one reads is blamed, and the others are read."""
        self._looking = None
        now = asyncio.get_running_loop().time()
        children = self._children + self._leaving
        for child in children:
            if child.has_stalled(now, 30.0 + _STALLED * self._cpu_seconds):
                child.close()
        if any(child.jobs for child in children) or self._waiting:
            self._looking = asyncio.get_running_loop().call_later(_LOOK, self._look)

    def _divide(self) -> None:
        while self._waiting:
            if not self._children and not self._starting:
                self._keep_one()
            if self._give_slow():
                continue
            child = min((each for each in self._children if not each.alone), key=ParserProcess.load, default=None)
            load = _AHEAD if child is None else len(child.jobs)
            if load >= 2 and not self._starting and not self._closed and len(self._children) < max(1, self._wanted):
                self._begin_start()
            if child is None or load >= _AHEAD:
                return
            job = self._waiting.take_quick()
            if job is None:
                return
            self._give(child, job)

    def _give_slow(self) -> bool:
        """Give a page of a slow site to a child that has nothing else to read; whether that was done."""
        if not self._waiting.is_turn_of_slow:
            return False
        alone = [child for child in self._children if child.alone]
        if len(alone) < max(1, len(self._children) - self._waiting.has_quick):
            others = (child for child in self._children if not child.alone)
            alone = [child for child in (min(others, key=ParserProcess.load, default=None),) if child is not None]
        child = next((child for child in alone if not child.jobs), None)
        for each in alone:
            each.alone = True  # one that still has pages finishes them first
        if child is None or (job := self._waiting.take_slow()) is None:
            return False
        self._give(child, job)
        return True

    def _give(self, child: ParserProcess, job: ParseJob) -> None:
        if job.answer.done():  # it was cancelled meanwhile
            self._done += 1
        else:
            child.give(job)

    def _begin_start(self) -> None:
        self._starting += 1
        task = asyncio.get_running_loop().create_task(self._start())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self) -> None:
        try:
            with ExitStack() as if_it_fails:
                child = await self._meet(if_it_fails)
                if_it_fails.pop_all()
        except OSError as error:
            self.failed_starts += 1
            self._fail_waiting(LevadaError(f"the parser child cannot be started: {error}"))
            return
        finally:
            self._starting -= 1
        if not child.ended.done():  # one that died on the way is counted as lost already
            self._children.append(child)
        self._hand_out()

    async def _meet(self, if_it_fails: ExitStack) -> ParserProcess:
        ours, theirs = map(if_it_fails.enter_context, socket.socketpair())
        progress_marker = if_it_fails.enter_context(closing(ProgressMarker()))
        page_buffer = if_it_fails.enter_context(closing(SharedPageBuffer()))
        with theirs:
            for end in (ours, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
            shared = (theirs.fileno(), progress_marker.fileno(), page_buffer.fileno())
            process = self._spawn(shared)
        child = ParserProcess(process, progress_marker, page_buffer, self, self._setup)
        await asyncio.get_running_loop().create_connection(lambda: child, sock=ours)
        return child

    def _spawn(self, shared: Sequence[int]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", *self._program, *map(str, shared), *self._arguments]
        with signals_held_back():
            return subprocess.Popen(command, pass_fds=shared, stdin=subprocess.DEVNULL)  # noqa: S603

    def answered(self, child: ParserProcess, count: int) -> None:
        self._done += count
        if child.read:
            seconds = child.seconds()
            self._waiting.spent(child.read, max(0.0, seconds - child.paid))
            child.read, child.paid = [], seconds
        if not child.jobs:
            child.alone = False
        if self._waiting:
            self._hand_out()
        if self._leaving:
            self._end_if_idle(child)

    def lost(self, child: ParserProcess, status: int) -> None:
        """Blame the page that a dead child was reading, and hand its other pages out again."""
        for pool in (self._children, self._leaving):
            if child in pool:
                pool.remove(child)
        self._work += child.seconds()
        jobs = list(child.jobs)
        if self._closed:
            self._fail(jobs, LevadaError("the parser is closed"))
            return
        if jobs and child.is_ready:
            guilty = jobs.pop(child.reading())
            self._waiting.spent([guilty.site], max(SLOW, child.seconds() - child.paid))
            self._fail([guilty], _death(status, guilty.page.url))
        elif not child.is_ready and not child.has_left:
            self.failed_starts += 1
        self._waiting.add_back(jobs)
        if child.refusal:
            self._fail_waiting(PluginError(child.refusal))
        elif self.failed_starts >= _STARTS:
            failure = f"the parser child does not start (status {status}): raise parse.memory, or run levada doctor"
            self._fail_waiting(LevadaError(failure))
        self._hand_out()

    def _fail_waiting(self, error: LevadaError) -> None:
        self._fail(self._waiting.take_all(), error)

    def _fail(self, jobs: list[ParseJob], error: LevadaError) -> None:
        self._done += len(jobs)
        for job in jobs:
            if not job.answer.done():
                job.answer.set_exception(error)


def _site(url: str) -> str:
    return url.split("/", 3)[2] if url.count("/", 0, 10) >= 2 else ""


def _death(status: int, url: str) -> ParserDied:
    if status in (-signal.SIGPROF, -signal.SIGALRM):
        return ParserDied(f"reading {url} took too long", "parse-seconds")
    return ParserDied(f"reading {url} ended the parser (status {status})")
