"""Translation of queries to tantivy.

What a match counts is decided in `levada.search.weights`.

The words that begin like a half-typed one count as its forms. Some are named one by one; if there are more, tantivy
walks its dictionary with an automaton, which costs as much for 100 words as for 10,000.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import tantivy

from levada.search.properties import RangeOf, WordsOf, range_pattern
from levada.search.stemming import LANGUAGES
from levada.search.tantivy.schema import NUMBERS, PROPERTIES, property_term, schema
from levada.search.terms import Ask, Group, Language, Pages, Since, SiteFilter, Term, Until, UrlWords, Words
from levada.search.weights import OTHERS, AnyForm, Completed, Flat, NearWords, WordWeights

MOST_COMPLETIONS = 64  # words that are named one by one: the most frequent ones

_Q = tantivy.Query
_MUST, _SHOULD, _NOT = tantivy.Occur.Must, tantivy.Occur.Should, tantivy.Occur.MustNot


QueriesOf = Callable[[Words], list[tantivy.Query]]
"""Gives the queries for one word or phrase, of which a page matches at least one."""


def tantivy_query(ask: Ask, searcher: tantivy.Searcher, queries_of: QueriesOf) -> tantivy.Query:
    return _Translation(searcher, queries_of).whole(ask)


def weighted_queries(each: Words, weights: WordWeights, searcher: tantivy.Searcher) -> list[tantivy.Query]:
    """The queries for one word or phrase, each match with its weight."""
    queries = [
        _Q.boost_query(words_query(field, words), weights.boost(field, words, weight))
        for field, words, weight in weights.parts(each)
    ]
    queries += [_Q.const_score_query(flat_query(searcher, flat), weight) for flat, weight in weights.flat_parts(each)]
    return [_Q.disjunction_max_query(queries, OTHERS)] if len(queries) > 1 else queries


def flat_query(searcher: tantivy.Searcher, flat: Flat) -> tantivy.Query:
    """Matches the pages that all have the same score."""
    match flat:
        case AnyForm(fields, forms):
            return any_word(fields, forms)
        case Completed(field, words):
            return completed(searcher, field, words)
        case NearWords(field, pairs, between):
            return near(field, pairs, between)


def form_languages(ask: Ask, present: Iterable[str]) -> list[str]:
    """The languages of which the query's words can be."""
    wanted = ask.languages()
    return [code for code in present if code in LANGUAGES and (wanted is None or code in wanted)]


def term(field: str, value: str, option: str = "freq") -> tantivy.Query:
    return _Q.term_query(schema(), field, value, option)


class _Translation:
    """The translation of one query, for one state of the index."""

    def __init__(self, searcher: tantivy.Searcher, queries_of: QueriesOf) -> None:
        self._searcher = searcher
        self._words = queries_of

    def whole(self, ask: Ask) -> tantivy.Query:
        clauses = [(_MUST, self._any(group)) for group in ask.must]
        clauses += [(_NOT, _either(self._one(each))) for each in ask.must_not]
        if not ask.must:
            clauses.append((_MUST, _every_page()))
        clauses += [(_SHOULD, query) for group in ask.may for each in group for query in self._one(each)]
        return clauses[0][1] if len(clauses) == 1 else _Q.boolean_query(clauses)

    def _any(self, group: Group) -> tantivy.Query:
        return _either([query for each in group for query in self._one(each)])

    def _one(self, each: Term) -> list[tantivy.Query]:
        """Queries of which a page matches at least one."""
        match each:
            case Words():
                return self._words(each)
            case Ask():
                return [self.whole(each)]
            case SiteFilter(host):
                return [_filter(term("within", host, "basic"))]
            case Language(code):
                return [_filter(term("language", code, "basic"))]
            case Since(at):
                return [_filter(_Q.range_query(schema(), "changed_at", tantivy.FieldType.Float, lower_bound=at))]
            case Until(at):
                return [_filter(_Q.range_query(schema(), "changed_at", tantivy.FieldType.Float, upper_bound=at))]
            case UrlWords(words, prefix):
                return [_filter(completed(self._searcher, "url", words) if prefix else words_query("url", words))]
            case WordsOf():
                return [_filter(self._property_words(each))]
            case Pages(ids):
                return [_filter(_Q.term_set_query(schema(), "page", sorted(ids)))]
            case RangeOf():
                return [_filter(_numbers_between(each))]

    def _property_words(self, each: WordsOf) -> tantivy.Query:
        words = tuple(property_term(each.property, word) for word in each.folded)
        return completed(self._searcher, PROPERTIES, words) if each.prefix else words_query(PROPERTIES, words)


def _either(queries: list[tantivy.Query]) -> tantivy.Query:
    if not queries:
        return _Q.empty_query()
    return queries[0] if len(queries) == 1 else _Q.boolean_query([(_SHOULD, query) for query in queries])


def _numbers_between(each: RangeOf) -> tantivy.Query:
    pattern = range_pattern(each)
    if not pattern:
        return _Q.empty_query()
    return _Q.regex_query(schema(), NUMBERS, f"{re.escape(each.property)}={pattern}")


def words_query(field: str, words: tuple[str, ...]) -> tantivy.Query:
    """Matches one word, or several consecutive ones, in one field."""
    return term(field, words[0]) if len(words) == 1 else _Q.phrase_query(schema(), field, list(words))


def any_word(fields: Iterable[str], words: list[str]) -> tantivy.Query:
    """Matches pages that have one of these words."""
    return _either([_Q.term_set_query(schema(), field, words) for field in fields])


def near(field: str, pairs: Iterable[tuple[str, str]], between: int) -> tantivy.Query:
    """Matches both words of each pair, in any order, with at most so many words between them."""
    both = [
        _either([_Q.phrase_query(schema(), field, list(two), slop=between) for two in (pair, pair[::-1])])
        for pair in pairs
    ]
    return both[0] if len(both) == 1 else _Q.boolean_query([(_MUST, query) for query in both])


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


def _every_page() -> tantivy.Query:
    """Every page, and nothing else that the index holds."""
    return _filter(_Q.exists_query("place"))


def _filter(query: tantivy.Query) -> tantivy.Query:
    """Matches without changing the score."""
    return _Q.const_score_query(query, 0.0)
