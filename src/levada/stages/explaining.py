"""Why so many workers? The decision's own figures, in one short line for a person."""

from __future__ import annotations

from collections.abc import Sequence

from levada.stages.rule import SizingRule
from levada.stages.sample import BUSY, ON, QUEUE

__all__ = ["explain"]


def explain(rule: SizingRule, row: Sequence[float], rate: float, service: float, wanted: int) -> str:
    """By arrivals and service times where the rule knows them, otherwise by what waits and what is in work."""
    if rate > 0.0 and service > 0.0:
        reason = f"{_rate(rate)}/s arrive, {_seconds(service)} each: {rate * service:.1f} busy"
        spare = wanted - rate * service
        if abs(spare) >= 0.5:
            reason += f", {spare:+.0f} spare" if spare > 0.0 else f", {-spare:.0f} short"
    else:
        reason = f"{_mean(row[BUSY])} busy of {_mean(row[ON])}"
    if row[QUEUE] >= 1.0:
        reason += f", {row[QUEUE]:.0f} waiting"
    return reason + _limit(rule, wanted)


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100.0 else f"{rate:.3g}"


def _mean(workers: float) -> str:
    return f"{workers:.1f}".removesuffix(".0")


def _seconds(service: float) -> str:
    return f"{1000 * service:.2g} ms" if service < 0.01 else f"{service:.2g} s"


def _limit(rule: SizingRule, wanted: int) -> str:
    if rule.least == rule.most:
        return ", never another number"
    if wanted == rule.most:
        return f", {wanted} at most"
    return f", {wanted} at least" if wanted == rule.least else ""
