"""The control loop: looks at queues and workers, asks the chain how many there should be, and tells the crews.

While the broker is away, a queue has vanished or a sample makes no sense, every stage keeps its last size; that is
said once, and once when it is over. Crews are told the size in every round, so that a crashed worker is replaced.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from levada.errors import BrokerError, LevadaError
from levada.ports import Clock
from levada.stages import Chain
from levada.stages.looks import CrewLook, QueueLook, WorkLook
from levada.stages.observing import StageObserver

__all__ = ["ControlLoop", "Crew", "Queues", "Round", "StageRound", "StageWatch"]

log = logging.getLogger(__name__)


class Queues(Protocol):
    """Where jobs wait."""

    async def look(self, names: Sequence[str]) -> list[QueueLook | None]:
        """One for each queue, None where there is no such queue; `BrokerError` if nobody can be asked."""
        ...


class Crew(Protocol):
    """Whoever runs the workers of one stage."""

    async def look(self) -> CrewLook: ...

    async def resize(self, wanted: int) -> None:
        """That many from now on. Those to go finish their job first; a crashed one is replaced, but not at once
        again and again."""
        ...

    async def close(self) -> None: ...


class StageWatch(msgspec.Struct, frozen=True):
    """One stage of the chain: where its jobs wait, who runs its workers, and what these tell."""

    name: str
    queue: str
    crew: Crew
    observer: StageObserver
    told: Callable[[float], WorkLook | None] = lambda at: None


class StageRound(msgspec.Struct, frozen=True):
    stage: str
    queue: float | None  # None: nobody knows
    busy: float | None
    on: int
    wanted: int
    why: str = ""
    trouble: str = ""


class Round(msgspec.Struct, frozen=True):
    """What was seen and decided at one look."""

    at: float
    stages: tuple[StageRound, ...]
    hold_source: bool
    trouble: str = ""


class ControlLoop:
    """`on_round` hears of every round; `hold` is told when the source is to wait, and when it may go on."""

    def __init__(
        self,
        stages: Sequence[StageWatch],
        chain: Chain,
        queues: Queues,
        clock: Clock,
        period: float,
        *,
        on_round: Callable[[Round], None] = lambda done: None,
        hold: Callable[[bool], None] = lambda held: None,
    ) -> None:
        self._stages = tuple(stages)
        self._chain = chain
        self._queues = queues
        self._clock = clock
        self._period = period
        self._on_round = on_round
        self._hold = hold
        self._held = False
        self._held_seconds = 0.0
        self._last = clock.monotonic()
        self._troubles: dict[str, str] = {}
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """A round that is under way is finished: a worker that is just being started is not forgotten."""
        self._stopping.set()

    async def run(self) -> None:
        """Until stopped; a look that took long is followed by the next at once, and none is made up for."""
        due = self._clock.monotonic()
        while not self._stopping.is_set():
            await self.round()
            due = max(due + self._period, self._clock.monotonic())
            await self._wait(due - self._clock.monotonic())

    async def _wait(self, seconds: float) -> None:
        nap = asyncio.ensure_future(self._clock.sleep(seconds))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((nap, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            nap.cancel()
            stopping.cancel()

    async def round(self) -> Round:
        looks, trouble = await self._look()
        at = self._clock.monotonic()
        if self._held:
            self._held_seconds += max(0.0, at - self._last)
        self._last = at
        crews = [await self._seen(stage) for stage in self._stages]
        samples = [
            stage.observer.sample(at, look, crew, stage.told(at), self._held_seconds)
            for stage, look, crew in zip(self._stages, looks, crews, strict=True)
        ]
        sizes = self._chain.decide(samples)
        self._note_hold(sizes.hold_source)
        done = []
        for place, (stage, wanted) in enumerate(zip(self._stages, sizes.wanted, strict=True)):
            wrong = await self._told(stage, wanted)
            if looks[place] is None:
                wrong = trouble or f"the queue {stage.queue} is not there"
            wrong = wrong or self._chain.controllers[place].trouble
            self._say_once(stage.name, wrong)
            queue: float | None = samples[place].queue
            busy: float | None = samples[place].busy
            why = sizes.why[place]
            if looks[place] is None:
                queue, busy, why = None, None, f"holds at {wanted}: {wrong}"
            done.append(StageRound(stage.name, queue, busy, crews[place].on, wanted, why, wrong))
        result = Round(at, tuple(done), sizes.hold_source, trouble)
        self._on_round(result)
        return result

    async def _look(self) -> tuple[list[QueueLook | None], str]:
        try:
            return await self._queues.look([stage.queue for stage in self._stages]), ""
        except BrokerError as error:
            return [None] * len(self._stages), str(error)

    async def _seen(self, stage: StageWatch) -> CrewLook:
        try:
            return await stage.crew.look()
        except LevadaError as error:
            self._say_once(f"the crew of {stage.name}", str(error))
            return CrewLook(-1)  # below zero: no controller believes it, and its size holds

    async def _told(self, stage: StageWatch, wanted: int) -> str:
        try:
            await stage.crew.resize(wanted)
        except LevadaError as error:
            return str(error)
        return ""

    def _note_hold(self, held: bool) -> None:
        if held != self._held:
            self._held = held
            self._hold(held)

    def _say_once(self, who: str, wrong: str) -> None:
        """What is wrong is said when it begins, and when it is over."""
        before = self._troubles.get(who, "")
        self._troubles[who] = wrong
        if bool(wrong) is bool(before):
            return
        if wrong:
            log.warning("%s: %s; its size is held", who, wrong)
        else:
            log.info("%s: in order again", who)
