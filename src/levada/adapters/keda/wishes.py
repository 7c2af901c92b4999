"""Which sizes were decided, for whoever asks?"""

from __future__ import annotations

import asyncio

from levada.ports import Clock
from levada.stages.looks import CrewLook
from levada.stages.newcomers import Newcomers

__all__ = ["KedaCrew", "KedaWishes"]


class KedaWishes:
    """The wanted number of workers of each stage, and a word to whoever waits for a change."""

    def __init__(self) -> None:
        self._wanted: dict[str, int] = {}
        self._changed = asyncio.Event()

    @property
    def stages(self) -> list[str]:
        return list(self._wanted)

    def wanted(self, stage: str) -> int | None:
        """None if there is no such stage."""
        return self._wanted.get(stage)

    def want(self, stage: str, workers: int) -> None:
        if self._wanted.get(stage) != workers:
            self._wanted[stage] = workers
            self._changed.set()
            self._changed = asyncio.Event()

    async def change(self) -> None:
        """Returns when any number is another."""
        await self._changed.wait()


class KedaCrew:
    """Workers that KEDA runs: told to run are as many as were last asked for. KEDA tells nothing of them, so
    those of the last growth are taken for starting for `startup` seconds."""

    def __init__(self, stage: str, wishes: KedaWishes, first: int, clock: Clock, startup: float = 0.0) -> None:
        self._stage = stage
        self._wishes = wishes
        self._clock = clock
        self._newcomers = Newcomers(startup)
        wishes.want(stage, first)

    async def look(self) -> CrewLook:
        on = self._wishes.wanted(self._stage) or 0
        return CrewLook(on, starting=self._newcomers.among(on, self._clock.monotonic()))

    async def resize(self, wanted: int) -> None:
        self._wishes.want(self._stage, wanted)

    async def close(self) -> None:
        """The last size stands: KEDA asks again when we are back."""
