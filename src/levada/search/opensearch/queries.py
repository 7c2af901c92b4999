"""Translation of queries to OpenSearch's query language. What a match counts is decided in `levada.search.weights`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from levada.pages.folding import is_indexed
from levada.search.opensearch.mapping import property_term
from levada.search.properties import RangeOf, WordsOf, ordered
from levada.search.terms import Ask, Group, Language, Pages, Since, SiteFilter, Term, Until, UrlWords, Words
from levada.search.weights import MOST_FORMS, OTHERS, AnyForm, Completed, Flat, NearWords, WordWeights

Clause = dict[str, Any]
EVERY_PAGE: Clause = {"exists": {"field": "page"}}
_NOTHING: Clause = {"match_none": {}}
_MOST_CLAUSES = 900  # the server's limit is 1024
_MOST_ENDINGS = 1_000  # of the last word of a phrase


def query_of(ask: Ask, weights: WordWeights, scale: float) -> Clause:
    """The query for what was asked; `scale` is what the server's own scores are multiplied by to be BM25's."""
    return _Translation(lambda each: _weighted(each, weights, scale)).whole(ask)


def most_forms(ask: Ask) -> int:
    """How many forms of each word may be searched one by one, so that the query is not too large."""
    fields = 2 * max(1, len(ask.every_word()))
    return max(1, min(MOST_FORMS, _MOST_CLAUSES // fields - 2))


def term(field: str, value: str) -> Clause:
    return {"term": {field: {"value": clean(value)}}}


def begins(field: str, start: str) -> Clause:
    return {"prefix": {field: {"value": clean(start)}}}


def clean(text: str) -> str:
    """The text without unpaired surrogates, which no request can carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _weighted(each: Words, weights: WordWeights, scale: float) -> list[Clause]:
    """The queries for one word or phrase, of which a page matches at least one."""
    queries = [
        _boosted(field, words, scale * weights.boost(field, words, weight))
        for field, words, weight in weights.parts(each)
    ]
    queries += [_constant(_flat(flat), weight) for flat, weight in weights.flat_parts(each)]
    return [{"dis_max": {"queries": queries, "tie_breaker": OTHERS}}] if len(queries) > 1 else queries


class _Translation:
    def __init__(self, words: Callable[[Words], list[Clause]]) -> None:
        self._words = words

    def whole(self, ask: Ask) -> Clause:
        must = [self._any(group) for group in ask.must] or [_constant(EVERY_PAGE, 0.0)]
        clauses: Clause = {"must": must}
        if ask.must_not:
            clauses["must_not"] = [_either(self._one(each)) for each in ask.must_not]
        if ask.may:
            clauses["should"] = [query for group in ask.may for each in group for query in self._one(each)]
            clauses["minimum_should_match"] = 0
        return must[0] if len(must) == len(clauses) == 1 else {"bool": clauses}

    def _any(self, group: Group) -> Clause:
        return _either([query for each in group for query in self._one(each)])

    def _one(self, each: Term) -> list[Clause]:
        match each:
            case Words():
                return self._words(each)
            case Ask():
                return [self.whole(each)]
            case _:
                return [_constant(_condition(each), 0.0)]


def _condition(each: Term) -> Clause:
    match each:
        case SiteFilter(host):
            return term("within", host)
        case Language(code):
            return term("language", code)
        case Since(at):
            return {"range": {"changed_at": {"gte": at}}}
        case Until(at):
            return {"range": {"changed_at": {"lte": at}}}
        case UrlWords(words, prefix):
            return completed("url", words) if prefix else _phrase("url", words)
        case WordsOf():
            words = tuple(property_term(each.property, word) for word in each.folded)
            return completed("properties", words) if each.prefix else _phrase("properties", words)
        case RangeOf():
            low, high = (clean(property_term(each.property, ordered(end))) for end in (each.low, each.high))
            return {"range": {"numbers": {"gte": low, "lte": high}}} if low <= high else _NOTHING
        case Pages(ids):
            return {"terms": {"page": sorted(ids)}}
    raise AssertionError(each)


def _flat(flat: Flat) -> Clause:
    match flat:
        case AnyForm(fields, forms):
            return _either([{"terms": {field: forms}} for field in fields])
        case Completed(field, words):
            return completed(field, words)
        case NearWords(field, pairs, between):
            return _near(field, pairs, between)


def completed(field: str, words: tuple[str, ...]) -> Clause:
    """Matches these words one after the other, the last of them with any ending."""
    if len(words) == 1:
        return begins(field, words[0])
    if not all(map(is_indexed, words[:-1])):
        return _NOTHING
    phrase = {"query": clean(" ".join(words)), "max_expansions": _MOST_ENDINGS}
    return {"match_phrase_prefix": {field: phrase}}


def _phrase(field: str, words: tuple[str, ...]) -> Clause:
    return term(field, words[0]) if len(words) == 1 else _consecutive(field, words)


def _consecutive(field: str, words: tuple[str, ...], between: int = 0) -> Clause:
    return {"match_phrase": {field: {"query": clean(" ".join(words)), "slop": between}}}


def _near(field: str, pairs: Iterable[tuple[str, str]], between: int) -> Clause:
    """Matches both words of each pair, in any order, with at most so many words between them."""
    both = [_either([_consecutive(field, two, between) for two in (pair, pair[::-1])]) for pair in pairs]
    return {"bool": {"must": both}}


def _boosted(field: str, words: tuple[str, ...], boost: float) -> Clause:
    (kind, fields), *_ = _phrase(field, words).items()
    return {kind: {field: {**fields[field], "boost": boost}}}


def _constant(query: Clause, score: float) -> Clause:
    return {"constant_score": {"filter": query, "boost": score}}


def _either(queries: list[Clause]) -> Clause:
    if not queries:
        return _NOTHING
    return queries[0] if len(queries) == 1 else {"bool": {"should": queries, "minimum_should_match": 1}}
