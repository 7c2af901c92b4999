"""Transparent proxy before MongoDB that copies what clients send to a capture process.

Bytes are passed on as they come, both ways, unchanged. The copy never makes clients wait: if the capture breaks,
the traffic does not. What the capture process has not taken yet is kept up to `backlog` bytes. Beyond that it is
lost and counted, and the process is told where, so that it finds the next message. A process that dies is restarted
a few times, no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, cast

import msgspec

from levada.capture.mongodb.capture_child import PIECE, CaptureOptions, CaptureReport, PieceKind
from levada.capture.mongodb.conversation import CaptureCounts
from levada.capture.query_log import Written
from levada.core.processes import module_command, signals_held_back
from levada.core.protocols import Clock

_MOST_STARTS = 5
_END_SECONDS = 30.0
_GATHER_SECONDS = 0.01
_GATHER_BYTES = 1 << 15


class TrafficCapture:
    """Takes copies of bytes; it never raises and never waits once it is started."""

    def __init__(self, options: CaptureOptions, clock: Clock, backlog: int = 64 << 20) -> None:
        self._options = options
        self._clock = clock
        self._backlog = backlog
        self._child: asyncio.subprocess.Process | None = None
        self._pipe: asyncio.WriteTransport | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._interrupted: set[int] = set()  # connections that lost bytes since their last piece
        self._seen: set[int] = set()
        self._before: list[CaptureReport] = []  # the last reports of processes that died
        self._latest = CaptureReport(CaptureCounts(), Written())
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._flush_timer: asyncio.TimerHandle | None = None
        self._stopping = False
        self.lost_bytes = 0
        self.starts = 0

    async def start(self) -> None:
        await self._start_child()
        self._keeping = asyncio.create_task(self._keep_child())

    def observe(self, connection: int, data: bytes) -> None:
        """Copy what a client sent."""
        self._seen.add(connection)
        if connection in self._interrupted and self._send(connection, PieceKind.LOST, b""):
            self._interrupted.discard(connection)
        if connection in self._interrupted or not self._send(connection, PieceKind.SAID, data):
            self._interrupted.add(connection)
            self.lost_bytes += len(data)

    def close_connection(self, connection: int) -> None:
        self._seen.discard(connection)
        self._interrupted.discard(connection)
        self._send(connection, PieceKind.CLOSED, b"", always=True)

    def report(self) -> CaptureReport:
        """The sum of all reports so far."""
        total = CaptureReport(CaptureCounts(), Written())
        for report in (*self._before, self._latest):
            _add(total.heard, report.heard)
            _add(total.written, report.written)
            total.unwritten += report.unwritten
            total.trouble = report.trouble or total.trouble
        return total

    async def stop(self) -> CaptureReport:
        """Let the capture process take what is left, and read its last report."""
        self._flush()
        self._close_pipe()
        self._stopping = True
        if self._keeping is not None:
            try:
                await asyncio.wait_for(asyncio.shield(self._keeping), _END_SECONDS)
            except TimeoutError:
                if self._child is not None:
                    with suppress(ProcessLookupError):
                        self._child.kill()
                await self._keeping
        return self.report()

    def _close_pipe(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None

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
            self._flush()
        elif self._flush_timer is None:
            self._flush_timer = asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._flush)
        return True

    def _flush(self) -> None:
        """Send what was collected: one system call for each message would cost more than the message."""
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if self._pipe is not None and not self._pipe.is_closing():
            self._pipe.write(b"".join(gathered))

    async def _start_child(self) -> None:
        self.starts += 1
        with signals_held_back():
            self._child = await asyncio.create_subprocess_exec(
                *module_command("levada.capture.mongodb.capture_child"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        assert self._child.stdin is not None
        self._pipe = self._child.stdin.transport
        self._interrupted = set(self._seen)  # the new process has seen nothing of them
        self._gathered, self._gathered_bytes = [], 0
        self._send(0, PieceKind.ORDERS, msgspec.json.encode(self._options), always=True)

    async def _keep_child(self) -> None:
        """Read reports until the capture process ends; start another one if that was not intended."""
        while True:
            await self._read_reports()
            self._close_pipe()
            if self._stopping or self.starts >= _MOST_STARTS:
                return
            self._before.append(self._latest)
            self._latest = CaptureReport(CaptureCounts(), Written())
            await self._start_child()

    async def _read_reports(self) -> None:
        child = self._child
        assert child is not None
        assert child.stdout is not None
        while line := await child.stdout.readline():
            with suppress(msgspec.MsgspecError):
                self._latest = msgspec.json.decode(line, type=CaptureReport)
        await child.wait()


def _add(total: msgspec.Struct, more: msgspec.Struct) -> None:
    for name in total.__struct_fields__:
        value = getattr(more, name)
        if isinstance(value, dict):
            counts = getattr(total, name)
            for key, count in value.items():
                counts[key] = counts.get(key, 0) + count
        else:
            setattr(total, name, getattr(total, name) + value)


_CONNECT_SECONDS = 10.0
_MOST_EARLY = 1 << 20  # bytes of a client that are kept until the server has answered


class TrafficObserver(Protocol):
    """The receiver of the copy; see `TrafficCapture`."""

    def observe(self, connection: int, data: bytes) -> None: ...
    def close_connection(self, connection: int) -> None: ...


class Proxy:
    """Listens on one address and passes everything on to another."""

    def __init__(self, host: str, port: int, capture: TrafficObserver) -> None:
        self._host = host
        self._port = port
        self.capture = capture
        self._server: asyncio.Server | None = None
        self._dialling: set[asyncio.Task[None]] = set()
        self.sides: set[_Side] = set()
        self.connections = 0
        self.unreachable = 0  # connections that the server did not accept
        self.broken = 0  # copies that the capture could not take because of an error

    async def start(self, host: str, port: int) -> int:
        """Start; returns the port that it listens on."""
        self._server = await asyncio.get_running_loop().create_server(self._accept, host, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._dialling:
            task.cancel()
        await asyncio.gather(*self._dialling, return_exceptions=True)
        lost = [side.lost for side in self.sides]
        for side in tuple(self.sides):
            side.abort()
        await asyncio.gather(*lost)
        if self._server is not None:
            await self._server.wait_closed()

    def _accept(self) -> asyncio.Protocol:
        self.connections += 1
        return _ClientSide(self, self.connections)

    def dial(self, client: _Side) -> None:
        task = asyncio.create_task(self._join(client))
        self._dialling.add(task)
        task.add_done_callback(self._dialling.discard)

    async def _join(self, client: _Side) -> None:
        server = _Side(self)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await loop.create_connection(lambda: server, self._host, self._port)
        except (OSError, TimeoutError):
            self.unreachable += 1
            client.abort()
            return
        if client.lost.done():
            server.close()
        else:
            client.meet(server)


class _Side(asyncio.Protocol):
    """One end of a connection; what it receives, its peer sends."""

    _transport: asyncio.Transport  # from `connection_made` on; nothing is asked of a side before

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._said_all = False
        self._peer: _Side | None = None
        self._early: list[bytes] = []
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._proxy.sides.add(self)

    def meet(self, peer: _Side) -> None:
        """Connect both sides; what came before is passed on first."""
        self._peer, peer._peer = peer, self
        for side in (self, peer):
            for early in side._early:
                side.data_received(early)
            side._early.clear()
            side.release()
        if self._said_all:
            peer._end()

    def data_received(self, data: bytes) -> None:
        if self._peer is not None:
            self._peer._transport.write(data)
            return
        self._early.append(data)
        if sum(map(len, self._early)) > _MOST_EARLY:
            self.hold()

    def _end(self) -> None:
        if not self._transport.is_closing():
            self._transport.write_eof()

    def eof_received(self) -> bool:
        """The other direction may go on until it ends as well."""
        self._said_all = True
        if self._peer is None:
            return True
        self._peer._end()
        return not self._peer._said_all

    def connection_lost(self, error: Exception | None) -> None:
        self._proxy.sides.discard(self)
        if self._peer is not None:
            self._peer.close()
        self.lost.set_result(None)

    def pause_writing(self) -> None:
        """This side reads more slowly than its peer sends: let the peer wait."""
        if self._peer is not None:
            self._peer.hold()

    def resume_writing(self) -> None:
        if self._peer is not None:
            self._peer.release()

    def hold(self) -> None:
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def release(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """Close after sending what is left."""
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


class _ClientSide(_Side):
    """The end towards the client, whose bytes are copied."""

    def __init__(self, proxy: Proxy, number: int) -> None:
        super().__init__(proxy)
        self._number = number

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._proxy.dial(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._peer is not None:
            self._copy(self._proxy.capture.observe, data)

    def connection_lost(self, error: Exception | None) -> None:
        self._copy(self._proxy.capture.close_connection)
        super().connection_lost(error)

    def _copy(self, act: Callable[..., None], *data: bytes) -> None:
        """Whatever is wrong with the capture, the traffic goes on."""
        try:
            act(self._number, *data)
        except Exception:
            self._proxy.broken += 1
