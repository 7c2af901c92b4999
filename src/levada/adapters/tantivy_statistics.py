"""How rare are the words that were asked for, in one index and in several together?

Counts add up: documents, words of all documents, documents that hold a word. What does not add up (how rare a word
is, how long a page is on average) is reckoned from the sums. tantivy counts deleted pages until it has merged them
away, and so do we.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import log

import msgspec
import tantivy

from levada.adapters.stemming import word_stems
from levada.adapters.tantivy_forms import forms_of
from levada.adapters.tantivy_query import FORM_BOOST, rarity, sought_languages, term
from levada.pages.query import Ask

__all__ = [
    "FIELDS",
    "Forms",
    "GlobalWeights",
    "IndexTotals",
    "TermStatistics",
    "asked_forms",
    "statistics",
    "totals_of",
]

FIELDS = ("text", "title")
Forms = Mapping[tuple[str, str], frozenset[str]]
"""Language and word as typed: the forms that were met of it."""

_NUMBER = r'"value": ([\d.eE+-]+),\s*"description": "%s'
_DOCUMENTS = re.compile(_NUMBER % "N, total number of docs")
_AVERAGE = re.compile(_NUMBER % "avgdl, average length")


class IndexTotals(msgspec.Struct, frozen=True):
    """Of one index: what it counts as documents, those that are alive, and the words of each field."""

    documents: int = 0
    alive: int = 0
    words: dict[str, float] = {}

    def average(self, field: str) -> float:
        return self.words.get(field, 0.0) / self.documents if self.documents else 0.0


class TermStatistics(msgspec.Struct, frozen=True):
    totals: IndexTotals
    holders: dict[tuple[str, str], int]  # field and word: documents
    form_holders: dict[tuple[str, str], int]  # language and word as typed

    def idf(self, field: str, words: tuple[str, ...]) -> float:
        """As tantivy reckons it: for a phrase the sum over its words."""
        return sum(self._idf(self.holders.get((field, word), 0)) for word in words)

    def _idf(self, holders: int) -> float:
        return log(1 + (self.totals.documents - holders + 0.5) / (holders + 0.5))


def totals_of(searcher: tantivy.Searcher | None) -> IndexTotals:
    """tantivy-py tells its totals where it explains a score; any page with any word will do."""
    if searcher is None or not searcher.num_docs:
        return IndexTotals()
    documents, words = 0, {}
    for field in FIELDS:
        explained = _explained(searcher, field)
        if found := _DOCUMENTS.search(explained):
            documents = int(float(found[1]))
            average = _AVERAGE.search(explained)
            words[field] = float(average[1]) * documents if average else 0.0
    return IndexTotals(documents or searcher.num_docs, searcher.num_docs, words)


def _explained(searcher: tantivy.Searcher, field: str) -> str:
    for word, _ in searcher.terms_with_prefix(field, "", limit=64):
        query = term(field, word)
        if hits := searcher.search(query, 1, count=False).hits:  # none if all its pages are deleted
            return query.explain(searcher, hits[0][1]).to_json()
    return ""


def asked_forms(searcher: tantivy.Searcher | None, ask: Ask, present: Iterable[str]) -> Forms:
    """The forms that this index has met of the words that were asked for."""
    if searcher is None:
        return {}
    single = [each for each in ask.words() if not each.quoted and len(each.folded) == 1]
    return {
        (language, each.typed): frozenset(forms_of(searcher, language, word_stems(language, each.typed)))
        for language in sought_languages(ask, present)
        for each in single
    }


def statistics(searcher: tantivy.Searcher | None, totals: IndexTotals, ask: Ask, forms: Forms) -> TermStatistics:
    if searcher is None:
        return TermStatistics(totals, {}, {})
    words = {word for each in ask.words() for word in each.folded}
    return TermStatistics(
        totals,
        {(field, word): searcher.doc_freq(field, word) for field in FIELDS for word in words},
        {asked: sum(searcher.doc_freq("text", form) for form in some) for asked, some in forms.items()},
    )


class GlobalWeights:
    """What words weigh over several indexes, for one of them."""

    def __init__(self, every: list[TermStatistics], own: TermStatistics) -> None:
        self.all = _together(every)
        self._own = own

    def boost(self, field: str, words: tuple[str, ...]) -> float:
        own = self._own.idf(field, words)
        return self.all.idf(field, words) / own if own > 0 else 1.0

    def form_weight(self, language: str, typed: str) -> float:
        return rarity(self.all.totals.alive, self.all.form_holders.get((language, typed), 0))

    def form_score(self, language: str, typed: str) -> float:
        return FORM_BOOST * self.form_weight(language, typed)

    def slack(self) -> float:
        """How much more than here a page can be worth over all: other averages of length, and nothing else."""
        ratios = [
            self.all.totals.average(field) / self._own.totals.average(field)
            for field in FIELDS
            if self._own.totals.average(field) and self.all.totals.average(field)
        ]
        return max((1.0, *ratios)) * 1.0001  # tantivy reckons with single precision


def _together(every: list[TermStatistics]) -> TermStatistics:
    words = {field: sum(each.totals.words.get(field, 0.0) for each in every) for field in FIELDS}
    totals = IndexTotals(
        sum(each.totals.documents for each in every), sum(each.totals.alive for each in every), words
    )
    return TermStatistics(totals, _sums([e.holders for e in every]), _sums([e.form_holders for e in every]))


def _sums(counts: list[dict[tuple[str, str], int]]) -> dict[tuple[str, str], int]:
    total: dict[tuple[str, str], int] = {}
    for each in counts:
        for key, n in each.items():
            total[key] = total.get(key, 0) + n
    return total
