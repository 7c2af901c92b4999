"""Which records does a round send to the count workers, and what is committed when they have been counted?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from levada.counts import EVERY, CountedRound, FrequencyKey, NewsKey, PageTerms
from levada.flow.page_terms import Shown, Step, terms_after
from levada.records import Change

__all__ = ["Draft", "TermKey"]

TermKey: TypeAlias = FrequencyKey | NewsKey


class Draft:
    """One round in the making: `terms` and `counts` are the records, by what each is grouped and what it adds."""

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

    def take(self, change: Change, steps: Iterable[Step]) -> None:
        """The change's steps become records; the position moves on."""
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
        """What to commit, once the workers' counts are merged."""
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
    """Numbers, times and single letters come with every change; a single sign of other scripts may be a word."""
    return not word.isnumeric() and (len(word) > 1 or not word.isascii())
