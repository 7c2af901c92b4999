"""The count step: whatever the documents say and the counts do not know yet, is counted, exactly once.

Each round takes some changed documents, tells which terms each gained and lost, shares these records out over the
count workers by a grouping, merges what they hold at the barrier, and commits the counts with the position. After a
crash, the round that was under way is simply counted again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec

from levada.flow.balance import CountReport, LoadMeter
from levada.flow.count_draft import Draft, TermKey
from levada.flow.page_terms import TermReader, page_steps
from levada.flow.settings import DAY, TrendsSettings
from levada.grouping.counting import TwoPhaseCount
from levada.grouping.routing import Routing
from levada.ports import Documents, Trends

__all__ = ["CountStage"]

MakeRouting = Callable[[str], Routing]

_MOST_RECORDS = 500_000  # in a round: a few hostile pages must not fill the memory
_BATCH_FROM = 300_000  # records after which deciding by the array has earned the time to load it
_RARE_AFTER = 2 * DAY
_HOT = 10


class CountStage:
    """`routing` gives a fresh sender for a method's name; `shadows` are methods whose loads are measured beside."""

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
        """Count whatever is new; forget what is too old."""
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
        """Made and committed; None if there is nothing to count. Where others were faster, theirs counts."""
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
        self._meter.see(draft.terms, chosen)
        for routing, meter in self._shadows:
            meter.see(draft.terms, routing.route(draft.terms, batch=batch))
        self._changes += draft.changes
        self._records += len(chosen)
        self._rounds += 1
        self._terms += len(self._reader.words)
        self._most_held = max(self._most_held, held)
        self._memory = max(self._memory, memory)


def _arrays_installed() -> bool:
    return find_spec("numba") is not None
