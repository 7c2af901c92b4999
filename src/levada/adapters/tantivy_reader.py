"""What does the index answer, as of its newest commit?

The reader looks at tantivy's meta file before each search (a microsecond or two) and loads again when it has been
replaced, so it needs no watching thread and never answers from before a commit that was already there.
"""

from __future__ import annotations

import re
from pathlib import Path

import tantivy

from levada.adapters.index_folder import IndexFolder, damaged
from levada.adapters.index_links import IndexLinks, may_write
from levada.adapters.keeping import PAGE_BITS, nth_of
from levada.adapters.stemming import LANGUAGES
from levada.adapters.tantivy_query import tantivy_query, term
from levada.adapters.tantivy_schema import Card, card_of, register_analyzers, schema
from levada.pages.query import Ask
from levada.searching import Posting

__all__ = ["TantivyReader", "open_index"]

_FREQUENCY = re.compile(r'"value": ([\d.]+),\s*"description": "freq, occurrences')


def open_index(segments: Path) -> tantivy.Index:
    """The index in `segments`, made if it is not there; tantivy itself refuses one with other fields."""
    index = tantivy.Index(schema(), str(segments), reuse=True)
    index.config_reader(reload_policy="manual")
    register_analyzers(index)
    return index


class TantivyReader:
    def __init__(self, folder: IndexFolder) -> None:
        self._folder = folder
        self._index: tantivy.Index | None = None
        self._links: IndexLinks | None = None
        self._searcher: tantivy.Searcher | None = None
        self._languages: list[str] = []
        self._seen: tuple[int, int] | None = None

    def search(self, ask: Ask, limit: int, offset: int) -> tuple[int, list[tuple[float, Card]]]:
        """How many pages answer, and `limit` of them with their scores."""
        searcher = self.searcher()
        if searcher is None:
            return 0, []
        # Without words there is nothing to rank by: the newest come first.
        order = None if ask.words() else "changed_at"
        query = tantivy_query(ask, searcher, self._languages)
        found = searcher.search(query, max(limit, 1), offset=offset, order_by_field=order)
        total: int = found.count  # type: ignore[attr-defined]  # tantivy's own stubs leave it out
        hits = found.hits[:limit]
        return total, [(0.0 if order else score, card_of(searcher.doc(address))) for score, address in hits]

    def postings(self, word: str, limit: int) -> list[Posting]:
        searcher = self.searcher()
        if searcher is None or limit < 1 or not searcher.num_docs:
            return []
        fields = [term("text", word), term("title", word)]
        either = tantivy.Query.boolean_query([(tantivy.Occur.Should, field) for field in fields])
        limit = min(limit, searcher.num_docs)  # tantivy makes room for as many as are asked for
        found = searcher.search(either, limit, count=False, order_by_field="place", order=tantivy.Order.Asc)
        return [_posting(searcher, fields, place, address) for place, address in found.hits]

    def present(self) -> list[str]:
        """The languages that pages are in, of those whose forms are known."""
        self.searcher()
        return self._languages

    def forget(self) -> None:
        self._index = self._searcher = self._seen = None
        if self._links is not None:
            self._links.close()
            self._links = None

    def searcher(self) -> tantivy.Searcher | None:
        """Of the newest commit; None where no index has been made yet."""
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
        except (ValueError, OSError):  # a segment went away: there is a newer commit
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
        url=card_of(searcher.doc(address)).url,
    )


def _frequency(searcher: tantivy.Searcher, query: tantivy.Query, address: tantivy.DocAddress) -> int:
    """How often the term stands in the page: the explanation of its score is where tantivy-py tells it."""
    try:
        found = _FREQUENCY.search(query.explain(searcher, address).to_json())
    except ValueError:  # this field of the page does not have it
        return 0
    return int(float(found[1])) if found else 0
