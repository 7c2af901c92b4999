"""How many workers should this stage have? A rule with its memory, which nonsense cannot lead astray.

A sample that cannot be (not a number, below zero, a clock that went back, counts that shrank) changes nothing: the
last safe size holds. After a clock that leapt ahead, or counts that began anew, the rule goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from levada.stages.explaining import explain
from levada.stages.rule import RATE, SERVICE, SizingRule
from levada.stages.sample import ARRIVED, DONE, HELD, NOW, StageSample

__all__ = ["Controller"]

_LEAP = 60.0  # seconds, or ten periods if that is more: a sample after a longer pause says nothing about rates


class Controller:
    """For one stage. `trouble` says what was wrong with the latest sample, and is empty if nothing was."""

    def __init__(self, rule: SizingRule) -> None:
        self.rule = rule
        self.trouble = ""
        self._memory = [0.0] * rule.width
        self._wanted = max(rule.least, 1) if rule.most else 0
        self._offset = [0.0] * len(StageSample.__struct_fields__)
        self._last: list[float] | None = None

    @property
    def service(self) -> float:
        """Seconds per job that the rule believes in; 0 if it does not."""
        return self._memory[SERVICE]

    @property
    def rate(self) -> float:
        """Jobs per second that would arrive if nothing were held back; 0 if the rule does not know."""
        return self._memory[RATE]

    @property
    def why(self) -> str:
        """The latest decision in one short line for a person."""
        if self.trouble:
            return f"holds at {self._wanted}: {self.trouble}"
        if self._last is None:
            return "nothing was seen yet"
        return explain(self.rule, self._last, self.rate, self.service, self._wanted)

    def workers_wanted(self, sample: StageSample) -> int:
        """Between the rule's limits, whatever the sample says."""
        self.trouble = self._found_wrong(sample)
        if not self.trouble:
            row = self._continued(sample.row)
            wanted = self.rule.step(self._memory, self.rule.parameters, row)
            if math.isfinite(wanted):
                self._wanted = int(wanted)
        return self._wanted

    def _found_wrong(self, sample: StageSample) -> str:
        if not sample.is_sound:
            return "a figure is not a number, or below zero"
        row, last = sample.row, self._last
        self._last = row
        if last is None:
            self._begin(row, [0.0] * len(row))
            return ""
        if row[NOW] <= last[NOW]:
            self._begin(row, last)
            return "the clock stood still or went back"
        if row[NOW] - last[NOW] > max(_LEAP, 10.0 * self.rule.period):
            self._begin(row, last)
            return "the clock leapt ahead, or nobody looked for long"
        if min(row[place] - last[place] for place in (ARRIVED, DONE, HELD)) < 0.0:
            self._begin(row, last)
            return "counts began anew"
        return ""

    def _begin(self, row: Sequence[float], last: Sequence[float]) -> None:
        """The rule is to see time and counts go on from where they were, one period later and with no job more."""
        for place in (NOW, ARRIVED, DONE, HELD):
            self._offset[place] += last[place] - row[place]

    def _continued(self, row: Sequence[float]) -> list[float]:
        return [value + offset for value, offset in zip(row, self._offset, strict=True)]
