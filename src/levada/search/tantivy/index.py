"""Writing an index: one writer, any number of readers in other processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import tantivy

from levada.core.errors import StoreDamaged, StoreError, StoreTooNew
from levada.core.protocols import Faults
from levada.core.records import Change, Document
from levada.core.search_records import Hits, Posting, Query
from levada.search.hits import HitSources, PageFacts, hits_of
from levada.search.hybrid.fusion import Near
from levada.search.links import LinkWriter
from levada.search.query import one_word, parse_page_of_hits
from levada.search.stemming import LANGUAGES
from levada.search.tantivy.folder import IndexFolder, damaged, translated
from levada.search.tantivy.reader import TantivyReader, open_index
from levada.search.tantivy.schema import FORMAT, KnownForms, document_of, forms_entry
from levada.store.faults import NoFaults

# documents: with fewer tantivy's thread wakes and sleeps often, with more their texts leave the cache
_TOGETHER = 256
_TEXT_TOGETHER = 2_000_000  # characters: fewer long documents are held at once


def index_folder(path: Path) -> IndexFolder:
    """The files of the index in this folder."""
    return IndexFolder(path, FORMAT)


class TantivyIndex:
    """`levada.core.protocols.Index` in a folder; read-only unless `writer` is set. A writer reads too.

    `near` makes its searches hybrid. `text_of` and `page_facts` give what hits show of stored pages, see
    `levada.search.hits.HitSources`. A damaged or outdated folder opens, so that it can be cleared; everything else
    raises `StoreDamaged`.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        writer: bool = False,
        heap_bytes: int = 64 << 20,
        text_of: Callable[[str], str] | None = None,
        page_facts: Callable[[str], PageFacts | None] | None = None,
        near: Near | None = None,
        expect: Callable[[Sequence[str]], None] | None = None,
        faults: Faults | None = None,
    ) -> None:
        self._folder = index_folder(Path(path))
        self._reader = TantivyReader(self._folder)
        self._sources = HitSources(text_of, page_facts, expect)
        self._near = near
        self._may_write = writer
        self._heap_bytes = heap_bytes
        self._faults = faults or NoFaults()
        self._writer: tantivy.IndexWriter | None = None
        self._links = LinkWriter(self._folder.links)
        self._sites: dict[str, int] = {}
        self._forms = KnownForms()
        if writer:
            with suppress(StoreDamaged, StoreTooNew):
                self._open_writer()

    def apply(self, changes: Iterable[Change]) -> int:
        position, taken = self.position(), 0
        with self._all_or_nothing() as writer:
            terms: list[str] = []
            for portion in _portions(changes):
                self._write(writer, portion)
                self._links.count(portion)
                terms += self._new_forms(portion)
                taken += len(portion)
                position = max(position, portion[-1].seq)
            if not taken:
                return 0
            if terms:
                writer.add_document(forms_entry(terms))
            self._links.commit()
            self._faults.reach("index.commit")
            writer.commit()
            # The position comes last: a crash before this line repeats the batch, it never skips it.
            self._faults.reach("index.position")
            self._folder.write_position(position)
        return taken

    def position(self) -> int:
        if self._may_write and self._folder.is_to_be_rebuilt:
            raise damaged(self._folder.path, "still holds what was forgotten")
        return self._reader.position()

    def search(self, query: Query) -> Hits:
        ask = parse_page_of_hits(query)
        match, facets = self._reader.search(ask, query, self._near)
        return hits_of(query, ask, match, self._sources, facets)

    def postings(self, word: str, limit: int) -> list[Posting]:
        return self._reader.postings(one_word(word), limit)

    def clear(self) -> None:
        self._check_may_write()
        self._close_writer()
        self._reader.close()
        self._forms.forget()
        with translated(self._folder.path):
            self._folder.wipe()
        self._open_writer()

    def close(self) -> None:
        self._close_writer()
        self._reader.close()

    def _check_may_write(self) -> None:
        if not self._may_write:
            raise StoreError(f"the index in {self._folder.path} was opened for reading only")

    def _open_writer(self) -> tantivy.IndexWriter:
        with translated(self._folder.path):
            self._folder.make()
            self._writer = open_index(self._folder.segments).writer(self._heap_bytes, num_threads=1)
            self._sites = self._folder.read_sites()
            return self._writer

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        self._links.close()
        if writer is not None:
            with translated(self._folder.path):
                writer.wait_merging_threads()

    @contextmanager
    def _all_or_nothing(self) -> Iterator[tantivy.IndexWriter]:
        """Drop a batch that fails, with its writer. The next batch gets a new writer."""
        self._check_may_write()
        writer = self._writer or self._open_writer()
        try:
            with translated(self._folder.path):
                yield writer
        except BaseException:
            with suppress(StoreError):
                self._drop_batch(writer)
            raise

    def _drop_batch(self, writer: tantivy.IndexWriter) -> None:
        self._writer = None
        self._links.drop()
        self._forms.forget()
        with translated(self._folder.path):
            try:
                writer.rollback()
            finally:
                writer.wait_merging_threads()  # releases the lock

    def _write(self, writer: tantivy.IndexWriter, changes: Sequence[Change]) -> None:
        self._number_sites(changes)
        for change in changes:
            writer.delete_documents_by_term("page", change.page_id)
            if document := _shown(change):
                writer.add_document(document_of(document, self._sites[document.site]))

    def _number_sites(self, changes: Sequence[Change]) -> None:
        sites = dict.fromkeys(change.document.site for change in changes if change.document)
        new = [site for site in sites if site not in self._sites]
        if new:
            self._faults.reach("index.sites")
            self._folder.append_sites(new)
            self._sites |= {site: number for number, site in enumerate(new, len(self._sites) + 1)}

    def _new_forms(self, changes: Sequence[Change]) -> list[str]:
        texts: defaultdict[str, list[str]] = defaultdict(list)
        for document in map(_shown, changes):
            if document and document.language in LANGUAGES:
                texts[document.language].append(f"{document.title}\n{document.text}")
        searcher = self._reader.searcher()
        return [
            term for language, of_one in texts.items() for term in self._forms.new_terms(language, of_one, searcher)
        ]


def _portions(changes: Iterable[Change]) -> Iterator[list[Change]]:
    portion: list[Change] = []
    characters = 0
    for change in changes:
        portion.append(change)
        characters += len(change.document.text) if change.document else 0
        if len(portion) >= _TOGETHER or characters >= _TEXT_TOGETHER:
            yield portion
            portion, characters = [], 0
    if portion:
        yield portion


def _shown(change: Change) -> Document | None:
    """The document, if a search may find it."""
    document = change.document
    return document if document and document.searchable and not document.gone else None
