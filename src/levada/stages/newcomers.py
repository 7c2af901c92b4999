"""How many of a crew are still starting, where nobody tells? Its last growth, for as long as a start takes."""

from __future__ import annotations

__all__ = ["Newcomers"]


class Newcomers:
    """Whoever is there at the first look is up; `startup` seconds after the last growth all are."""

    def __init__(self, startup: float) -> None:
        self._startup = startup
        self._on: int | None = None
        self._up = 0
        self._grown = 0.0

    def among(self, on: int, at: float) -> int:
        """So many of those that are `on` at this moment; to be asked at every look."""
        if self._on is not None and on > self._on:
            self._grown = at
        if self._on is None or at - self._grown >= self._startup:
            self._up = on
        self._on, self._up = on, min(self._up, on)
        return on - self._up
