"""Terms that a page gained and lost since it was counted.

Every version that the store still holds is a step, in order, so that counting late gives what counting at once
would have given. Only versions after the first are news. A page that leaves the collection removes its terms, and
one that comes back adds them: neither is news. Nor is a page that arrives from another shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from levada.core.hashing import term_number
from levada.core.protocols import Documents
from levada.core.records import Change, Document
from levada.core.search_records import PageTerms, packed_terms, unpacked_terms
from levada.pages.folding import is_indexed, words

_MOST_REMEMBERED = 1 << 17  # words whose number is kept: pages repeat them
_LONGEST_REMEMBERED = 40


class Shown(NamedTuple):
    """The counted terms of a version."""

    version: int
    language: str
    terms: set[int]


class TermStep(NamedTuple):
    """One shown version (None: none) and the next; `at` is the time of the change, None if it is not news."""

    before: Shown | None
    after: Shown | None
    at: float | None


class _Numbers(dict[str, int]):
    def __missing__(self, word: str) -> int:
        number = term_number(word) if is_indexed(word) else 0
        if len(word) <= _LONGEST_REMEMBERED:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[word] = number
        return number


class TermReader:
    """The terms of documents, at most `most` of each: those with the smallest numbers, the same in all versions."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._numbers = _Numbers()
        self.words: dict[int, str] = {}

    def shown(self, document: Document) -> Shown:
        """The term numbers of a document; its words are added to `words`."""
        numbers = self._numbers
        met = {numbers[word]: word for word in set(words(f"{document.title}\n{document.text}"))}
        met.pop(0, None)
        if len(met) > self._most:
            met = {number: met[number] for number in sorted(met)[: self._most]}
        self.words |= met
        return Shown(document.version, document.language, set(met))

    def remembered(self) -> dict[int, str]:
        """Recently seen words, by number."""
        return {number: word for word, number in self._numbers.items()}


def page_steps(
    change: Change, counted: PageTerms | None, documents: Documents, reader: TermReader
) -> Iterator[TermStep]:
    before = _shown_before(counted)
    if change.document is None:
        if before is not None:
            yield TermStep(before, None, None)
        return
    known = counted.version if counted else 0
    if before is None and change.arrived > known:
        known = change.arrived  # the shard that it came from has told what was new until then
        if (arrived := _held(known, change.document, documents)) is not None:
            before = reader.shown(arrived)
            yield TermStep(None, before, None)
    for document in _versions_since(known, change.document, documents):
        after = reader.shown(document)
        yield TermStep(before, after, None if before is None else document.fetched_at)
        before = after
    if before is None:  # it is back as it was
        yield TermStep(None, reader.shown(change.document), None)


def terms_after(step: TermStep) -> PageTerms:
    """The page's terms to keep after its last step."""
    if step.after is not None:
        return PageTerms(step.after.version, step.after.language, packed_terms(step.after.terms))
    # The version stays, so that a page which comes back does not tell its old news again.
    return PageTerms(step.before.version if step.before else 0, "", None)


def _shown_before(counted: PageTerms | None) -> Shown | None:
    if counted is None or counted.terms is None:
        return None
    return Shown(counted.version, counted.language, unpacked_terms(counted.terms))


def _held(version: int, current: Document, documents: Documents) -> Document | None:
    """The version, if it is still stored and shown."""
    if version == current.version:
        return current
    document = documents.document(current.url, version)
    return document if document is not None and document.searchable else None


def _versions_since(known: int, current: Document, documents: Documents) -> Iterator[Document]:
    """The versions that are still stored and shown, oldest first."""
    if current.version > known + 1:
        held = sorted(info.version for info in documents.versions(current.url))
        for version in held:
            if known < version < current.version:
                document = documents.document(current.url, version)
                if document is not None and document.searchable:
                    yield document
    if current.version > known:
        yield current
