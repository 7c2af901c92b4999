"""What a match of a word counts, over one index or several: for every engine that scores by BM25.

Each word is searched in the title and the text, as it is typed and in its other forms. The best of these matches
counts, and the others in part. All have the weight of the word as a whole: a rare form of a frequent word does not
make a page stand out. The figures were tuned on one half of Cranfield and CISI (`levada lab search`).

Counts add up: documents, words of all documents, documents that hold a word. What does not add up (how rare a word
is, how long an average page is) is computed from the sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log

import msgspec

from levada.search.terms import Words

BOOSTS = {"text": 1.0, "title": 1.3}
FORM_BOOST = 0.8
COMPLETION_BOOST = 0.6
NEAR_BOOST = 1.5
OTHERS = 0.4  # weight of the matches that are not the best
MOST_FORMS = 24  # of a word that are searched one by one
FIELDS = tuple(BOOSTS)
Forms = Mapping[str, frozenset[str]]
"""For a word as typed: the other forms of it that are known."""


class IndexTotals(msgspec.Struct, frozen=True):
    """Totals of one index: documents with deleted ones, live documents, and the words of each field."""

    documents: int = 0
    alive: int = 0
    words: dict[str, float] = {}
    having: dict[str, int] = {}  # documents with any word in a field, for an engine that counts only these

    def average(self, field: str) -> float:
        return self.words.get(field, 0.0) / self.documents if self.documents else 0.0


class TermStatistics(msgspec.Struct, frozen=True):
    """How many documents hold each word and each of its forms."""

    totals: IndexTotals
    holders: dict[tuple[str, str], int]  # field and word: documents

    def idf(self, field: str, words: tuple[str, ...]) -> float:
        """The inverse document frequency of BM25: for a phrase the sum over its words."""
        documents, holders = self.totals.having.get(field, self.totals.documents), self.holders
        return sum([rarity(documents, holders.get((field, word), 0)) for word in words])


class AnyForm(msgspec.Struct, frozen=True):
    """One of the rare forms of a word with very many."""

    fields: tuple[str, ...]
    forms: list[str]


class Completed(msgspec.Struct, frozen=True):
    """These words one after the other, the last of them with any ending."""

    field: str
    words: tuple[str, ...]


class NearWords(msgspec.Struct, frozen=True):
    """Both words of each pair, in any order, with at most so many others between them."""

    field: str
    pairs: list[tuple[str, str]]
    between: int


Flat = AnyForm | Completed | NearWords


class WordWeights:
    """The weights of words over one or several indexes, for one of them."""

    def __init__(
        self, every: Sequence[TermStatistics], own: TermStatistics, forms: Forms, most_forms: int = MOST_FORMS
    ) -> None:
        self.all = own if len(every) == 1 else _together(every)
        self._own = own
        self._forms = forms
        self._most_forms = most_forms
        self._ranked: dict[Words, tuple[list[str], list[str]]] = {}

    def parts(self, each: Words) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """The fields and words in which this index can have `each`, with the weight of one such match."""
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
        """The factor that turns the index's own weight of these words into `weight`."""
        own = self._own.idf(field, words)
        return weight / own if own > 0 else 1.0

    def flat_parts(self, each: Words) -> Iterator[tuple[Flat, float]]:
        """What else finds `each`, with the score of every page that it finds."""
        rest = self._ranked_forms(each)[1]
        if rest:
            yield AnyForm(fields_of(each), rest), FORM_BOOST * self._weight(each)
        for field in fields_of(each):
            if each.prefix:
                few = rarity(self.all.totals.alive, self.all.holders.get((field, any_ending(each.folded[-1])), 0))
                yield Completed(field, each.folded), COMPLETION_BOOST * BOOSTS[field] * each.worth * few
            if each.between is not None:
                yield NearWords(field, each.pairs(), each.between), NEAR_BOOST * BOOSTS[field] * self._weight(each)

    def slack(self) -> float:
        """How much higher than here a page can score over all indexes: only the average lengths differ."""
        ratios = [
            self.all.totals.average(field) / self._own.totals.average(field)
            for field in FIELDS
            if self._own.totals.average(field) and self.all.totals.average(field)
        ]
        return max((1.0, *ratios)) * 1.0001  # engines compute in single precision

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
            self._ranked[each] = forms[: self._most_forms], forms[self._most_forms :]
        return self._ranked[each]


def _together(every: Sequence[TermStatistics]) -> TermStatistics:
    words = {field: sum(each.totals.words.get(field, 0.0) for each in every) for field in FIELDS}
    totals = IndexTotals(sum(each.totals.documents for each in every), sum(each.totals.alive for each in every), words)
    holders: Counter[tuple[str, str]] = Counter()
    for each in every:
        holders.update(each.holders)
    return TermStatistics(totals, holders)


def fields_of(each: Words) -> tuple[str, ...]:
    """The fields in which words are searched."""
    return (each.field,) if each.field else tuple(BOOSTS)


def any_ending(start: str) -> str:
    """What stands for all words that begin so; no folded word has a star."""
    return f"{start}*"


def rarity(pages: int, holders: int) -> float:
    """The inverse document frequency of BM25."""
    if holders > pages:
        holders = pages
    return log(1 + (pages - holders + 0.5) / (holders + 0.5))
