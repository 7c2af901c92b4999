"""Controllers of a chain of stages, their shared budget, and when the source must wait.

An unsound sample (not a number, below zero, a clock that went back, counts that shrank) changes nothing: the stage
keeps its size. After a jump of the clock or a restart of the counts, the rule continues from there.

Stages are decided in order, so that each knows the new size of the one before. If they want more than the budget of
all, each loses the same share of what it wants above its least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from levada.core.errors import UsageError
from levada.stages.rule import RATE, SERVICE, SizingRule
from levada.stages.sample import ARRIVED, BUSY, CAPACITY, DONE, HELD, NOW, ON, QUEUE, StageSample


def explain(rule: SizingRule, row: Sequence[float], rate: float, service: float, wanted: int) -> str:
    """The reason for a size: arrivals and service times if they are known, or else busy workers and the queue."""
    if rate > 0.0 and service > 0.0:
        arrive = f"{rate:,.0f}" if rate >= 100.0 else f"{rate:.3g}"
        each = f"{1000 * service:.2g} ms" if service < 0.01 else f"{service:.2g} s"
        reason = f"{arrive}/s arrive, {each} each: {rate * service:.1f} busy"
        spare = wanted - rate * service
        if abs(spare) >= 0.5:
            reason += f", {spare:+.0f} spare" if spare > 0.0 else f", {-spare:.0f} short"
    else:
        reason = f"{_mean(row[BUSY])} busy of {_mean(row[ON])}"
    if row[QUEUE] >= 1.0:
        reason += f", {row[QUEUE]:.0f} waiting"
    return reason + _limit(rule, wanted)


def _mean(workers: float) -> str:
    return f"{workers:.1f}".removesuffix(".0")


def _limit(rule: SizingRule, wanted: int) -> str:
    if rule.least == rule.most:
        return ", never another number"
    if wanted == rule.most:
        return f", {wanted} at most"
    return f", {wanted} at least" if wanted == rule.least else ""


_JUMP = 60.0  # seconds, or ten periods if that is more: a sample after a longer pause says nothing about rates


class Controller:
    """The controller of one stage. `trouble` says what was wrong with the last sample, if anything was."""

    def __init__(self, rule: SizingRule) -> None:
        self.rule = rule
        self.trouble = ""
        self._memory = [0.0] * rule.width
        self._wanted = max(rule.least, 1) if rule.most else 0
        self._offset = [0.0] * len(StageSample.__struct_fields__)
        self._last: list[float] | None = None

    @property
    def service(self) -> float:
        """The estimated seconds per job; 0 if unknown."""
        return self._memory[SERVICE]

    @property
    def rate(self) -> float:
        """Jobs per second that would arrive if nothing were held; 0 if unknown."""
        return self._memory[RATE]

    @property
    def why(self) -> str:
        """The last decision in one short line for a person."""
        if self.trouble:
            return f"holds at {self._wanted}: {self.trouble}"
        if self._last is None:
            return "no sample yet"
        return explain(self.rule, self._last, self.rate, self.service, self._wanted)

    def workers_wanted(self, sample: StageSample) -> int:
        """The wanted size, always between the limits of the rule."""
        self.trouble = self._fault(sample)
        if not self.trouble:
            row = [value + offset for value, offset in zip(sample.row, self._offset, strict=True)]
            wanted = self.rule.step(self._memory, self.rule.parameters, row)
            if math.isfinite(wanted):
                self._wanted = int(wanted)
        return self._wanted

    def _fault(self, sample: StageSample) -> str:
        if not sample.is_sound:
            return "a figure is not a number or is below zero"
        row, last = sample.row, self._last
        self._last = row
        if last is None:
            self._begin(row, [0.0] * len(row))
            return ""
        if row[NOW] <= last[NOW]:
            self._begin(row, last)
            return "the clock stood still or went back"
        if row[NOW] - last[NOW] > max(_JUMP, 10.0 * self.rule.period):
            self._begin(row, last)
            return "the clock jumped ahead, or the last sample is old"
        if min(row[place] - last[place] for place in (ARRIVED, DONE, HELD)) < 0.0:
            self._begin(row, last)
            return "the counts restarted"
        return ""

    def _begin(self, row: Sequence[float], last: Sequence[float]) -> None:
        """Make time and counts continue, for the rule, from where they were."""
        for place in (NOW, ARRIVED, DONE, HELD):
            self._offset[place] += last[place] - row[place]


def share_budget(wanted: Sequence[int], least: Sequence[int], budget: int) -> list[int]:
    """The sizes, cut to at most `budget` in all and at least `least` each."""
    given = list(wanted)
    cut_to_budget(given, least, budget)
    return given


def cut_to_budget(wanted: Any, least: Any, budget: float) -> None:
    """Cut lists or arrays in place. The rounding of one stage carries over to the next, so the sum is right."""
    extra, room = 0.0, float(budget)
    for place in range(len(wanted)):
        extra += max(0, wanted[place] - least[place])
        room -= least[place]
    if extra <= room:
        return
    so_far = 0.0
    for place in range(len(wanted)):
        before = int(so_far * room / extra + 0.5)
        so_far += max(0, wanted[place] - least[place])
        wanted[place] = least[place] + int(so_far * room / extra + 0.5) - before


_HIGH, _LOW = 0.5, 0.25  # shares of a queue's capacity: hold above the first, release below the second


def must_hold(held: bool, samples: Any, before: Any) -> bool:
    """Whether the source must wait, by the queues now and before; growth is projected two samples ahead."""
    mark = _LOW if held else _HIGH
    for place in range(len(samples)):
        sample = samples[place]
        growth = max(0.0, sample[QUEUE] - before[place])
        if sample[QUEUE] + 2.0 * growth >= mark * sample[CAPACITY]:
            return True
    return False


class Sizes(msgspec.Struct, frozen=True):
    wanted: tuple[int, ...]
    hold_source: bool
    why: tuple[str, ...] = ()  # one short line per stage


class Chain:
    """One controller per stage. `budget` limits the workers of all stages together."""

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
        """The sizes for one sample per stage; the `before` fields are filled in here."""
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
            each.why if has == want else f"{each.why}; {want} wanted, but {self._budget} for all stages"
            for each, want, has in pairs
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
        """Whether the source must wait; unchanged if a sample is unsound."""
        if all(sample.is_sound for sample in samples):
            rows = [sample.row for sample in samples]
            self._held = must_hold(self._held, rows, self._queues)
            self._queues = [sample.queue for sample in samples]
        return self._held
