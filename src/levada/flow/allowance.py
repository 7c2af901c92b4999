"""May we spend another fetch? A budget as an even pace.

`per_hour` fetches are spread evenly (the generic cell rate algorithm): a quiet time is not saved up for a storm,
beyond a burst of `burst` fetches.
"""

from __future__ import annotations

__all__ = ["Allowance"]


class Allowance:
    def __init__(self, per_hour: float, burst: float = 1.0) -> None:
        self._gap = 3600.0 / per_hour if per_hour > 0 else 0.0
        self._tolerance = self._gap * (burst - 1.0)
        self._next = float("-inf")

    def ready_at(self) -> float:
        """The earliest time of the next fetch."""
        return self._next - self._tolerance if self._gap else float("-inf")

    def spend(self, now: float) -> None:
        if self._gap:
            self._next = max(self._next, now) + self._gap
