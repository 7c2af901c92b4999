"""A plug-in's fetcher: on an event loop of its own, with a deadline, its answers checked.

Whatever it does, the crawl gets a `Response`: one with the reason `plugin` where it raises, hangs or answers
nonsense. Another fetcher is never used instead: it might dial what this one must not.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from threading import Thread

from levada.core.plugins import note_failure
from levada.core.protocols import Fetcher
from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.fetch.transfer import FetchLimits

_GRACE = 5.0  # seconds above the limits of an exchange, which the fetcher should keep by itself


class ContainedFetcher:
    """A `levada.core.protocols.Fetcher` that never raises and always answers in time."""

    def __init__(self, name: str, fetcher: Fetcher, limits: FetchLimits, grace: float = _GRACE) -> None:
        self._name, self._fetcher, self._limits = name, fetcher, limits
        self._seconds = limits.seconds + grace
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name=f"plugin {name}", daemon=True)
        self._thread.start()

    async def fetch(self, request: Request) -> Response:
        asked = asyncio.run_coroutine_threadsafe(self._fetched(request), self._loop)
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(asked)
        except Exception as error:
            note_failure("levada.fetchers", self._name, error)
            detail = f"The fetcher {self._name} failed: {type(error).__name__}."
            return Response(request.url, 0, reason=Reason.PLUGIN, detail=detail)

    async def _fetched(self, request: Request) -> Response:
        response = await self._fetcher.fetch(request)
        if not isinstance(response, Response) or response.url != request.url or not isinstance(response.body, bytes):
            raise TypeError(f"no Response to {request.url}: {response!r:.100}")
        if len(response.body) > self._limits.max_decoded_bytes:
            return Response(request.url, 0, reason=Reason.DECODED_BYTES, detail="The body is too long.")
        return response

    async def close(self) -> None:
        with suppress(Exception):
            closed = asyncio.run_coroutine_threadsafe(self._fetcher.close(), self._loop)
            async with asyncio.timeout(_GRACE):
                await asyncio.wrap_future(closed)
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, 1.0)
        if not self._thread.is_alive():
            self._loop.close()
