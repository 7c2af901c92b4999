"""How is a lease kept while a task takes long? By a beat beside the work, on a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import Protocol

from levada.errors import LevadaError

__all__ = ["Heart", "Pulse", "Still"]


class Heart(Protocol):
    """`alive` turns False as soon as a beat is refused."""

    alive: bool

    def beating(self, beat: Callable[[], bool]) -> AbstractContextManager[Heart]: ...


class Pulse:
    """Beats every `seconds`, on the machine's time: it is the process that must be seen to live."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._over = Event()
        self.alive = True

    @contextmanager
    def beating(self, beat: Callable[[], bool]) -> Iterator[Pulse]:
        thread = Thread(target=self._run, args=(beat,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def _run(self, beat: Callable[[], bool]) -> None:
        while not self._over.wait(self._seconds):
            try:
                self.alive = beat()
            except LevadaError:
                continue  # the book is away: the lease may outlast that
            if not self.alive:
                return


class Still:
    """Never beats: for tests, where time stands still."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.alive = True

    @contextmanager
    def beating(self, beat: Callable[[], bool]) -> Iterator[Still]:
        yield self
