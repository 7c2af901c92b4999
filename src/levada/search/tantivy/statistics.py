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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec
import tantivy

from levada.search.stemming import goes_on, may_go_on, word_stems
from levada.search.tantivy.queries import (
    BOOSTS,
    COMPLETION_BOOST,
    FORM_BOOST,
    NEAR_BOOST,
    OTHERS,
    any_word,
    completed,
    completion_holders,
    fields_of,
    near,
    rarity,
    tantivy_query,
    term,
    weighted_queries,
    words_query,
)
from levada.search.tantivy.schema import forms_of
from levada.search.terms import Ask, Term, Words

FIELDS = ("text", "title")
Forms = Mapping[str, frozenset[str]]
"""For a word as typed: the other forms of it that are known."""
_MOST_KEPT = 2_000  # words whose queries are kept
_MOST_LONGER = 4  # words that go on from one
_MOST_FORMS = 24  # of a word that are searched one by one
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
    """How many documents hold each word and each of its forms."""

    totals: IndexTotals
    holders: dict[tuple[str, str], int]  # field and word: documents

    def idf(self, field: str, words: tuple[str, ...]) -> float:
        """The inverse document frequency as tantivy computes it: for a phrase the sum over its words."""
        documents, holders = self.totals.documents, self.holders
        return sum([rarity(documents, holders.get((field, word), 0)) for word in words])


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


def query_forms(searcher: tantivy.Searcher | None, every: Iterable[Words], languages: Sequence[str]) -> Forms:
    """The other forms of a query's words that this index knows in these languages."""
    if searcher is None:
        return {}
    return {each.typed: _forms_in(searcher, languages, each) for each in every if each.has_forms()}


def _forms_in(searcher: tantivy.Searcher, languages: Sequence[str], each: Words) -> frozenset[str]:
    found = forms_of(searcher, {language: word_stems(language, each.typed) for language in languages})
    if not each.prefix:
        found |= _longer_names(searcher, each.folded[0])
    return frozenset(found - {each.folded[0]})


def _longer_names(searcher: tantivy.Searcher, word: str) -> set[str]:
    """The words that go on from a long one by a letter or two and that at least as many pages have: what people call
    postgres is mostly written PostgreSQL."""
    if not may_go_on(word) or not (own := searcher.doc_freq("text", word)):
        return set()
    known = searcher.terms_with_prefix("text", word, limit=_MOST_LONGER)
    return {longer for longer, pages in known if pages >= own and goes_on(word, longer)}


def statistics(
    searcher: tantivy.Searcher | None, totals: IndexTotals, every: Sequence[Words], forms: Forms
) -> TermStatistics:
    """How many documents of this index hold the words of a query, and their forms."""
    if searcher is None:
        return TermStatistics(totals, {})
    words = {word for each in every for word in each.folded}.union(*forms.values())
    holders = {(field, word): searcher.doc_freq(field, word) for field in FIELDS for word in words}
    for start in {each.folded[-1] for each in every if each.prefix}:
        for field in FIELDS:
            holders[field, any_ending(start)] = completion_holders(searcher, field, start)
    return TermStatistics(totals, holders)


def any_ending(start: str) -> str:
    """What stands for all words that begin so; no folded word has a star."""
    return f"{start}*"


class WordWeights:
    """The weights of words over one or several indexes, for one of them."""

    def __init__(
        self, every: Sequence[TermStatistics], own: TermStatistics, forms: Forms, searcher: tantivy.Searcher
    ) -> None:
        self.all = own if len(every) == 1 else _together(every)
        self._own = own
        self._forms = forms
        self._searcher = searcher
        self._ranked: dict[Words, tuple[list[str], list[str]]] = {}

    def parts(self, each: Words) -> Iterator[tuple[str, tuple[str, ...], float]]:
        if each.between is not None:
            return
        weight = self._weight(each)
        variants = [(each.folded, weight), *(((form,), FORM_BOOST * weight) for form in self._ranked_forms(each)[0])]
        holders = self._own.holders
        for field in fields_of(each):
            for words, of_variant in variants:
                if all(map(holders.get, [(field, word) for word in words])):
                    yield field, words, BOOSTS[field] * of_variant

    def boost(self, field: str, words: tuple[str, ...], weight: float) -> float:
        own = self._own.idf(field, words)
        return weight / own if own > 0 else 1.0

    def flat_parts(self, each: Words) -> Iterator[tuple[tantivy.Query, float]]:
        rest = self._ranked_forms(each)[1]
        if rest:
            yield any_word(fields_of(each), rest), FORM_BOOST * self._weight(each)
        for field in fields_of(each):
            if each.prefix:
                few = rarity(self.all.totals.alive, self.all.holders.get((field, any_ending(each.folded[-1])), 0))
                weight = COMPLETION_BOOST * BOOSTS[field] * each.worth * few
                yield completed(self._searcher, field, each.folded), weight
            if each.between is not None:
                yield near(field, each.pairs(), each.between), NEAR_BOOST * BOOSTS[field] * self._weight(each)

    def queries(self, each: Words) -> list[tantivy.Query]:
        return weighted_queries(each, self)

    def slack(self) -> float:
        """How much higher than here a page can score over all indexes: only the average lengths differ."""
        ratios = [
            self.all.totals.average(field) / self._own.totals.average(field)
            for field in FIELDS
            if self._own.totals.average(field) and self.all.totals.average(field)
        ]
        return max((1.0, *ratios)) * 1.0001  # tantivy computes in single precision

    def _weight(self, each: Words) -> float:
        """How rare a word with its forms is, as often as it was typed; for several words the sum."""
        return each.times * each.worth * self._rarity(each)

    def _rarity(self, each: Words) -> float:
        forms, _ = self._ranked_forms(each)
        if forms:
            holders = max(sum([self._holders(field, word) for word in (*each.folded, *forms)]) for field in FIELDS)
            return rarity(self.all.totals.documents, holders)
        most = (max(self._holders(field, word) for field in FIELDS) for word in each.folded)
        return sum(rarity(self.all.totals.documents, holders) for holders in most)

    def _holders(self, field: str, word: str) -> int:
        return self.all.holders.get((field, word), 0)

    def _ranked_forms(self, each: Words) -> tuple[list[str], list[str]]:
        """The frequent forms, which are searched one by one, and the others."""
        if each not in self._ranked:
            known = self._forms.get(each.typed, ()) if each.has_forms() else ()
            forms = sorted(known, key=lambda form: (-self._holders("text", form), form))
            self._ranked[each] = forms[:_MOST_FORMS], forms[_MOST_FORMS:]
        return self._ranked[each]


def _together(every: Sequence[TermStatistics]) -> TermStatistics:
    words = {field: sum(each.totals.words.get(field, 0.0) for each in every) for field in FIELDS}
    totals = IndexTotals(sum(each.totals.documents for each in every), sum(each.totals.alive for each in every), words)
    holders: Counter[tuple[str, str]] = Counter()
    for each in every:
        holders.update(each.holders)
    return TermStatistics(totals, holders)


QueriesInLanguages = Callable[[Words, tuple[str, ...]], list[tantivy.Query]]


def no_queries(each: Words, languages: tuple[str, ...]) -> list[tantivy.Query]:
    """The queries for a word where there is no index."""
    return []


def word_queries(searcher: tantivy.Searcher) -> QueriesInLanguages:
    """Gives the queries for a word, in its forms in some languages, in one commit of one index.

    They are kept: the words of queries repeat, and a query that is answered in two passes has the same words in both.
    """
    totals = IndexTotals(searcher.num_docs, searcher.num_docs)

    @lru_cache(maxsize=_MOST_KEPT)
    def queries(each: Words, languages: tuple[str, ...]) -> list[tantivy.Query]:
        forms = query_forms(searcher, [each], languages)
        own = statistics(searcher, totals, [each], forms)
        return WordWeights([own], own, forms, searcher).queries(each)

    return queries


_K1, _B = 1.2, 0.75
_OFTEN = re.compile(_NUMBER % "freq, occurrences")
_LENGTH = re.compile(_NUMBER % "dl, length of field")


def global_score(ask: Ask, searcher: tantivy.Searcher, address: tantivy.DocAddress, weights: WordWeights) -> float:
    """The score over all indexes."""
    terms = (each for group in (*ask.must, *ask.may) for each in group)
    return sum(_term_score(each, searcher, address, weights) for each in terms)


def _term_score(each: Term, searcher: tantivy.Searcher, address: tantivy.DocAddress, weights: WordWeights) -> float:
    if isinstance(each, Words):
        return _words_score(each, searcher, address, weights)
    if isinstance(each, Ask) and explained(tantivy_query(each, searcher, weights.queries), searcher, address):
        return global_score(each, searcher, address, weights)
    return 0.0


def _words_score(each: Words, searcher: tantivy.Searcher, address: tantivy.DocAddress, weights: WordWeights) -> float:
    scores = [0.0]
    for field, words, weight in weights.parts(each):
        shown = explained(words_query(field, words), searcher, address)
        f, length, average = frequency(shown), _LENGTH.search(shown), weights.all.totals.average(field)
        if f and length and average:
            scores.append(weight * (_K1 + 1) * f / (f + _K1 * (1 - _B + _B * float(length[1]) / average)))
    scores += [weight for query, weight in weights.flat_parts(each) if explained(query, searcher, address)]
    best = max(scores)
    return best + OTHERS * (sum(scores) - best)


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
