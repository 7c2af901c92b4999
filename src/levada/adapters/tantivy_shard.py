"""What does one index of several answer? Its counts, its best hits weighed over all, its postings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import tantivy

from levada.adapters.index_folder import IndexFolder
from levada.adapters.tantivy_errors import translated
from levada.adapters.tantivy_query import tantivy_query
from levada.adapters.tantivy_reader import TantivyReader
from levada.adapters.tantivy_schema import FORMAT, Card, card_of
from levada.adapters.tantivy_scoring import global_score
from levada.adapters.tantivy_statistics import (
    Forms,
    GlobalWeights,
    IndexTotals,
    TermStatistics,
    asked_forms,
    statistics,
    totals_of,
)
from levada.pages.query import Ask
from levada.searching import Posting

__all__ = ["Candidate", "Found", "TantivyShard"]


class Found(msgspec.Struct, frozen=True):
    """`score` is what the hit is worth over all indexes, or when it changed if there is nothing to rank by."""

    score: float
    card: Card


Candidate = tuple[float, Callable[[], Found]]
"""At most how much a hit may be worth, and what tells how much it is: the latter costs more."""


class TantivyShard:
    """The index in a folder, for reading."""

    def __init__(self, path: Path) -> None:
        self._folder = IndexFolder(path, FORMAT)
        self._reader = TantivyReader(self._folder)
        self._totals: tuple[tantivy.Searcher | None, IndexTotals] = None, IndexTotals()

    def close(self) -> None:
        self._reader.forget()

    def position(self) -> int:
        with translated(self._folder.path):
            self._reader.searcher()
            return self._folder.read_position()

    def sites(self) -> dict[str, int]:
        """The number of each site that it ever held a page of."""
        with translated(self._folder.path):
            return self._folder.read_sites()

    def forms(self, ask: Ask) -> Forms:
        with translated(self._folder.path):
            return asked_forms(self._reader.searcher(), ask, self._reader.present())

    def statistics(self, ask: Ask, forms: Forms) -> TermStatistics:
        """`forms` are those that any index has met."""
        with translated(self._folder.path):
            searcher = self._reader.searcher()
            if searcher is not self._totals[0]:
                self._totals = searcher, totals_of(searcher)
            return statistics(searcher, self._totals[1], ask, forms)

    def candidates(self, ask: Ask, wanted: int, weights: GlobalWeights) -> tuple[int, Iterator[Candidate]]:
        """How many pages answer; and they, those that may be worth most first, as far as somebody asks for them."""
        with translated(self._folder.path):
            searcher = self._reader.searcher()
            if searcher is None:
                return 0, iter(())
            if not ask.words():
                return self._newest(searcher, ask, wanted)
            query = tantivy_query(ask, searcher, self._reader.present(), weights)
            own = asked_forms(searcher, ask, self._reader.present())
            hits = _Hits(searcher, query, wanted + 1)

            def weigh(address: tantivy.DocAddress) -> Found:
                return Found(global_score(ask, searcher, address, weights, own), card_of(searcher.doc(address)))

            slack = weights.slack()
            return hits.total, ((score * slack, partial(weigh, address)) for score, address in hits)

    def postings(self, word: str, limit: int) -> list[Posting]:
        with translated(self._folder.path):
            return self._reader.postings(word, limit)

    def _newest(self, searcher: tantivy.Searcher, ask: Ask, wanted: int) -> tuple[int, Iterator[Candidate]]:
        query = tantivy_query(ask, searcher, self._reader.present())
        result = searcher.search(query, max(1, wanted), order_by_field="changed_at")
        cards = [card_of(searcher.doc(address)) for _, address in result.hits[:wanted]]
        total: int = result.count  # type: ignore[attr-defined]  # tantivy's own stubs leave it out
        found = [Found(card.changed_at, card) for card in cards]
        return total, ((each.score, partial(_same, each)) for each in found)


class _Hits:
    """All hits of a query in tantivy's order, fetched some at a time: twice as many each time."""

    def __init__(self, searcher: tantivy.Searcher, query: tantivy.Query, first: int) -> None:
        self._searcher = searcher
        self._query = query
        self._result = searcher.search(query, first)
        self._fetched = first
        self.total: int = self._result.count  # type: ignore[attr-defined]  # tantivy's own stubs leave it out

    def __iter__(self) -> Iterator[tuple[float, tantivy.DocAddress]]:
        place = 0
        while place < self.total:
            if place >= len(self._result.hits):
                self._fetched = min(2 * self._fetched, self.total)
                self._result = self._searcher.search(self._query, self._fetched, count=False)
            yield self._result.hits[place]
            place += 1


def _same(found: Found) -> Found:
    return found
