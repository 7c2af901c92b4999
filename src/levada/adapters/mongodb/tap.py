"""How is what clients say handed to the process that listens, without ever waiting for it?

What the listener has not taken yet is kept up to `backlog` bytes. Beyond that it is lost and counted, and the
listener is told where, so that it finds the next message. One that dies is started again a few times, no more.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

import msgspec

from levada.adapters.asked_file import Written
from levada.adapters.child_signals import signals_held_back
from levada.adapters.mongodb.conversation import Heard
from levada.adapters.mongodb.tap_wire import PIECE, Orders, PieceKind, TapReport
from levada.ports import Clock

__all__ = ["Tap"]

_MOST_STARTS = 5
_END_SECONDS = 30.0
_GATHER_SECONDS = 0.01
_GATHER_BYTES = 1 << 15


class Tap:
    """Takes copies of bytes; never raises and never waits once it is started."""

    def __init__(self, orders: Orders, clock: Clock, backlog: int = 64 << 20) -> None:
        self._orders = orders
        self._clock = clock
        self._backlog = backlog
        self._child: asyncio.subprocess.Process | None = None
        self._pipe: asyncio.WriteTransport | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._interrupted: set[int] = set()  # connections of which something was lost since they were last heard
        self._met: set[int] = set()
        self._before: list[TapReport] = []  # the last words of listeners that died
        self._latest = TapReport(Heard(), Written())
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._pouring: asyncio.TimerHandle | None = None
        self._stopping = False
        self.lost_bytes = 0
        self.starts = 0

    async def start(self) -> None:
        await self._start_child()
        self._keeping = asyncio.create_task(self._keep_child())

    def say(self, connection: int, data: bytes) -> None:
        """A client said this."""
        self._met.add(connection)
        if connection in self._interrupted and self._send(connection, PieceKind.LOST, b""):
            self._interrupted.discard(connection)
        if connection in self._interrupted or not self._send(connection, PieceKind.SAID, data):
            self._interrupted.add(connection)
            self.lost_bytes += len(data)

    def close_connection(self, connection: int) -> None:
        self._met.discard(connection)
        self._interrupted.discard(connection)
        self._send(connection, PieceKind.CLOSED, b"", always=True)

    def report(self) -> TapReport:
        """All that listeners have told so far."""
        return _together([*self._before, self._latest])

    async def stop(self) -> TapReport:
        """Let the listener take what is left, and hear its last word."""
        self._pour()
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        self._stopping = True
        if self._keeping is not None:
            try:
                await asyncio.wait_for(asyncio.shield(self._keeping), _END_SECONDS)
            except TimeoutError:
                self._kill()
                await self._keeping
        return self.report()

    def _send(self, connection: int, kind: PieceKind, data: bytes, always: bool = False) -> bool:
        pipe = self._pipe
        if pipe is None or pipe.is_closing():
            return False
        waiting = pipe.get_write_buffer_size() + self._gathered_bytes
        if not always and waiting + PIECE.size + len(data) > self._backlog:
            return False
        self._gathered += (PIECE.pack(connection, kind, self._clock.now(), len(data)), data)
        self._gathered_bytes += PIECE.size + len(data)
        if self._gathered_bytes >= _GATHER_BYTES:
            self._pour()
        elif self._pouring is None:
            self._pouring = asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._pour)
        return True

    def _pour(self) -> None:
        """Hand over what was gathered: a call of the system for each message would cost more than the message."""
        if self._pouring is not None:
            self._pouring.cancel()
            self._pouring = None
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if self._pipe is not None and not self._pipe.is_closing():
            self._pipe.write(b"".join(gathered))

    async def _start_child(self) -> None:
        self.starts += 1
        with signals_held_back():
            self._child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # a folder that somebody works in is no place to look for modules
                "-m",
                "levada.adapters.mongodb.tap_child",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        assert self._child.stdin is not None
        self._pipe = self._child.stdin.transport
        self._interrupted = set(self._met)  # the new one has heard nothing of them
        self._gathered, self._gathered_bytes = [], 0
        self._send(0, PieceKind.ORDERS, msgspec.json.encode(self._orders), always=True)

    async def _keep_child(self) -> None:
        """Hear the listener until it ends; start another if that was not wanted."""
        while True:
            await self._hear()
            if self._pipe is not None:
                self._pipe.close()
                self._pipe = None
            if self._stopping or self.starts >= _MOST_STARTS:
                return
            self._before.append(self._latest)
            self._latest = TapReport(Heard(), Written())
            await self._start_child()

    async def _hear(self) -> None:
        child = self._child
        assert child is not None
        assert child.stdout is not None
        while line := await child.stdout.readline():
            with suppress(msgspec.MsgspecError):
                self._latest = msgspec.json.decode(line, type=TapReport)
        await child.wait()

    def _kill(self) -> None:
        if self._child is not None:
            with suppress(ProcessLookupError):
                self._child.kill()


def _together(reports: list[TapReport]) -> TapReport:
    total = TapReport(Heard(), Written())
    for report in reports:
        _add(total.heard, report.heard)
        _add(total.written, report.written)
        total.unwritten += report.unwritten
        total.trouble = report.trouble or total.trouble
    return total


def _add(total: msgspec.Struct, more: msgspec.Struct) -> None:
    for name in total.__struct_fields__:
        value = getattr(more, name)
        if isinstance(value, dict):
            counts = getattr(total, name)
            for key, count in value.items():
                counts[key] = counts.get(key, 0) + count
        else:
            setattr(total, name, getattr(total, name) + value)
