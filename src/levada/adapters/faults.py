"""What if the disk fails or the process dies exactly here? Fault ports."""

from __future__ import annotations

import os
import signal

__all__ = ["FaultAt", "KillAt", "NoFaults", "PointLog"]


class NoFaults:
    """The disk works and the process lives."""

    def reach(self, point: str) -> None:
        pass


class FaultAt:
    """Raises `error` when `point` is reached for the `nth` time, and once only."""

    def __init__(self, point: str, error: Exception, nth: int = 1) -> None:
        self.point = point
        self.error = error
        self._left = nth

    def reach(self, point: str) -> None:
        if point == self.point:
            self._left -= 1
            if self._left == 0:
                raise self.error


class KillAt:
    """Kills this process, as `kill -9` does, when `point` is reached for the `nth` time."""

    def __init__(self, point: str, nth: int = 1) -> None:
        self.point = point
        self._left = nth

    def reach(self, point: str) -> None:
        if point == self.point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class PointLog:
    """Writes down every point that is reached."""

    def __init__(self) -> None:
        self.points: list[str] = []

    def reach(self, point: str) -> None:
        self.points.append(point)
