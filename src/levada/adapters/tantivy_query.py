"""How is a question put to tantivy?

Each word is sought in the title, the text and the stems of every language; the best of these counts, the others
a little, so that a word does not weigh more because more fields could hold it.
"""

from __future__ import annotations

from collections.abc import Iterable

import tantivy

from levada.adapters.stemming import LANGUAGES, word_stems
from levada.adapters.tantivy_schema import schema
from levada.pages.query import Ask, Language, Since, Site, Term, Words

__all__ = ["tantivy_query", "term"]

_TITLE_BOOST = 2.5
_STEM_BOOST = 0.6
_OTHERS = 0.1  # what the fields that are not the best add

_Q = tantivy.Query
_MUST, _SHOULD, _NOT = tantivy.Occur.Must, tantivy.Occur.Should, tantivy.Occur.MustNot


def tantivy_query(ask: Ask, present: Iterable[str]) -> tantivy.Query:
    """`present`: the languages that the index holds pages in; the stems of others need not be sought."""
    asked = ask.languages()
    languages = [code for code in present if code in LANGUAGES and (asked is None or code in asked)]
    clauses = [(_MUST, _any(group, languages)) for group in ask.must]
    clauses += [(_NOT, _one(each, languages)) for each in ask.must_not]
    if not ask.must:
        clauses.append((_MUST, _Q.all_query()))
    if len(clauses) == 1:
        return clauses[0][1]
    return _Q.boolean_query(clauses)


def term(field: str, value: str, option: str = "freq") -> tantivy.Query:
    return _Q.term_query(schema(), field, value, index_option=option)


def _any(group: tuple[Term, ...], languages: list[str]) -> tantivy.Query:
    if len(group) == 1:
        return _one(group[0], languages)
    return _Q.boolean_query([(_SHOULD, _one(each, languages)) for each in group])


def _one(each: Term, languages: list[str]) -> tantivy.Query:
    match each:
        case Words():
            return _words(each, languages)
        case Site(host):
            return _filter(term("within", host, "basic"))
        case Language(code):
            return _filter(term("language", code, "basic"))
        case Since(at):
            return _filter(_Q.range_query(schema(), "changed_at", tantivy.FieldType.Float, lower_bound=at))


def _filter(query: tantivy.Query) -> tantivy.Query:
    """A filter says yes or no, and nothing about how well."""
    return _Q.const_score_query(query, 0.0)


def _words(each: Words, languages: list[str]) -> tantivy.Query:
    if len(each.folded) > 1:
        return _best([_phrase("text", each.folded), _title(_phrase("title", each.folded))])
    fields = [term("text", each.folded[0]), _title(term("title", each.folded[0]))]
    if not each.quoted:
        fields += [
            _Q.boost_query(term(f"stem_{language}", stem, "basic"), _STEM_BOOST)
            for language in languages
            for stem in word_stems(language, each.typed)
        ]
    return _best(fields)


def _phrase(field: str, words: tuple[str, ...]) -> tantivy.Query:
    return _Q.phrase_query(schema(), field, list(words))


def _title(query: tantivy.Query) -> tantivy.Query:
    return _Q.boost_query(query, _TITLE_BOOST)


def _best(queries: list[tantivy.Query]) -> tantivy.Query:
    return _Q.disjunction_max_query(queries, _OTHERS)
