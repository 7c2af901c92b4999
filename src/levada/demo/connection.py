"""How are requests on one connection answered, one after the other?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import cast

from levada.demo.wire import MAX_HEAD_BYTES, Answer, Asked, Stream, read_head, wire
from levada.ports import Clock

__all__ = ["Connection"]

_END_OF_HEAD = b"\r\n\r\n"


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive and pipelining; a stream is written only as fast as the peer reads it."""

    def __init__(
        self, answer: Callable[[Asked, float], Answer | Stream], clock: Clock, open_: set[Connection]
    ) -> None:
        self._answer = answer
        self._clock = clock
        self._open = open_
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._streaming: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        self._transport = None
        if self._streaming is not None:
            self._streaming.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()
        # Who asks without reading the answers is not listened to; during a stream we listen for the peer's end.
        if self._transport is not None and self._streaming is None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writable.set()
        if self._transport is not None and not (self._transport.is_closing() or self._transport.is_reading()):
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._transport is not None and self._streaming is None:
            end = self._buffer.find(_END_OF_HEAD)
            if end < 0:
                if len(self._buffer) > MAX_HEAD_BYTES:
                    self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
                return
            first, self._buffer = self._buffer[:end], self._buffer[end + len(_END_OF_HEAD) :]
            self._serve(first)
        # While a stream runs, what else arrives is not for us to keep.
        if len(self._buffer) > MAX_HEAD_BYTES:
            self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _serve(self, first: bytes) -> None:
        asked = read_head(first)
        if isinstance(asked, HTTPStatus):
            self._refuse(asked)
            return
        answer = self._answer(asked, self._clock.now())
        if isinstance(answer, Stream):
            self._streaming = asyncio.get_running_loop().create_task(self._write_stream(answer))
            return
        if answer.after:
            self._streaming = asyncio.get_running_loop().create_task(self._write_late(answer, asked))
        else:
            self._write(answer, asked)

    def _write(self, answer: Answer, asked: Asked) -> None:
        if self._transport is None:
            return
        now = self._clock.now()
        self._transport.write(wire(answer, now=now, keep_alive=asked.keep_alive, body=asked.method == "GET"))
        if not asked.keep_alive:
            self.close()

    async def _write_late(self, answer: Answer, asked: Asked) -> None:
        await asyncio.sleep(answer.after)
        self._streaming = None
        self._write(answer, asked)
        self.data_received(b"")  # what was asked meanwhile

    def _refuse(self, status: HTTPStatus) -> None:
        assert self._transport is not None
        self._transport.write(wire(Answer(status), now=self._clock.now(), keep_alive=False))
        self._buffer = b""
        self.close()

    async def _write_stream(self, stream: Stream) -> None:
        async for piece in stream.pieces():
            await self._writable.wait()
            if self._transport is None or self._transport.is_closing():
                return
            self._transport.write(piece)
        self.close()
