"""A placeholder for a shard that is empty for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

from levada.core.errors import StoreError
from levada.store.base import Capability
from levada.store.memory import MemoryStore


class EmptyShard(MemoryStore):
    """A shard that a move to servers left empty for good. Its number stays taken; writes are refused."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.SHARD})

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def _refuse_write(self, *given: Any, **named: Any) -> NoReturn:
        raise StoreError(f"shard {self._number} is empty for good: nothing is stored there")

    add = save = receive = fence = import_pages = let_go = unfence = _refuse_write

    def _nothing(self, *given: Any, **named: Any) -> list[Any]:
        return []

    undelivered = fenced = urls_after = waiting = _nothing

    def delivered(self, ids: Sequence[int]) -> None:
        pass

    def follow_seq(self, seq: int) -> None:
        pass
