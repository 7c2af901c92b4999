"""A queue in memory whose workers start slowly and report nothing, as `levada control` sees a foreign queue."""

from __future__ import annotations

from dataclasses import dataclass, field

from levada.scale.sampler import StageSampler, StartingWorkers
from levada.scale.statistics import PoolStatistics, QueueStatistics
from levada.stages import Controller, SizingRule

__all__ = ["SilentStage"]

_STEPS = 10  # per look


@dataclass
class SilentStage:
    """`starts` seconds after its start a worker takes jobs, `takes` seconds each; it consumes, or polls. Never with
    `starts=inf`. Whoever is told to stop finishes its job."""

    rule: SizingRule
    starts: float = 3.0
    takes: float = 1.0
    polls: bool = False
    assumed: float = 1.0
    waiting: int = 0
    done: int = 0
    now: float = 0.0
    wanted: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._controller = Controller(self.rule)
        self._sampler = StageSampler(assumed=self.assumed)
        self._starting = StartingWorkers(self.rule.startup)
        self._born: list[float] = []
        self._busy: list[float] = []  # until then each is at work

    def begin_with(self, workers: int) -> None:
        self._born = [self.now] * workers

    def poll(self, arriving: int = 0) -> int:
        """One period: a look, what it leads to, and what the workers do until the next; `arriving` come evenly."""
        on = len(self._born)
        up = sum(self.now - born >= self.starts for born in self._born)
        pool = PoolStatistics(on, starting=self._starting.count(on, self.now))
        seen = QueueStatistics(self.waiting, 0 if self.polls else up)
        wanted = self._controller.workers_wanted(self._sampler.sample(self.now, pool, seen))
        self.wanted.append(wanted)
        self._born = self._born[:wanted] + [self.now] * (wanted - on)
        for step in range(_STEPS):
            self.waiting += arriving * (step + 1) // _STEPS - arriving * step // _STEPS
            self._work()
            self.now += self.rule.period / _STEPS
        return wanted

    def looks(self, count: int, arriving: int = 0) -> list[int]:
        return [self.poll(arriving) for _ in range(count)]

    def _work(self) -> None:
        at_work = [until for until in self._busy if until > self.now + 1e-9]
        self.done += len(self._busy) - len(at_work)
        up = sum(self.now - born >= self.starts for born in self._born)
        taken = max(0, min(self.waiting, up - len(at_work)))
        self.waiting -= taken
        self._busy = at_work + [self.now + self.takes] * taken
