"""Count step: counts what the change log holds and the counts do not, exactly once.

Each round takes some changed documents, tells which terms each gained and lost, shares these records out over the
count workers by a grouping, merges what they hold at the barrier, and commits the counts with the position. After a
crash, the round that was under way is simply counted again.

Every version that the store still holds is a step, in order, so that counting late gives what counting at once
would have given. Only versions after the first are news. A page that leaves the collection removes its terms, and
one that comes back adds them: neither is news. Nor is a page that arrives from another shard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from levada.core.balance import CountReport, LoadMeter
from levada.core.hashing import term_number
from levada.core.protocols import Documents, Trends
from levada.core.records import Change, Document
from levada.core.search_records import (
    EVERY,
    CountedRound,
    FrequencyKey,
    NewsKey,
    PageTerms,
    packed_terms,
    unpacked_terms,
)
from levada.core.settings import DAY, TrendsSettings
from levada.grouping.counting import TwoPhaseCount
from levada.grouping.routing import Routing
from levada.pages.folding import is_indexed, words

TermKey: TypeAlias = FrequencyKey | NewsKey
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
    before = None
    if counted is not None and counted.terms is not None:
        before = Shown(counted.version, counted.language, unpacked_terms(counted.terms))
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


def _held(version: int, current: Document, documents: Documents) -> Document | None:
    """The version, if it is still stored and shown."""
    if version == current.version:
        return current
    document = documents.document(current.url, version)
    return document if document is not None and document.searchable else None


def _versions_since(known: int, current: Document, documents: Documents) -> Iterator[Document]:
    """The versions that are still stored and shown, oldest first."""
    if current.version > known + 1:
        for version in sorted(info.version for info in documents.versions(current.url)):
            if known < version < current.version and (document := _held(version, current, documents)) is not None:
                yield document
    if current.version > known:
        yield current


class Draft:
    """A round under construction. `terms` and `counts` are its records: the key of each, and what it adds."""

    def __init__(self, after: int, window: float, words: Mapping[int, str]) -> None:
        self.after = self.position = after
        self.changes = 0
        self.newest = 0.0  # when the latest version was met
        self.terms: list[int] = []
        self.counts: list[tuple[TermKey, int]] = []
        self._window = window
        self._words = words
        self._pages: dict[int, PageTerms] = {}
        # How many documents and changes there are in all is not shared out: it would be one key for everything.
        self._documents: Counter[FrequencyKey] = Counter()
        self._news: Counter[NewsKey] = Counter()

    def take(self, change: Change, steps: Iterable[TermStep]) -> None:
        """Turn the steps of a change into records, and move the position."""
        for step in steps:
            self._frequencies(step.before, step.after)
            if step.at is not None and step.before and step.after:
                self._tell(step.at, change.site, step.after, step.after.terms - step.before.terms)
            self._pages[change.page_id] = terms_after(step)
        if change.document is not None:
            self.newest = max(self.newest, change.document.fetched_at)
        self.position = change.seq
        self.changes += 1

    def counted(self, merged: Mapping[TermKey, int]) -> CountedRound:
        """The round to commit, once the counts of the workers are merged."""
        frequencies, news = dict(self._documents), dict(self._news)
        for key, amount in merged.items():
            if len(key) == 2:
                frequencies[key] = amount
            else:
                news[key] = amount
        used = {key[-1]: self._words[key[-1]] for key in merged if key[-1] in self._words}
        return CountedRound(self.after, self.position, frequencies, news, used, self._pages)

    def _frequencies(self, before: Shown | None, after: Shown | None) -> None:
        if before and after and before.language == after.language:
            self._add(after.language, after.terms - before.terms, 1)
            self._add(before.language, before.terms - after.terms, -1)
            return
        for shown, amount in ((before, -1), (after, 1)):
            if shown:
                self._add(shown.language, shown.terms, amount)
                self._documents[shown.language, EVERY] += amount

    def _add(self, language: str, terms: set[int], amount: int) -> None:
        self.terms += terms
        self.counts += [((language, term), amount) for term in terms]

    def _tell(self, at: float, site: str, after: Shown, added: set[int]) -> None:
        window = int(at // self._window * self._window)
        told = [term for term in added if _tells(self._words[term])]
        self.terms += told
        self.counts += [((window, site, after.language, term), 1) for term in told]
        self._news[window, site, after.language, EVERY] += 1


def _tells(word: str) -> bool:
    """Whether a term is worth counting: no numbers, no single ASCII letters."""
    return not word.isnumeric() and (len(word) > 1 or not word.isascii())


MakeRouting = Callable[[str], Routing]
_MOST_RECORDS = 500_000  # in a round: a few hostile pages must not fill the memory
_BATCH_FROM = 300_000  # records after which deciding by the array has earned the time to load it
_RARE_AFTER = 2 * DAY
_HOT = 10


class CountStage:
    """Counts rounds. `routing` makes a sender for a method; `shadows` are methods whose loads are measured too."""

    def __init__(
        self,
        documents: Documents,
        trends: Trends,
        settings: TrendsSettings,
        routing: MakeRouting,
        shadows: Sequence[str] = (),
    ) -> None:
        self._documents = documents
        self._trends = trends
        self._settings = settings
        self._reader = TermReader(settings.page_terms)
        self._count: TwoPhaseCount[TermKey] = TwoPhaseCount(routing(settings.grouping))
        self._meter = LoadMeter(settings.grouping, settings.workers)
        self._shadows = [(routing(name), LoadMeter(name, settings.workers)) for name in shadows]
        self._counted = CountReport()

    def catch_up(self, on_progress: Callable[[int], None] = lambda seq: None) -> CountReport:
        """Count what is new, and forget what is too old."""
        newest = 0.0
        while draft := self._next_round():
            newest = max(newest, draft.newest)
            on_progress(draft.position)
        if newest:
            self._trends.tidy(newest - self._settings.keep, newest - _RARE_AFTER, self._settings.rare)
        return self.report()

    def report(self) -> CountReport:
        remembered = self._reader.remembered()
        meters = [self._meter, *(meter for _, meter in self._shadows)]
        balance = tuple(meter.load(remembered, _HOT) for meter in meters)
        return replace(self._counted, position=self._trends.position(), balance=balance)

    def _next_round(self) -> Draft | None:
        """The committed round; None if there is nothing to count. If another process was faster, its own counts."""
        after = self._trends.position()
        changes = self._documents.changes(after, self._settings.batch)
        if not changes:
            return None
        counted = self._trends.counted([change.page_id for change in changes])
        self._reader.words = {}
        draft = Draft(after, self._settings.window, self._reader.words)
        for change in changes:
            draft.take(change, page_steps(change, counted.get(change.page_id), self._documents, self._reader))
            if len(draft.terms) >= _MOST_RECORDS:
                break
        self._commit(draft)
        return draft

    def _commit(self, draft: Draft) -> None:
        batch = self._counted.records >= _BATCH_FROM and find_spec("numba") is not None
        chosen = self._count.send(draft.terms, draft.counts, batch=batch)
        held, memory = self._count.held, self._count.held_bytes
        merged = self._count.barrier()
        if not self._trends.commit(draft.counted(merged)):
            return
        self._meter.observe(draft.terms, chosen)
        for routing, meter in self._shadows:
            meter.observe(draft.terms, routing.route(draft.terms, batch=batch))
        counted = self._counted
        self._counted = replace(
            counted,
            changes=counted.changes + draft.changes,
            records=counted.records + len(chosen),
            rounds=counted.rounds + 1,
            terms=counted.terms + len(self._reader.words),
            most_held=max(counted.most_held, held),
            memory_bytes=max(counted.memory_bytes, memory),
        )
