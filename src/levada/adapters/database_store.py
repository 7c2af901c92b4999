"""What can a store in a database do besides? Be one shard of several, and let its pages move to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from levada.adapters.composed_store import ComposedStore, StoreFrontier
from levada.adapters.moving import MovedPage, Movers
from levada.ports import Census, Documents, Notices, Sites
from levada.records import Forwarded

__all__ = ["DatabaseStore", "StoreParts"]


class _Database(Protocol):
    seq_base: int

    def close(self) -> None: ...
    def format(self) -> int: ...


class _Frontier(StoreFrontier, Protocol):
    def url_of(self, page_id: int) -> str | None: ...
    def urls_like(self, start: str, limit: int) -> list[str]: ...
    def waiting(self, now: float, limit: int) -> list[tuple[float, int]]: ...
    def receive(self, links: Sequence[Forwarded]) -> int: ...


class _Documents(Documents, Protocol):
    def newest_seq(self) -> int: ...


class _Outbox(Protocol):
    def undelivered(self, limit: int) -> list[Forwarded]: ...
    def delivered(self, ids: Sequence[int]) -> None: ...


class StoreParts(NamedTuple):
    frontier: _Frontier
    sites: Sites
    documents: _Documents
    census: Census
    notices: Notices
    outbox: _Outbox
    movers: Movers


class DatabaseStore(ComposedStore):
    """A store that is `levada.adapters.sharded.shard.Shard` too, but for its `check`."""

    _frontier: _Frontier
    _documents: _Documents

    def __init__(self, database: _Database, parts: StoreParts) -> None:
        super().__init__(parts.frontier, parts.sites, parts.documents, parts.census, parts.notices)
        self._database = database
        self._outbox = parts.outbox
        self._movers = parts.movers

    def close(self) -> None:
        self._database.close()

    @property
    def format(self) -> int:
        """The number of the layout that this store is written in."""
        return self._database.format()

    def url_of(self, page_id: int) -> str | None:
        """The address of the page with this number."""
        return self._frontier.url_of(page_id)

    def urls_like(self, start: str, limit: int) -> list[str]:
        """The first addresses, in their order, that begin with `start`: a front page names those of its site."""
        return self._frontier.urls_like(start, limit)

    def waiting(self, now: float, limit: int) -> list[tuple[float, int]]:
        return self._frontier.waiting(now, limit)

    def newest_seq(self) -> int:
        """The step of the newest change; 0 if nothing was ever stored."""
        return self._documents.newest_seq()

    def follow_seq(self, seq: int) -> None:
        self._database.seq_base = max(self._database.seq_base, seq)

    def undelivered(self, limit: int) -> list[Forwarded]:
        return self._outbox.undelivered(limit)

    def delivered(self, ids: Sequence[int]) -> None:
        self._outbox.delivered(ids)

    def receive(self, links: Sequence[Forwarded]) -> int:
        return self._frontier.receive(links)

    def fence(self, urls: Sequence[str]) -> list[MovedPage]:
        return self._movers.fence(urls)

    def take_in(self, pages: Sequence[MovedPage]) -> None:
        self._movers.take_in(pages)

    def let_go(self, page_ids: Sequence[int]) -> None:
        self._movers.let_go(page_ids)

    def open_up(self, page_ids: Sequence[int]) -> None:
        self._movers.open_up(page_ids)

    def fenced(self) -> list[tuple[int, str]]:
        return self._movers.fenced()

    def urls_after(self, page_id: int, limit: int) -> list[tuple[int, str]]:
        return self._movers.urls_after(page_id, limit)
