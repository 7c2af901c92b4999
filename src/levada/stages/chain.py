"""How many workers should each of several stages have, all together, and must the source wait?

Stages are decided in their order, so that each knows what the one before it was just told. Where their wishes
exceed a budget over all, every stage gives way by the same share of what it wants above its least.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from levada.errors import UsageError
from levada.stages.budget import share_budget
from levada.stages.controller import Controller
from levada.stages.pressure import must_hold
from levada.stages.rule import SizingRule
from levada.stages.sample import StageSample

__all__ = ["Chain", "Sizes"]


class Sizes(msgspec.Struct, frozen=True):
    wanted: tuple[int, ...]
    hold_source: bool
    why: tuple[str, ...] = ()  # one short line per stage


class Chain:
    """One controller per stage. `budget` is for the workers of all; without one only their own limits count."""

    def __init__(self, rules: Sequence[SizingRule], budget: int | None = None) -> None:
        if not rules:
            raise UsageError("a chain has at least one stage")
        least = sum(rule.least for rule in rules)
        if budget is not None and budget < least:
            raise UsageError(f"a budget of {budget} workers is less than the {least} that the stages must have")
        self.controllers = tuple(Controller(rule) for rule in rules)
        self._budget = budget
        self._held = False
        self._queues = [0.0] * len(rules)

    def decide(self, samples: Sequence[StageSample]) -> Sizes:
        """One sample per stage; what lies before each is filled in here."""
        if len(samples) != len(self.controllers):
            raise UsageError(f"{len(self.controllers)} stages need as many samples, not {len(samples)}")
        wanted: list[int] = []
        for place, (controller, sample) in enumerate(zip(self.controllers, samples, strict=True)):
            if place:
                sample = self._with_before(sample, samples[place - 1], wanted[-1], place)
            wanted.append(controller.workers_wanted(sample))
        given = wanted
        if self._budget is not None:
            given = share_budget(wanted, [each.rule.least for each in self.controllers], self._budget)
        return Sizes(tuple(given), self._holds(samples), self._why(wanted, given))

    def _why(self, wanted: Sequence[int], given: Sequence[int]) -> tuple[str, ...]:
        pairs = zip(self.controllers, wanted, given, strict=True)
        return tuple(
            each.why if has == wish else f"{each.why}; {wish} wanted, but {self._budget} for all stages"
            for each, wish, has in pairs
        )

    def _with_before(self, sample: StageSample, before: StageSample, wanted: int, place: int) -> StageSample:
        return msgspec.structs.replace(
            sample,
            before_on=float(wanted),
            before_queue=before.queue,
            before_busy=before.busy,
            before_done=before.done,
            before_service=self.controllers[place - 1].service,
            before_rate=self.controllers[place - 1].rate,
        )

    def _holds(self, samples: Sequence[StageSample]) -> bool:
        """Stays as it is where a sample makes no sense."""
        if all(sample.is_sound for sample in samples):
            rows = [sample.row for sample in samples]
            self._held = must_hold(self._held, rows, self._queues)
            self._queues = [sample.queue for sample in samples]
        return self._held
