"""Word statistics over one or several indexes, and the scores that they give.

Counts add up: documents, words of all documents, documents that hold a word. What does not add up (how rare a word
is, how long an average page is) is computed from the sums. tantivy counts deleted pages until it has merged them
away, and so do we.

tantivy compares a page's length with the average of its own index. Therefore hits are scored again: how often each
word occurs in the page and how long the page is comes from tantivy, how rare the word is and how long pages are
from all indexes together. The formula is tantivy's (BM25, k1 = 1.2, b = 0.75), combined as `tantivy_query` does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from math import log

import msgspec
import tantivy

from levada.search.query import Ask, Words
from levada.search.stemming import word_stems
from levada.search.tantivy.queries import (
    BOOSTS,
    FORM_BOOST,
    OTHERS,
    completed,
    completion_holders,
    form_languages,
    other_forms,
    rarity,
    term,
    words_query,
)
from levada.search.tantivy.schema import forms_of

FIELDS = ("text", "title")
Forms = Mapping[tuple[str, str], frozenset[str]]
"""For a language and a word as typed: the known forms of it."""
_NUMBER = r'"value": ([\d.eE+-]+),\s*"description": "%s'
_DOCUMENTS = re.compile(_NUMBER % "N, total number of docs")
_AVERAGE = re.compile(_NUMBER % "avgdl, average length")


class IndexTotals(msgspec.Struct, frozen=True):
    """Totals of one index: documents with deleted ones, live documents, and the words of each field."""

    documents: int = 0
    alive: int = 0
    words: dict[str, float] = {}

    def average(self, field: str) -> float:
        return self.words.get(field, 0.0) / self.documents if self.documents else 0.0


class TermStatistics(msgspec.Struct, frozen=True):
    """How many documents hold each word and its forms."""

    totals: IndexTotals
    holders: dict[tuple[str, str], int]  # field and word: documents
    form_holders: dict[tuple[str, str], int]  # language and word as typed

    def idf(self, field: str, words: tuple[str, ...]) -> float:
        """The inverse document frequency as tantivy computes it: for a phrase the sum over its words."""
        holders = [self.holders.get((field, word), 0) for word in words]
        return sum(log(1 + (self.totals.documents - n + 0.5) / (n + 0.5)) for n in holders)


def totals_of(searcher: tantivy.Searcher | None) -> IndexTotals:
    """Read the totals. tantivy-py shows them where it explains a score; any page with any word will do."""
    if searcher is None or not searcher.num_docs:
        return IndexTotals()
    documents, words = 0, {}
    for field in FIELDS:
        shown = _any_explanation(searcher, field)
        if found := _DOCUMENTS.search(shown):
            documents = int(float(found[1]))
            average = _AVERAGE.search(shown)
            words[field] = float(average[1]) * documents if average else 0.0
    return IndexTotals(documents or searcher.num_docs, searcher.num_docs, words)


def _any_explanation(searcher: tantivy.Searcher, field: str) -> str:
    for word, _ in searcher.terms_with_prefix(field, "", limit=64):
        query = term(field, word)
        if hits := searcher.search(query, 1, count=False).hits:  # none if all its pages are deleted
            return query.explain(searcher, hits[0][1]).to_json()
    return ""


def query_forms(searcher: tantivy.Searcher | None, ask: Ask, present: Iterable[str]) -> Forms:
    """The forms of the query's words that this index knows."""
    if searcher is None:
        return {}
    single = [each for each in ask.words() if each.has_forms()]
    return {
        (language, each.typed): frozenset(forms_of(searcher, language, word_stems(language, each.typed)))
        for language in form_languages(ask, present)
        for each in single
    }


def statistics(searcher: tantivy.Searcher | None, totals: IndexTotals, ask: Ask, forms: Forms) -> TermStatistics:
    if searcher is None:
        return TermStatistics(totals, {}, {})
    words = {word for each in ask.words() for word in each.folded}
    holders = {(field, word): searcher.doc_freq(field, word) for field in FIELDS for word in words}
    for start in {each.folded[-1] for each in ask.words() if each.prefix}:
        for field in FIELDS:
            holders[field, any_ending(start)] = completion_holders(searcher, field, start)
    return TermStatistics(
        totals,
        holders,
        {typed: sum(searcher.doc_freq("text", form) for form in some) for typed, some in forms.items()},
    )


def any_ending(start: str) -> str:
    """What stands for all words that begin so; no folded word has a star."""
    return f"{start}*"


class GlobalWeights:
    """The weights of words over several indexes, for one of them."""

    def __init__(self, every: list[TermStatistics], own: TermStatistics) -> None:
        self.all = _together(every)
        self._own = own

    def boost(self, field: str, words: tuple[str, ...]) -> float:
        own = self._own.idf(field, words)
        return self.all.idf(field, words) / own if own > 0 else 1.0

    def form_weight(self, language: str, typed: str) -> float:
        return rarity(self.all.totals.alive, self.all.form_holders.get((language, typed), 0))

    def completion_weight(self, field: str, prefix: str) -> float:
        return rarity(self.all.totals.alive, self.all.holders.get((field, any_ending(prefix)), 0))

    def slack(self) -> float:
        """How much higher than here a page can score over all indexes: only the average lengths differ."""
        ratios = [
            self.all.totals.average(field) / self._own.totals.average(field)
            for field in FIELDS
            if self._own.totals.average(field) and self.all.totals.average(field)
        ]
        return max((1.0, *ratios)) * 1.0001  # tantivy computes in single precision


def _together(every: list[TermStatistics]) -> TermStatistics:
    words = {field: sum(each.totals.words.get(field, 0.0) for each in every) for field in FIELDS}
    totals = IndexTotals(sum(each.totals.documents for each in every), sum(each.totals.alive for each in every), words)
    return TermStatistics(totals, _sums([e.holders for e in every]), _sums([e.form_holders for e in every]))


def _sums(counts: list[dict[tuple[str, str], int]]) -> dict[tuple[str, str], int]:
    total: Counter[tuple[str, str]] = Counter()
    for each in counts:
        total.update(each)
    return total


_K1, _B = 1.2, 0.75
_FEW = 8
_OFTEN = re.compile(_NUMBER % "freq, occurrences")
_LENGTH = re.compile(_NUMBER % "dl, length of field")


def global_score(
    ask: Ask, searcher: tantivy.Searcher, address: tantivy.DocAddress, weights: GlobalWeights, forms: Forms
) -> float:
    """The score over all indexes. `forms` are those of this index."""
    return sum(_words_score(each, searcher, address, weights, forms) for each in ask.words())


def _words_score(
    each: Words, searcher: tantivy.Searcher, address: tantivy.DocAddress, weights: GlobalWeights, forms: Forms
) -> float:
    scores = [_field_score(field, each.folded, searcher, address, weights) for field in FIELDS]
    if each.has_forms():
        for (language, typed), known in forms.items():
            if typed == each.typed and known and _has_form(language, known, searcher, address):
                scores.append(FORM_BOOST * weights.form_weight(language, typed))
    if each.prefix:
        for field, boost in BOOSTS.items():
            if explained(completed(searcher, field, each.folded), searcher, address):
                scores.append(FORM_BOOST * boost * weights.completion_weight(field, each.folded[-1]))
    best = max(scores)
    return best + OTHERS * (sum(scores) - best)


def _field_score(
    field: str,
    words: tuple[str, ...],
    searcher: tantivy.Searcher,
    address: tantivy.DocAddress,
    weights: GlobalWeights,
) -> float:
    shown = explained(words_query(field, words), searcher, address)
    f, length, average = frequency(shown), _LENGTH.search(shown), weights.all.totals.average(field)
    if not (f and length and average):
        return 0.0
    share = f / (f + _K1 * (1 - _B + _B * float(length[1]) / average))
    return BOOSTS[field] * weights.all.idf(field, words) * (_K1 + 1) * share


def _has_form(language: str, forms: frozenset[str], searcher: tantivy.Searcher, address: tantivy.DocAddress) -> bool:
    """Test few forms one by one: that is ten times as fast as a set of terms."""
    if not explained(term("language", language, "basic"), searcher, address):
        return False
    if len(forms) > _FEW:
        return bool(explained(other_forms(language, list(forms)), searcher, address))
    return any(explained(term(field, form), searcher, address) for field in FIELDS for form in forms)


def explained(query: tantivy.Query, searcher: tantivy.Searcher, address: tantivy.DocAddress) -> str:
    """How tantivy explains the score of a page; "" if the page does not match."""
    try:
        return query.explain(searcher, address).to_json()
    except ValueError:
        return ""


def frequency(explanation: str) -> int:
    """How often the words occur in the page, which tantivy-py shows nowhere else."""
    found = _OFTEN.search(explanation)
    return int(float(found[1])) if found else 0
