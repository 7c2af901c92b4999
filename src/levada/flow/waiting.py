"""How does the loop wait for whatever comes first, and for those whom it sends home?"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable

__all__ = ["cancelled", "news_or"]


async def news_or(news: asyncio.Event, nap: Coroutine[None, None, None]) -> None:
    """Until there is news, or the nap is over."""
    waited = (asyncio.ensure_future(nap), asyncio.ensure_future(news.wait()))
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waited:
            each.cancel()


async def cancelled(tasks: Iterable[asyncio.Task[None]]) -> None:
    """End these, and wait until they have."""
    waited = list(tasks)
    for task in waited:
        task.cancel()
    if waited:
        await asyncio.wait(waited)
