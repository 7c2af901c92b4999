"""Count step: counts what the change log holds and the counts do not, exactly once.

Each round takes some changed documents, tells which terms each gained and lost, shares these records out over the
count workers by a grouping, merges what they hold at the barrier, and commits the counts with the position. After a
crash, the round that was under way is simply counted again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TypeAlias

from levada.core.balance import CountReport, LoadMeter
from levada.core.protocols import Documents, Trends
from levada.core.records import Change
from levada.core.search_records import EVERY, CountedRound, FrequencyKey, NewsKey, PageTerms
from levada.core.settings import DAY, TrendsSettings
from levada.follow.term_changes import Shown, TermReader, TermStep, page_steps, terms_after
from levada.grouping.counting import TwoPhaseCount
from levada.grouping.routing import Routing

TermKey: TypeAlias = FrequencyKey | NewsKey


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
        words = {key[-1]: self._words[key[-1]] for key in merged if key[-1] in self._words}
        return CountedRound(self.after, self.position, frequencies, news, words, self._pages)

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
        self._changes = self._records = self._rounds = self._terms = self._most_held = self._memory = 0

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
        words = self._reader.remembered()
        meters = [self._meter, *(meter for _, meter in self._shadows)]
        return CountReport(
            position=self._trends.position(),
            changes=self._changes,
            records=self._records,
            rounds=self._rounds,
            terms=self._terms,
            most_held=self._most_held,
            memory_bytes=self._memory,
            balance=tuple(meter.load(words, _HOT) for meter in meters),
        )

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
        batch = self._records >= _BATCH_FROM and _arrays_installed()
        chosen = self._count.send(draft.terms, draft.counts, batch=batch)
        held, memory = self._count.held, self._count.held_bytes
        merged = self._count.barrier()
        if not self._trends.commit(draft.counted(merged)):
            return
        self._meter.observe(draft.terms, chosen)
        for routing, meter in self._shadows:
            meter.observe(draft.terms, routing.route(draft.terms, batch=batch))
        self._changes += draft.changes
        self._records += len(chosen)
        self._rounds += 1
        self._terms += len(self._reader.words)
        self._most_held = max(self._most_held, held)
        self._memory = max(self._memory, memory)


def _arrays_installed() -> bool:
    return find_spec("numba") is not None
