"""How does an instance wait where nobody can wake it? It sleeps."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["NoBell"]


class NoBell:
    """Waits through whatever sleeps."""

    def __init__(self, wait: Callable[[float], object]) -> None:
        self._wait = wait

    def ring(self) -> None:
        """Nobody hears it."""

    def wait(self, seconds: float) -> bool:
        self._wait(seconds)
        return False

    def close(self) -> None:
        """There is nothing to end."""
