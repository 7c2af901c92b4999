"""Who may touch the store? One thread, so that a commit never holds up the network.

Stores answer synchronously; a commit waits for the disk. Everything that the flow asks of them goes through here,
in the order it was asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["Storekeeper"]

P = ParamSpec("P")
T = TypeVar("T")


class Storekeeper:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    async def run(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: operation(*args, **kwargs))

    def close(self) -> None:
        self._thread.shutdown(wait=True)
