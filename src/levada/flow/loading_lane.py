"""How is one task written while the next one is read? On a lane beside, one at a time.

The source, the target and we ourselves work in turn on each task; with a lane they work at once, on two.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

__all__ = ["AtOnce", "Beside", "Lane"]


class Lane(Protocol):
    def put(self, work: Callable[[], None]) -> None:
        """Begin this as soon as what was put before is done; raises what that raised."""
        ...

    def empty(self) -> None:
        """Wait until all is done; raises what it raised."""
        ...

    def close(self) -> None:
        """Wait, and raise nothing: whoever leaves without asking has another trouble to tell."""
        ...


class Beside:
    """On a thread of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "levada-load-lane")
        self._last: Future[None] | None = None

    def put(self, work: Callable[[], None]) -> None:
        self.empty()
        self._last = self._thread.submit(work)

    def empty(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def close(self) -> None:
        self._thread.shutdown()


class AtOnce:
    """Nothing runs beside: for tests, where each step has its instant."""

    def put(self, work: Callable[[], None]) -> None:
        work()

    def empty(self) -> None:
        pass

    def close(self) -> None:
        pass
