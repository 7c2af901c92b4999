"""Round robin: every page after the same interval, whatever it does."""

from __future__ import annotations

from collections.abc import Sequence

from levada.records import Outcome, Visit

__all__ = ["FixedRevisit"]


class FixedRevisit:
    """What a crawler without an update module does; the yardstick for all others."""

    def __init__(self, every: float = 3600.0) -> None:
        if not every > 0:
            raise ValueError(f"the interval must be above 0 seconds, not {every}")
        self.every = every

    def next_interval(self, interval: float | None, history: Sequence[Visit], outcome: Outcome) -> float:
        return self.every
