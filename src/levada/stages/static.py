"""The same number of workers, whatever comes."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

from levada.stages.rule import MOST, SizingRule, sizing_rule

__all__ = ["static"]


def static(least: int = 1, most: int = 1, period: float = 1.0, startup: float = 0.0) -> SizingRule:
    """Always `most`: what everybody else is measured by."""
    return sizing_rule("static", _step, (least, most), period, startup=startup)


def _step(memory: MutableSequence[float], parameters: Sequence[float], sample: Sequence[float]) -> float:
    return parameters[MOST]
