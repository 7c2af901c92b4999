"""What is a hit worth over all pages, wherever it lies?

tantivy reckons a page's length against the average of its own index. So hits are weighed again: how often each word
stands in the page and how long the page is comes from tantivy, how rare the word is and how long pages are from all
indexes together. The formula is tantivy's (BM25, k1 = 1.2, b = 0.75), put together as `tantivy_query` does.
"""

from __future__ import annotations

import re

import tantivy

from levada.adapters.tantivy_query import OTHERS, TITLE_BOOST, other_forms, term, words_query
from levada.adapters.tantivy_statistics import FIELDS, Forms, GlobalWeights
from levada.pages.query import Ask, Words

__all__ = ["global_score"]

_K1, _B = 1.2, 0.75
_FEW = 8
_BOOSTS = {"text": 1.0, "title": TITLE_BOOST}
_NUMBER = r'"value": ([\d.eE+-]+),\s*"description": "%s'
_OFTEN = re.compile(_NUMBER % "freq, occurrences")
_LENGTH = re.compile(_NUMBER % "dl, length of field")


def global_score(
    ask: Ask, searcher: tantivy.Searcher, address: tantivy.DocAddress, weights: GlobalWeights, forms: Forms
) -> float:
    """`forms` are those of this index."""
    return sum(_words_score(each, searcher, address, weights, forms) for each in ask.words())


def _words_score(
    each: Words, searcher: tantivy.Searcher, address: tantivy.DocAddress, weights: GlobalWeights, forms: Forms
) -> float:
    scores = [_field_score(field, each.folded, searcher, address, weights) for field in FIELDS]
    if not each.quoted and len(each.folded) == 1:
        for (language, typed), known in forms.items():
            if typed == each.typed and known and _has_form(language, known, searcher, address):
                scores.append(weights.form_score(language, typed))
    best = max(scores)
    return best + OTHERS * (sum(scores) - best)


def _field_score(
    field: str,
    words: tuple[str, ...],
    searcher: tantivy.Searcher,
    address: tantivy.DocAddress,
    weights: GlobalWeights,
) -> float:
    explained = _explains(words_query(field, words), searcher, address)
    often, length = _OFTEN.search(explained), _LENGTH.search(explained)
    average = weights.all.totals.average(field)
    if not (often and length and average):
        return 0.0
    f = float(often[1])
    share = f / (f + _K1 * (1 - _B + _B * float(length[1]) / average))
    return _BOOSTS[field] * weights.all.idf(field, words) * (_K1 + 1) * share


def _has_form(
    language: str, forms: frozenset[str], searcher: tantivy.Searcher, address: tantivy.DocAddress
) -> bool:
    """One by one where they are few: that is ten times as fast as a set of terms."""
    if not _explains(term("language", language, "basic"), searcher, address):
        return False
    if len(forms) > _FEW:
        return bool(_explains(other_forms(language, list(forms)), searcher, address))
    return any(_explains(term(field, form), searcher, address) for field in FIELDS for form in forms)


def _explains(query: tantivy.Query, searcher: tantivy.Searcher, address: tantivy.DocAddress) -> str:
    try:
        return query.explain(searcher, address).to_json()
    except ValueError:  # the page does not answer it
        return ""
