"""What the server answers from: collection, loads, laboratory, and answers that are kept for a while."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from levada.accounts.accounts import Accounts
from levada.bulk.loads import LoadWatch
from levada.collection.site_rules.trials import RecentPages
from levada.collection.view import CollectionView
from levada.collection.warm_map import MAPS, maps_of
from levada.serve.lab_runs import Laboratory

Answer = TypeVar("Answer")


class View(CollectionView):
    """The collection of the server, and what it shows besides. Threads may share it."""

    def __init__(
        self,
        path: Path,
        laboratory: Laboratory | None = None,
        *,
        capturing: bool = False,
        name: str = "",
        accounts: Accounts | None = None,
    ) -> None:
        super().__init__(path, capturing=capturing)
        self.name = name or path.absolute().name
        self.accounts = accounts
        self.served: Mapping[str, View] = {"/": self}  # every collection of the server, by its path
        self.loads = LoadWatch((maps_of(self.folder), MAPS), self.clock)
        self.laboratory = laboratory or Laboratory(path / "lab")
        self.live_pages = RecentPages(self.clock)
        self._asking: dict[str, Lock] = {}
        self._remembered: dict[str, tuple[float, Any]] = {}

    def remembered(self, name: str, seconds: float, ask: Callable[[], Answer]) -> Answer:
        """The answer of this name, at most so many seconds old; only one caller computes it at a time."""
        with self._asking.setdefault(name, Lock()):
            now = self.clock.monotonic()
            at, kept = self._remembered.get(name, (0.0, None))
            if kept is None or now - at > seconds:
                kept = ask()
                self._remembered[name] = (now, kept)
        answer: Answer = kept
        return answer

    def close(self) -> None:
        self.laboratory.close()
        super().close()
