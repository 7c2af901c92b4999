"""Store executor: one thread for the store, so that a commit never blocks the network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class StoreExecutor:
    """Runs the synchronous calls of a store on one thread, in the order of the calls."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    async def run(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._call(lambda: operation(*args, **kwargs))

    async def _call(self, operation: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, operation)

    def give_up(self) -> None:
        """Whoever repeats calls that fail stops doing so: the process is to end."""

    def close(self) -> None:
        self._thread.shutdown(wait=True)
