"""How do tests fetch? One call that opens a fetcher, asks, and closes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from levada.adapters.guard import AddressGuard
from levada.adapters.web import CurlFetcher, FetchLimits
from levada.records import Request, Response

__all__ = ["fetch", "with_fetcher"]

T = TypeVar("T")


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
