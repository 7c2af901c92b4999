"""How can a proxy stand before MongoDB that nobody notices?

Bytes are passed on as they come, both ways, unchanged; a copy of what clients say goes to the tap, which never
makes them wait. If the tap breaks, the traffic does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

__all__ = ["Listening", "Proxy"]

_CONNECT_SECONDS = 10.0
_MOST_EARLY = 1 << 20  # bytes of a client that are kept until the server behind has answered


class Listening(Protocol):
    """Whoever gets the copy; see `tap.Tap`."""

    def say(self, connection: int, data: bytes) -> None: ...
    def close_connection(self, connection: int) -> None: ...


class Proxy:
    """Listens on one address and passes everything on to another."""

    def __init__(self, host: str, port: int, tap: Listening) -> None:
        self._host = host
        self._port = port
        self._tap = tap
        self._server: asyncio.Server | None = None
        self._dialling: set[asyncio.Task[None]] = set()
        self.sides: set[_Side] = set()
        self.connections = 0
        self.unreachable = 0  # connections that the server behind did not take
        self.broken = 0  # copies that the tap could not take, by a fault of its own

    async def start(self, host: str, port: int) -> int:
        """The port that it listens on."""
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
        number = self.connections
        return _Side(
            self,
            made=self._dial,
            copy=lambda data: self._guarded(lambda: self._tap.say(number, data)),
            ended=lambda: self._guarded(lambda: self._tap.close_connection(number)),
        )

    def _dial(self, client: _Side) -> None:
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

    def _guarded(self, act: Callable[[], None]) -> None:
        """Whatever is wrong with the tap, the traffic goes on."""
        try:
            act()
        except Exception:
            self.broken += 1


class _Side(asyncio.Protocol):
    """One end of a connection; what it hears its peer says."""

    def __init__(
        self,
        proxy: Proxy,
        *,
        made: Callable[[_Side], None] | None = None,
        copy: Callable[[bytes], None] | None = None,
        ended: Callable[[], None] | None = None,
    ) -> None:
        self._proxy = proxy
        self._made = made
        self._copy = copy
        self._ended = ended
        self._transport: asyncio.Transport | None = None
        self._said_all = False
        self._peer: _Side | None = None
        self._early: list[bytes] = []
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._proxy.sides.add(self)
        if self._made is not None:
            self._made(self)

    def meet(self, peer: _Side) -> None:
        """From now on each passes on to the other; what was said before is passed on first."""
        self._peer, peer._peer = peer, self
        for early in self._early:
            self._pass_on(early)
        self._early.clear()
        if self._said_all:
            peer._end()
        self.release()

    def data_received(self, data: bytes) -> None:
        if self._peer is not None:
            self._pass_on(data)
        else:
            self._early.append(data)
            if sum(map(len, self._early)) > _MOST_EARLY:
                self.hold()

    def _pass_on(self, data: bytes) -> None:
        if self._peer is not None and self._peer._transport is not None:
            self._peer._transport.write(data)
        if self._copy is not None:
            self._copy(data)

    def _end(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
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
        if self._ended is not None:
            self._ended()
        self.lost.set_result(None)

    def pause_writing(self) -> None:
        """It does not read as fast as its peer speaks: let that one wait."""
        if self._peer is not None:
            self._peer.hold()

    def resume_writing(self) -> None:
        if self._peer is not None:
            self._peer.release()

    def hold(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def release(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """What is still to be sent is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
