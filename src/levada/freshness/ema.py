"""The paper's rule: a page's interval grows while it stands still and shrinks when it changes.

Source: the EMACrawler paper of 2024. Its text describes an exponential moving average over outcomes with a
smoothing of 0.2; its own trace of one URL shows what was run. With `I` the stored interval and `k` the changes
among the ten outcomes before this visit:

    unchanged:  I *= 1.2 + 0.08 k
    changed:    I /= 1.3 + 0.08 k

The first interval is 60 minutes. The paper states no floor and no ceiling; a crawler needs both, so they are
options here, and off by default as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence

from levada.records import Outcome, Visit

__all__ = ["EmaRevisit"]

_LEAST, _MOST = 1e-3, 1e10  # where even a rule without bounds stops: a millisecond, three centuries


class EmaRevisit:
    """Visits in proportion to the change rate (about 47% of its visits meet a change); has no budget knob."""

    def __init__(self, first: float = 3600.0, floor: float = 0.0, ceiling: float = float("inf")) -> None:
        if not 0 <= floor <= first <= ceiling:
            raise ValueError(f"needs floor <= first <= ceiling, not {floor}, {first}, {ceiling}")
        self.first = first
        self.floor = floor
        self.ceiling = ceiling

    def next_interval(self, interval: float | None, history: Sequence[Visit], outcome: Outcome) -> float:
        if interval is None or outcome is Outcome.FIRST:
            return self.first
        changes = sum(visit.outcome is Outcome.CHANGED for visit in history[-10:])
        if outcome is Outcome.CHANGED:
            interval /= 1.3 + 0.08 * changes
        else:
            interval *= 1.2 + 0.08 * changes
        return min(max(interval, self.floor, _LEAST), self.ceiling, _MOST)
