"""One call that opens a fetcher, fetches, and closes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from levada.core.records import Request, Response
from levada.fetch import CurlFetcher, FetchLimits
from levada.fetch.guard import AddressGuard
from tests.fetch.servers import Answer, web

__all__ = ["KIB", "TIGHT", "ask", "fetch", "with_fetcher"]

T = TypeVar("T")
KIB = 1024
TIGHT = FetchLimits(
    max_bytes=64 * KIB, max_decoded_bytes=256 * KIB, max_header_bytes=4 * KIB, seconds=10, min_rate_seconds=1
)


def with_fetcher(
    use: Callable[[CurlFetcher], Awaitable[T]],
    allow: Collection[str] = (),
    limits: FetchLimits | None = None,
    ca_file: str | None = None,
    connections: int = 8,
) -> T:
    async def run() -> T:
        fetcher = CurlFetcher(
            limits or FetchLimits(seconds=20),
            AddressGuard(allow),
            agent="levada-test/1",
            ca_file=ca_file,
            connections=connections,
        )
        try:
            return await use(fetcher)
        finally:
            await fetcher.close()

    return asyncio.run(run())


def fetch(
    request: str | Request,
    allow: Collection[str] = (),
    limits: FetchLimits | None = None,
    ca_file: str | None = None,
) -> Response:
    asked = Request(request) if isinstance(request, str) else request
    return with_fetcher(lambda fetcher: fetcher.fetch(asked), allow, limits, ca_file)


def ask(reply: Answer, limits: FetchLimits = TIGHT, **request: object) -> Response:
    with web({"/": reply}) as server:
        return fetch(Request(f"{server.url}/", **request), [server.address], limits)  # type: ignore[arg-type]
