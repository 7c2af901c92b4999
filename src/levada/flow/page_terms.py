"""Which terms did a page gain and lose since it was counted, and when?

Every version that the store still holds is a step, in order, so that counting late gives what counting at once
would have given. The first version of a page says what is there; only later ones tell news. A page that left the
collection takes its terms along, and one that comes back brings them: neither is news. Nor is what a page brings
from another shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from levada.counts import PageTerms, packed_terms, unpacked_terms
from levada.hashing import term_number
from levada.pages.folding import is_indexed, words
from levada.ports import Documents
from levada.records import Change, Document

__all__ = ["Shown", "Step", "TermReader", "page_steps", "terms_after"]

_MOST_REMEMBERED = 1 << 17  # words whose number is kept: pages repeat them
_LONGEST_REMEMBERED = 40


class Shown(NamedTuple):
    """A version's terms, as far as they are counted."""

    version: int
    language: str
    terms: set[int]


class Step(NamedTuple):
    """From one shown version (None: none) to the next; `at` is when a change was met, None if nothing is news."""

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
        """Adds what it meets to `words`."""
        numbers = self._numbers
        met = {numbers[word]: word for word in set(words(f"{document.title}\n{document.text}"))}
        met.pop(0, None)
        if len(met) > self._most:
            met = {number: met[number] for number in sorted(met)[: self._most]}
        self.words |= met
        return Shown(document.version, document.language, set(met))

    def remembered(self) -> dict[int, str]:
        """The words that were met lately, by number."""
        return {number: word for word, number in self._numbers.items()}


def page_steps(
    change: Change, counted: PageTerms | None, documents: Documents, reader: TermReader
) -> Iterator[Step]:
    before = _shown_before(counted)
    if change.document is None:
        if before is not None:
            yield Step(before, None, None)
        return
    known = counted.version if counted else 0
    if before is None and change.arrived > known:
        known = change.arrived  # the shard that it came from has told what was new until then
        if (arrived := _held(known, change.document, documents)) is not None:
            before = reader.shown(arrived)
            yield Step(None, before, None)
    for document in _versions_since(known, change.document, documents):
        after = reader.shown(document)
        yield Step(before, after, None if before is None else document.fetched_at)
        before = after
    if before is None:  # it is back as it was
        yield Step(None, reader.shown(change.document), None)


def terms_after(step: Step) -> PageTerms:
    """What to remember of the page after its last step."""
    if step.after is not None:
        return PageTerms(step.after.version, step.after.language, packed_terms(step.after.terms))
    # The version stays, so that a page which comes back does not tell its old news again.
    return PageTerms(step.before.version if step.before else 0, "", None)


def _shown_before(counted: PageTerms | None) -> Shown | None:
    if counted is None or counted.terms is None:
        return None
    return Shown(counted.version, counted.language, unpacked_terms(counted.terms))


def _held(version: int, current: Document, documents: Documents) -> Document | None:
    """That version, if it is still held and shown."""
    if version == current.version:
        return current
    document = documents.document(current.url, version)
    return document if document is not None and document.searchable else None


def _versions_since(known: int, current: Document, documents: Documents) -> Iterator[Document]:
    """Those that are still held and shown, oldest first."""
    if current.version > known + 1:
        held = sorted(info.version for info in documents.versions(current.url))
        for version in held:
            if known < version < current.version:
                document = documents.document(current.url, version)
                if document is not None and document.searchable:
                    yield document
    if current.version > known:
        yield current
