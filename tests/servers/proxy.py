"""A wire between a client and a server that can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

__all__ = ["cuttable"]


class _Wire:
    def __init__(self, port: int, allowances: Sequence[int]) -> None:
        self._port = port
        self._allowances = list(allowances)
        self.dialled = 0

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until its allowance of bytes towards the server is used up."""
        pacer = self._allowances[min(self.dialled, len(self._allowances) - 1)]
        self.dialled += 1
        near, far = await asyncio.open_connection("127.0.0.1", self._port)
        answers = asyncio.create_task(_copy(near, writer))
        try:
            while pacer > 0 and (data := await reader.read(min(4096, pacer))):
                far.write(data)
                pacer -= len(data)
        except ConnectionError:
            pass
        finally:
            answers.cancel()
            for side in (far, writer):
                side.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(4096):
            writer.write(data)
    except ConnectionError:
        pass
    writer.transport.abort()


@asynccontextmanager
async def cuttable(port: int, allowances: Sequence[int]) -> AsyncIterator[int]:
    """A port that leads to `port`; its connections are cut after so many bytes each, all later ones as the last."""
    wire = _Wire(port, allowances)
    server = await asyncio.start_server(wire.carry, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
