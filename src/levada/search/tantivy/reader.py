"""Reading an index: hits, postings, and one shard's part of a search.

The reader looks at tantivy's meta file before each search (a microsecond or two) and reloads when it was replaced.
So it needs no watching thread and never answers from before an existing commit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import tantivy

from levada.core.search_records import Posting
from levada.search.query import Ask
from levada.search.stemming import LANGUAGES
from levada.search.tantivy.folder import IndexFolder, IndexLinks, damaged, may_write, translated
from levada.search.tantivy.queries import tantivy_query, term
from levada.search.tantivy.schema import FORMAT, HitSummary, register_analyzers, schema, summary_of
from levada.search.tantivy.statistics import (
    Forms,
    GlobalWeights,
    IndexTotals,
    TermStatistics,
    global_score,
    query_forms,
    statistics,
    totals_of,
)
from levada.store.rules import PAGE_BITS, nth_of

_FREQUENCY = re.compile(r'"value": ([\d.]+),\s*"description": "freq, occurrences')


def open_index(segments: Path) -> tantivy.Index:
    """Open the index in `segments`, created if it is missing. tantivy itself refuses one with other fields."""
    index = tantivy.Index(schema(), str(segments), reuse=True)
    index.config_reader(reload_policy="manual")
    register_analyzers(index)
    return index


class TantivyReader:
    """The newest commit of an index."""

    def __init__(self, folder: IndexFolder) -> None:
        self._folder = folder
        self._index: tantivy.Index | None = None
        self._links: IndexLinks | None = None
        self._searcher: tantivy.Searcher | None = None
        self._languages: list[str] = []
        self._seen: tuple[int, int] | None = None

    def search(self, ask: Ask, limit: int, offset: int) -> tuple[int, list[tuple[float, HitSummary]]]:
        """The number of matching pages, and `limit` of them with their scores."""
        searcher = self.searcher()
        if searcher is None:
            return 0, []
        # Without words there is nothing to rank by: the newest come first.
        order = None if ask.words() else "changed_at"
        query = tantivy_query(ask, searcher, self._languages)
        found = searcher.search(query, max(limit, 1), offset=offset, order_by_field=order)
        total: int = found.count  # type: ignore[attr-defined]  # tantivy's own stubs leave it out
        hits = found.hits[:limit]
        return total, [(0.0 if order else score, summary_of(searcher.doc(address))) for score, address in hits]

    def postings(self, word: str, limit: int) -> list[Posting]:
        searcher = self.searcher()
        if searcher is None or limit < 1 or not searcher.num_docs:
            return []
        fields = [term("text", word), term("title", word)]
        either = tantivy.Query.boolean_query([(tantivy.Occur.Should, field) for field in fields])
        limit = min(limit, searcher.num_docs)  # tantivy allocates as many as the limit
        found = searcher.search(either, limit, count=False, order_by_field="place", order=tantivy.Order.Asc)
        return [_posting(searcher, fields, place, address) for place, address in found.hits]

    def present(self) -> list[str]:
        """The languages of the pages, of those whose forms are known."""
        self.searcher()
        return self._languages

    def forget(self) -> None:
        self._index = self._searcher = self._seen = None
        if self._links is not None:
            self._links.close()
            self._links = None

    def searcher(self) -> tantivy.Searcher | None:
        """A searcher of the newest commit; None if there is no index yet."""
        try:
            meta = (self._folder.segments / "meta.json").stat()
        except FileNotFoundError:
            if self._folder.read_position():
                raise damaged(self._folder.path, "has lost its segments") from None
            self.forget()
            return None
        if (meta.st_ino, meta.st_mtime_ns) != self._seen:
            self._load()
            self._seen = meta.st_ino, meta.st_mtime_ns
        return self._searcher

    def _load(self) -> None:
        self._folder.read_position()  # raises if the format is not ours
        searcher = self._newest_searcher() if may_write(self._folder.segments) else self._linked_searcher()
        self._languages = [code for code in LANGUAGES if searcher.doc_freq("language", code)]
        self._searcher = searcher

    def _newest_searcher(self) -> tantivy.Searcher:
        if self._index is None:
            self._index = open_index(self._folder.segments)
        self._index.reload()
        return self._index.searcher()

    def _linked_searcher(self, tries: int = 3) -> tantivy.Searcher:
        self.forget()
        self._links = IndexLinks(self._folder.segments)
        try:
            return open_index(self._links.path).searcher()
        except (ValueError, OSError):  # a segment was deleted: there is a newer commit
            if tries == 1:
                raise
            return self._linked_searcher(tries - 1)


def _posting(
    searcher: tantivy.Searcher, fields: list[tantivy.Query], place: int, address: tantivy.DocAddress
) -> Posting:
    return Posting(
        site=place >> PAGE_BITS,
        page=nth_of(place),
        count=sum(_frequency(searcher, field, address) for field in fields),
        url=summary_of(searcher.doc(address)).url,
    )


def _frequency(searcher: tantivy.Searcher, query: tantivy.Query, address: tantivy.DocAddress) -> int:
    """How often the term occurs in the page. tantivy-py shows it only in the explanation of a score."""
    try:
        found = _FREQUENCY.search(query.explain(searcher, address).to_json())
    except ValueError:  # this field of the page does not have it
        return 0
    return int(float(found[1])) if found else 0


class ScoredHit(msgspec.Struct, frozen=True):
    """A hit with its score over all indexes, or the time of its change if there is nothing to rank by."""

    score: float
    summary: HitSummary


Candidate = tuple[float, Callable[[], ScoredHit]]
"""The highest score that a hit can have, and a function for its exact score, which costs more."""


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
            return query_forms(self._reader.searcher(), ask, self._reader.present())

    def statistics(self, ask: Ask, forms: Forms) -> TermStatistics:
        """The word statistics; `forms` are those that any index knows."""
        with translated(self._folder.path):
            searcher = self._reader.searcher()
            if searcher is not self._totals[0]:
                self._totals = searcher, totals_of(searcher)
            return statistics(searcher, self._totals[1], ask, forms)

    def candidates(self, ask: Ask, wanted: int, weights: GlobalWeights) -> tuple[int, Iterator[Candidate]]:
        """The number of matching pages, and lazily the pages, those with the highest possible score first."""
        with translated(self._folder.path):
            searcher = self._reader.searcher()
            if searcher is None:
                return 0, iter(())
            if not ask.words():
                return self._newest(searcher, ask, wanted)
            query = tantivy_query(ask, searcher, self._reader.present(), weights)
            own = query_forms(searcher, ask, self._reader.present())
            hits = _Hits(searcher, query, wanted + 1)

            def weigh(address: tantivy.DocAddress) -> ScoredHit:
                return ScoredHit(global_score(ask, searcher, address, weights, own), summary_of(searcher.doc(address)))

            slack = weights.slack()
            return hits.total, ((score * slack, partial(weigh, address)) for score, address in hits)

    def postings(self, word: str, limit: int) -> list[Posting]:
        with translated(self._folder.path):
            return self._reader.postings(word, limit)

    def _newest(self, searcher: tantivy.Searcher, ask: Ask, wanted: int) -> tuple[int, Iterator[Candidate]]:
        query = tantivy_query(ask, searcher, self._reader.present())
        result = searcher.search(query, max(1, wanted), order_by_field="changed_at")
        summaries = [summary_of(searcher.doc(address)) for _, address in result.hits[:wanted]]
        total: int = result.count  # type: ignore[attr-defined]  # tantivy's own stubs leave it out
        found = [ScoredHit(summary.changed_at, summary) for summary in summaries]
        return total, ((each.score, partial(_same, each)) for each in found)


class _Hits:
    """All hits of a query in tantivy's order, fetched in batches, each twice as large as the last."""

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


def _same(found: ScoredHit) -> ScoredHit:
    return found
