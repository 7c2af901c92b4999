"""Server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

_EVENTS = "text/event-stream"
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class EventStreams:
    """The open event streams, which can be ended together."""

    def __init__(self) -> None:
        self._ending = asyncio.Event()

    def end(self) -> None:
        self._ending.set()

    def answer(self, request: Request, events: AsyncGenerator[bytes, None]) -> Response:
        if request.method == "HEAD":
            return Response(media_type=_EVENTS, headers=_HEADERS)
        return StreamingResponse(self._until_the_end(events), media_type=_EVENTS, headers=_HEADERS)

    async def _until_the_end(self, events: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        ended = asyncio.ensure_future(self._ending.wait())
        waited_for: set[asyncio.Future[Any]] = {ended}
        try:
            while not ended.done():
                coming = asyncio.ensure_future(anext(events))
                waited_for = {ended, coming}
                await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    yield coming.result()
        finally:
            for each in waited_for:
                each.cancel()
            await asyncio.wait(waited_for)
            await events.aclose()  # now, so that the number of listeners is right
