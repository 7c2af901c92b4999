"""Placeholders for shards without a store: one that cannot be reached, and one that is empty on another machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

from levada.core.errors import StoreError
from levada.core.records import FoundUrl, OutboxLink, Refusal, SiteRecord
from levada.store.base import Capability, MovedPage
from levada.store.memory import MemoryStore


class UnreachableShard:
    """Answers everything but `close` with a `StoreError` that says why the shard cannot be reached."""

    capabilities = frozenset({Capability.SHARD})

    def __init__(self, number: int, why: StoreError) -> None:
        self.why = f"shard {number} cannot be reached: {why}"

    def close(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise StoreError(self.why)


class EmptyShard(MemoryStore):
    """A shard that a move to servers left empty for good. Its number stays taken; writes are refused."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.SHARD})

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    @property
    def shards(self) -> tuple[EmptyShard]:
        return (self,)

    logs = shards

    def add(self, found: Sequence[FoundUrl], refused: Sequence[Refusal], now: float) -> int:
        self._refuse_write()

    def save(self, record: SiteRecord) -> None:
        self._refuse_write()

    def undelivered(self, limit: int) -> list[OutboxLink]:
        return []

    def delivered(self, ids: Sequence[int]) -> None:
        pass

    def receive(self, links: Sequence[OutboxLink]) -> int:
        self._refuse_write()

    def fence(self, urls: Sequence[str]) -> list[MovedPage]:
        self._refuse_write()

    def import_pages(self, pages: Sequence[MovedPage]) -> None:
        self._refuse_write()

    def let_go(self, page_ids: Sequence[int]) -> None:
        self._refuse_write()

    unfence = let_go

    def fenced(self) -> list[tuple[int, str]]:
        return []

    def urls_after(self, page_id: int, limit: int) -> list[tuple[int, str]]:
        return []

    def waiting(self, now: float, limit: int) -> list[tuple[float, int]]:
        return []

    def follow_seq(self, seq: int) -> None:
        pass

    def _refuse_write(self) -> NoReturn:
        raise StoreError(f"shard {self._number} is in the data folder of another machine: nothing is stored there")
