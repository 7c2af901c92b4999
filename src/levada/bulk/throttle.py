"""How long must an instance rest so as not to read faster than it may?"""

from __future__ import annotations

__all__ = ["Throttle"]


class Throttle:
    """At most so many rows a second over the whole run; 0 is no limit."""

    def __init__(self, rows_per_second: float) -> None:
        self._rate = rows_per_second
        self._free_at = 0.0  # when the rows read so far are paid for

    def rest(self, rows: int, now: float) -> float:
        """The seconds to wait after reading `rows`; rest that was not needed is not saved up."""
        if self._rate <= 0:
            return 0.0
        self._free_at = max(self._free_at, now) + rows / self._rate
        return self._free_at - now
