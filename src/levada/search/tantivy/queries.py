"""Translation of queries to tantivy.

Each word is searched in the title and the text, and in its other forms in pages of each language. The best match
counts, the others a little, so that a word does not weigh more because more fields could hold it.

The words that begin like a half-typed one count as its forms. Some are named one by one; if there are more, tantivy
walks its dictionary with an automaton, which costs as much for 100 words as for 10,000.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import log
from typing import Protocol

import tantivy

from levada.search.properties import RangeOf, WordsOf, range_pattern
from levada.search.query import Ask, Language, Since, SiteFilter, Term, Words
from levada.search.stemming import LANGUAGES, word_stems
from levada.search.tantivy.schema import NUMBERS, PROPERTIES, forms_of, property_term, schema

TITLE_BOOST = 2.5
BOOSTS = {"text": 1.0, "title": TITLE_BOOST}
FORM_BOOST = 0.6
OTHERS = 0.1  # weight of the matches that are not the best
MOST_COMPLETIONS = 64  # words that are named one by one: the most frequent ones

_Q = tantivy.Query
_MUST, _SHOULD, _NOT = tantivy.Occur.Must, tantivy.Occur.Should, tantivy.Occur.MustNot


class Weights(Protocol):
    """How rare words are where this index is one of several."""

    def boost(self, field: str, words: tuple[str, ...]) -> float:
        """The factor that turns the index's own weight of these words into the weight over all pages."""

    def form_weight(self, language: str, typed: str) -> float:
        """The score of a page that has another form of the word."""

    def completion_weight(self, field: str, prefix: str) -> float:
        """The score of a page that has a word that begins so."""


def tantivy_query(
    ask: Ask, searcher: tantivy.Searcher, present: Iterable[str], weights: Weights | None = None
) -> tantivy.Query:
    """The tantivy query. `present` are the languages of the pages; forms in other languages are not searched."""
    return _Translation(searcher, form_languages(ask, present), weights).whole(ask)


def form_languages(ask: Ask, present: Iterable[str]) -> list[str]:
    """The languages in which a hit may hold another form of the query's words."""
    wanted = ask.languages()
    return [code for code in present if code in LANGUAGES and (wanted is None or code in wanted)]


def term(field: str, value: str, option: str = "freq") -> tantivy.Query:
    return _Q.term_query(schema(), field, value, index_option=option)


class _Translation:
    """The translation of one query, for one state of the index."""

    def __init__(self, searcher: tantivy.Searcher, languages: list[str], weights: Weights | None) -> None:
        self._searcher = searcher
        self._languages = languages
        self._weights = weights

    def whole(self, ask: Ask) -> tantivy.Query:
        clauses = [(_MUST, self._any(group)) for group in ask.must]
        clauses += [(_NOT, self._one(each)) for each in ask.must_not]
        if not ask.must:
            clauses.append((_MUST, _Q.exists_query("place")))  # every page, and nothing else that the index holds
        if len(clauses) == 1:
            return clauses[0][1]
        return _Q.boolean_query(clauses)

    def _any(self, group: tuple[Term, ...]) -> tantivy.Query:
        if len(group) == 1:
            return self._one(group[0])
        return _Q.boolean_query([(_SHOULD, self._one(each)) for each in group])

    def _one(self, each: Term) -> tantivy.Query:
        match each:
            case Words():
                return self._words(each)
            case SiteFilter(host):
                return _filter(term("within", host, "basic"))
            case Language(code):
                return _filter(term("language", code, "basic"))
            case Since(at):
                return _filter(_Q.range_query(schema(), "changed_at", tantivy.FieldType.Float, lower_bound=at))
            case WordsOf():
                return _filter(self._property_words(each))
            case RangeOf():
                return _filter(_numbers_between(each))

    def _property_words(self, each: WordsOf) -> tantivy.Query:
        words = tuple(property_term(each.property, word) for word in each.folded)
        return completed(self._searcher, PROPERTIES, words) if each.prefix else words_query(PROPERTIES, words)

    def _words(self, each: Words) -> tantivy.Query:
        fields = [
            self._weighed("text", each.folded),
            _Q.boost_query(self._weighed("title", each.folded), TITLE_BOOST),
        ]
        if each.has_forms():
            fields += [query for code in self._languages for query in self._other_forms(code, each.typed)]
        if each.prefix:
            fields += [self._completed(field, boost, each.folded) for field, boost in BOOSTS.items()]
        return _Q.disjunction_max_query(fields, OTHERS)

    def _weighed(self, field: str, words: tuple[str, ...]) -> tantivy.Query:
        query = words_query(field, words)
        return query if self._weights is None else _Q.boost_query(query, self._weights.boost(field, words))

    def _other_forms(self, language: str, typed: str) -> list[tantivy.Query]:
        forms = list(forms_of(self._searcher, language, word_stems(language, typed)))
        if not forms:
            return []
        weight = self._weights.form_weight(language, typed) if self._weights else self._rarity(forms)
        return [_Q.const_score_query(other_forms(language, forms), FORM_BOOST * weight)]

    def _completed(self, field: str, boost: float, words: tuple[str, ...]) -> tantivy.Query:
        if self._weights:
            weight = self._weights.completion_weight(field, words[-1])
        else:
            weight = rarity(self._searcher.num_docs, completion_holders(self._searcher, field, words[-1]))
        return _Q.const_score_query(completed(self._searcher, field, words), FORM_BOOST * boost * weight)

    def _rarity(self, forms: list[str]) -> float:
        return rarity(self._searcher.num_docs, sum(self._searcher.doc_freq("text", form) for form in forms))


def _numbers_between(each: RangeOf) -> tantivy.Query:
    pattern = range_pattern(each)
    if not pattern:
        return _Q.empty_query()
    return _Q.regex_query(schema(), NUMBERS, f"{re.escape(each.property)}={pattern}")


def words_query(field: str, words: tuple[str, ...]) -> tantivy.Query:
    """Matches one word, or several consecutive ones, in one field."""
    return term(field, words[0]) if len(words) == 1 else _Q.phrase_query(schema(), field, list(words))


def other_forms(language: str, forms: list[str]) -> tantivy.Query:
    """Matches pages in this language that have one of these words."""
    fields = [(_SHOULD, _Q.term_set_query(schema(), field, forms)) for field in ("text", "title")]
    return _Q.boolean_query([(_MUST, term("language", language, "basic")), (_MUST, _Q.boolean_query(fields))])


def completed(searcher: tantivy.Searcher, field: str, words: tuple[str, ...]) -> tantivy.Query:
    """Matches these words one after the other, the last of them with any ending: of a phrase, the most frequent."""
    *before, start = words
    known = searcher.terms_with_prefix(field, start, limit=MOST_COMPLETIONS + 1)
    if len(known) > MOST_COMPLETIONS and not before:
        return _Q.regex_query(schema(), field, f"{re.escape(start)}.*")
    endings = [word for word, _ in known]
    if not before:
        return _Q.term_set_query(schema(), field, endings)
    return _Q.boolean_query([(_SHOULD, words_query(field, (*before, word))) for word in endings or [start]])


def completion_holders(searcher: tantivy.Searcher, field: str, start: str) -> int:
    """About how many pages have a word that begins so."""
    return sum(pages for _, pages in searcher.terms_with_prefix(field, start, limit=MOST_COMPLETIONS))


def rarity(pages: int, holders: int) -> float:
    """The BM25 score of an average page that has such a word once; all forms count as one word."""
    holders = min(pages, holders)
    return log(1 + (pages - holders + 0.5) / (holders + 0.5))


def _filter(query: tantivy.Query) -> tantivy.Query:
    """Matches without changing the score."""
    return _Q.const_score_query(query, 0.0)
