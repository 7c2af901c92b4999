"""The index follows the documents: in batches, up to what there was when it began."""

from __future__ import annotations

from collections.abc import Iterable

from levada.core.records import Change
from levada.follow.index import catch_up
from levada.search.memory import MemoryIndex
from levada.store.memory import MemoryStore
from levada.testing.store.visits import first, links


class Commits(MemoryIndex):
    """An index that remembers how large its commits were."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def apply(self, changes: Iterable[Change]) -> int:
        taken = super().apply(changes)
        self.sizes += [taken] if taken else []
        return taken


def crawl_on(store: MemoryStore, start: int, count: int) -> None:
    store.add(links("a.test", count, start), [], 0.0)
    leases = store.lease(0.0, count, 60.0)
    assert all(store.commit([first(lease, 1.0, f"words {lease.page.id}", interval=1e9) for lease in leases]))


def test_everything_that_there_is_comes_in_batches() -> None:
    store, index = MemoryStore(), Commits()
    crawl_on(store, 0, 25)
    assert catch_up(store, index, 10) == 25
    assert index.sizes == [10, 10, 5]
    assert catch_up(store, index, 10) == 0


def test_a_crawl_that_goes_on_is_not_followed_in_ever_smaller_commits() -> None:
    store, index = MemoryStore(), Commits()
    crawl_on(store, 0, 13)

    def meanwhile(_seq: int) -> None:
        if len(index.sizes) < 5:
            crawl_on(store, 100 * len(index.sizes), 4)

    assert catch_up(store, index, 10, meanwhile) == 17
    assert index.sizes == [10, 7]
    assert catch_up(store, index, 10) == 4, "what came meanwhile is taken the next time"
    assert catch_up(store, index, 10) == 0
