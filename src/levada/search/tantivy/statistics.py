"""Word statistics over one or several indexes, and the scores that they give.

tantivy counts deleted pages until it has merged them away, and so do we.

tantivy compares a page's length with the average of its own index. Therefore hits are scored again: how often each
word occurs in the page and how long the page is comes from tantivy, how rare the word is and how long pages are
from all indexes together. The formula is tantivy's (BM25, k1 = 1.2, b = 0.75), combined as `tantivy_query` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import tantivy

from levada.search.stemming import goes_on, may_go_on, word_stems
from levada.search.tantivy.queries import (
    completion_holders,
    flat_query,
    tantivy_query,
    term,
    weighted_queries,
    words_query,
)
from levada.search.tantivy.schema import forms_of
from levada.search.terms import Ask, Term, Words
from levada.search.weights import FIELDS, OTHERS, Forms, IndexTotals, TermStatistics, WordWeights, any_ending

_MOST_KEPT = 2_000  # words whose queries are kept
_MOST_LONGER = 4  # words that go on from one
_NUMBER = r'"value": ([\d.eE+-]+),\s*"description": "%s'
_DOCUMENTS = re.compile(_NUMBER % "N, total number of docs")
_AVERAGE = re.compile(_NUMBER % "avgdl, average length")


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
        return weighted_queries(each, WordWeights([own], own, forms), searcher)

    return queries


def query_of(ask: Ask, searcher: tantivy.Searcher, weights: WordWeights) -> tantivy.Query:
    """The query for what was asked, with these weights of its words."""
    return tantivy_query(ask, searcher, lambda each: weighted_queries(each, weights, searcher))


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
    if isinstance(each, Ask) and explained(query_of(each, searcher, weights), searcher, address):
        return global_score(each, searcher, address, weights)
    return 0.0


def _words_score(each: Words, searcher: tantivy.Searcher, address: tantivy.DocAddress, weights: WordWeights) -> float:
    scores = [0.0]
    for field, words, weight in weights.parts(each):
        shown = explained(words_query(field, words), searcher, address)
        f, length, average = frequency(shown), _LENGTH.search(shown), weights.all.totals.average(field)
        if f and length and average:
            scores.append(weight * (_K1 + 1) * f / (f + _K1 * (1 - _B + _B * float(length[1]) / average)))
    scores += [
        weight for flat, weight in weights.flat_parts(each) if explained(flat_query(searcher, flat), searcher, address)
    ]
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
