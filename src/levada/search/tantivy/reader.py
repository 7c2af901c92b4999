"""Reading an index: hits, postings, and one shard's part of a search.

The reader looks at tantivy's meta file before each search (a microsecond or two) and reloads when it was replaced.
So it needs no watching thread and never answers from before an existing commit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import msgspec
import tantivy

from levada.core.clock import SystemClock
from levada.core.search_records import FacetName, Facets, Posting, Query
from levada.search.best_match import Match, best_match
from levada.search.hits import TIMES, HitSummary, facet_counts, pages_wanted
from levada.search.hybrid.fusion import Near, with_near_pages
from levada.search.links import LinkReader
from levada.search.ranking import reranked
from levada.search.stemming import LANGUAGES
from levada.search.tantivy.folder import IndexFolder, IndexLinks, damaged, may_write, translated
from levada.search.tantivy.queries import form_languages, tantivy_query, term
from levada.search.tantivy.schema import FORMAT, FORMS, PROPERTIES, register_analyzers, schema, summary_of
from levada.search.tantivy.statistics import (
    QueriesInLanguages,
    explained,
    frequency,
    global_score,
    no_queries,
    query_forms,
    query_of,
    statistics,
    totals_of,
    word_queries,
)
from levada.search.terms import Ask
from levada.search.typos import OneByOne
from levada.search.weights import Forms, IndexTotals, TermStatistics, WordWeights
from levada.store.rules import PAGE_BITS, nth_of

_EVERY_TERM = 50_000_000
_COUNTED_EXACTLY = 50  # pages: of more, some may be deleted, and tantivy counts them until it merges
_MOST_VALUES = 60_000  # of a facet, in a part of the index; tantivy's own limit is 65,000


def _terms(field: str) -> dict[str, Any]:
    return {"terms": {"field": field, "size": _MOST_VALUES, "segment_size": _MOST_VALUES}}


def _since(now: float) -> dict[str, Any]:
    """The times from one moment to the next: tantivy refuses ranges that overlap."""
    starts = [now - seconds for _, seconds in TIMES]
    ranges = [{"key": TIMES[0][0], "from": starts[0]}]
    ranges += [
        {"key": name, "from": start, "to": end}
        for (name, _), start, end in zip(TIMES[1:], starts[1:], starts, strict=False)
    ]
    return {"range": {"field": "changed_at", "ranges": ranges}}


def _counted(name: FacetName, buckets: list[dict[str, Any]]) -> Counter[str]:
    counts = Counter({str(each["key"]): int(each["doc_count"]) for each in buckets})
    if name != "time":
        return counts
    every = [name for name, _ in TIMES]
    return Counter(dict(zip(every, accumulate(counts[each] for each in every), strict=True)))


def open_index(segments: Path) -> tantivy.Index:
    """Open the index in `segments`, created if it is missing. tantivy itself refuses one with other fields."""
    index = tantivy.Index(schema(), str(segments), reuse=True)
    index.config_reader(reload_policy="manual")
    register_analyzers(index)
    return index


class TantivyReader:
    """The newest commit of the index in a folder. Every failure is a `StoreError` about it."""

    def __init__(self, folder: IndexFolder) -> None:
        self._folder = folder
        self._index: tantivy.Index | None = None
        self._links: IndexLinks | None = None
        self._searcher: tantivy.Searcher | None = None
        self._languages: list[str] = []
        self._kept: tuple[tantivy.Searcher | None, QueriesInLanguages] = None, no_queries
        self._seen: tuple[int, int] | None = None
        self._linked = LinkReader([folder.links])

    def search(self, ask: Ask, query: Query, near: Near | None = None) -> tuple[Match[HitSummary], Facets]:
        """The matching pages, those that are to be shown as summaries, and how many have each value of the facets."""
        with translated(self._folder.path):
            searcher = self.searcher()
            if searcher is None:
                return Match(0, (), ask), {}
            by_time = query.sort == "changed"
            by_words = partial(self._run, searcher, by_time=by_time)
            summary_of = _Summaries(searcher).of
            run = reranked(by_words, summary_of, self._linked.facts)
            words = SearchedWords(searcher, self._languages)

            def best(wanted: int) -> Match[HitSummary]:
                match = best_match(ask, query, words, wanted, run, _place)
                return Match(match.total, shown(match.found), match.ask, match.corrected)

            def shown(found: Sequence[tuple[float, tantivy.DocAddress]]) -> list[tuple[float, HitSummary]]:
                return [(score, summary_of(address)) for score, address in found]

            def run_shown(ask: Ask, wanted: int) -> tuple[int, list[tuple[float, HitSummary]]]:
                total, found = by_words(ask, wanted)
                return total, shown(found)

            match = with_near_pages(ask, query, near, pages_wanted(query), best, run_shown)
            values = self._values(searcher, match.ask, query)
            counts: Facets = {name: facet_counts(name, values[name]) for name in query.facets}
            return match, counts

    def _run(
        self, searcher: tantivy.Searcher, ask: Ask, wanted: int, *, by_time: bool
    ) -> tuple[int, list[tuple[float, tantivy.DocAddress]]]:
        # Without words there is nothing to rank by: the newest come first.
        order = "changed_at" if by_time or not ask.words() else None
        found = searcher.search(self._query(searcher, ask), max(wanted, 1), order_by_field=order)
        total: int = found.count  # type: ignore[attr-defined]  # tantivy's own stubs leave it out
        return total, [(0.0 if order else score, address) for score, address in found.hits[:wanted]]

    def _query(self, searcher: tantivy.Searcher, ask: Ask) -> tantivy.Query:
        of, queries_of = self._kept
        if of is not searcher:
            queries_of = word_queries(searcher)
            self._kept = searcher, queries_of
        languages = tuple(form_languages(ask, self._languages))
        return tantivy_query(ask, searcher, lambda each: queries_of(each, languages))

    def facet_values(self, ask: Ask, query: Query) -> dict[FacetName, Counter[str]]:
        """How many of the pages that `ask` finds have each value of the facets of `query`."""
        with translated(self._folder.path):
            searcher = self.searcher()
            return {} if searcher is None else self._values(searcher, ask, query)

    def _values(self, searcher: tantivy.Searcher, ask: Ask, query: Query) -> dict[FacetName, Counter[str]]:
        if not query.facets:
            return {}
        now = SystemClock().now() if query.now is None else query.now
        wanted = {name: _since(now) if name == "time" else _terms(name) for name in query.facets}
        answer = searcher.aggregate(self._query(searcher, ask), wanted)
        return {name: _counted(name, answer[name]["buckets"]) for name in query.facets}

    def postings(self, word: str, limit: int) -> list[Posting]:
        with translated(self._folder.path):
            searcher = self.searcher()
            if searcher is None or limit < 1 or not searcher.num_docs:
                return []
            fields = [term("text", word), term("title", word)]
            either = tantivy.Query.boolean_query([(tantivy.Occur.Should, field) for field in fields])
            limit = min(limit, searcher.num_docs)  # tantivy allocates as many as the limit
            found = searcher.search(either, limit, count=False, order_by_field="place", order=tantivy.Order.Asc)
            return [
                Posting(
                    site=place >> PAGE_BITS,
                    page=nth_of(place),
                    count=sum(frequency(explained(field, searcher, address)) for field in fields),
                    url=summary_of(searcher.doc(address)).url,
                )
                for place, address in found.hits
            ]

    def position(self) -> int:
        with translated(self._folder.path):
            self.searcher()
            return self._folder.read_position()

    def close(self) -> None:
        """Release everything. The next search opens it again."""
        self._index = self._searcher = self._seen = None
        self._kept = None, no_queries
        self._linked.close()
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
            self.close()
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
        self.close()
        self._links = IndexLinks(self._folder.segments)
        try:
            return open_index(self._links.path).searcher()
        except (ValueError, OSError):  # a segment was deleted: there is a newer commit
            if tries == 1:
                raise
            return self._linked_searcher(tries - 1)


def held_in_index(path: Path, pattern: re.Pattern[bytes], words: Sequence[str]) -> tuple[int, bool]:
    """How many stored entries match, with those that are deleted and not yet cleaned up; and whether one of `words`
    is among the words, or their forms, that the files hold."""
    folder = IndexFolder(path, FORMAT)
    with translated(path):
        searcher = TantivyReader(folder).searcher()
        if searcher is None:
            return 0, False
        entries = sum(bool(pattern.search(card)) for card in _cards(searcher))
        if len(words) != 1:  # several words are often held one by one
            return entries, False
        forms = searcher.terms_with_prefix(FORMS, "", limit=_EVERY_TERM)
        properties = searcher.terms_with_prefix(PROPERTIES, "", limit=_EVERY_TERM)
        return entries, (
            any(searcher.doc_freq(field, words[0]) for field in ("text", "title"))
            or any(term.endswith(words[0]) for term, _ in forms)
            or any(term.endswith(f"={words[0]}") for term, _ in properties)
        )


def _cards(searcher: tantivy.Searcher) -> Iterator[bytes]:
    """The stored bytes of every entry."""
    for segment in range(searcher.num_segments):
        for number in count():
            try:
                entry = searcher.doc(tantivy.DocAddress(segment, number))
            except (ValueError, RuntimeError, OSError, OverflowError):
                break  # the segment has no more
            yield b"".join(bytes(each) for each in entry.get_all("card"))


def _place(address: tantivy.DocAddress) -> tuple[int, int]:
    return address.segment_ord, address.doc


class _Summaries:
    """What is shown of pages, read once for one search: most are ranked by it before they are shown."""

    def __init__(self, searcher: tantivy.Searcher) -> None:
        self._searcher = searcher
        self._read: dict[tuple[int, int], HitSummary] = {}

    def of(self, address: tantivy.DocAddress) -> HitSummary:
        place = _place(address)
        summary = self._read.get(place)
        if summary is None:
            summary = self._read[place] = summary_of(self._searcher.doc(address))
        return summary


class SearchedWords(OneByOne):
    """What the newest commit knows about words."""

    def __init__(self, searcher: tantivy.Searcher, languages: Sequence[str]) -> None:
        self._searcher = searcher
        self._languages = languages

    def pages(self) -> int:
        count: int = self._searcher.num_docs
        return count

    def holders(self, word: str) -> int:
        count = self._searcher.doc_freq("text", word)
        if not 0 < count <= _COUNTED_EXACTLY:
            return count
        alive: int = self._searcher.search(term("text", word), 1).count  # type: ignore[attr-defined]  # as above
        return alive

    def beginning(self, start: str, limit: int) -> list[tuple[str, int]]:
        return self._searcher.terms_with_prefix("text", start, limit=limit)

    def languages(self) -> Sequence[str]:
        return self._languages


class ScoredHit(msgspec.Struct, frozen=True):
    """A hit with its score over all indexes, or the time of its change if there is nothing to rank by."""

    score: float
    summary: HitSummary


Candidate = tuple[float, Callable[[], ScoredHit]]
"""The highest score that a hit can have, and a function for its exact score, which costs more."""


class TantivyShard(TantivyReader):
    """The index in a folder, as one of several."""

    def __init__(self, path: Path) -> None:
        super().__init__(IndexFolder(path, FORMAT))
        self.links = self._folder.links
        self._totals: tuple[tantivy.Searcher | None, IndexTotals] = None, IndexTotals()

    def sites(self) -> dict[str, int]:
        """The number of each site that it ever held a page of."""
        with translated(self._folder.path):
            return self._folder.read_sites()

    def forms(self, ask: Ask) -> Forms:
        with translated(self._folder.path):
            return query_forms(self.searcher(), ask.every_word(), form_languages(ask, self._languages))

    def statistics(self, ask: Ask, forms: Forms) -> TermStatistics:
        """The word statistics; `forms` are those that any index knows."""
        with translated(self._folder.path):
            searcher = self.searcher()
            if searcher is not self._totals[0]:
                self._totals = searcher, totals_of(searcher)
            return statistics(searcher, self._totals[1], ask.every_word(), forms)

    def words(self) -> SearchedWords | None:
        """What this index knows about words; None if it is empty."""
        with translated(self._folder.path):
            searcher = self.searcher()
            return None if searcher is None else SearchedWords(searcher, self._languages)

    def candidates(
        self, ask: Ask, wanted: int, weights: WordWeights, *, by_time: bool
    ) -> tuple[int, Iterator[Candidate]]:
        """The number of matching pages, and lazily the pages, those with the highest possible score first."""
        with translated(self._folder.path):
            searcher = self.searcher()
            if searcher is None:
                return 0, iter(())
            if by_time or not ask.words():
                total, newest = self._run(searcher, ask, wanted, by_time=True)
                summaries = (summary_of(searcher.doc(address)) for _, address in newest)
                return total, ((each.changed_at, partial(ScoredHit, each.changed_at, each)) for each in summaries)
            query = query_of(ask, searcher, weights)
            hits = _Hits(searcher, query, wanted + 1)

            def weigh(address: tantivy.DocAddress) -> ScoredHit:
                return ScoredHit(global_score(ask, searcher, address, weights), summary_of(searcher.doc(address)))

            slack = weights.slack()
            return hits.total, ((score * slack, partial(weigh, address)) for score, address in hits)

    def weights(self, every: Sequence[TermStatistics], own: TermStatistics, forms: Forms) -> WordWeights | None:
        """The weights of words over several indexes, for this one; None if it is empty."""
        with translated(self._folder.path):
            searcher = self.searcher()
            return None if searcher is None else WordWeights(every, own, forms)


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
