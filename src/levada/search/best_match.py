"""Best match: pages with all words of a query, and where these are few, pages with some of them.

Where both are few, pages follow that have a word as it is probably spelt (`levada.search.typos`).

Stop words (the, of, ve) do not decide what is found, if the query has other words: a word is left out if it is a stop
word in a language of the pages and a tenth of the pages have it. Of a long text the rarest words are searched, as
they say most. What is quoted, excluded, joined by AND, or a filter always binds.

The decision depends on nothing but the query and the pages, so every part of the hits comes from the same list.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Generic, Protocol, TypeVar

import msgspec
import tantivy
from msgspec.structs import replace

from levada.core.search_records import Query
from levada.search.query import LONG_TEXT
from levada.search.stemming import LANGUAGES
from levada.search.terms import Ask, Group, Term, Words
from levada.search.typos import Vocabulary, beginnings, corrections

ENOUGH = 10  # pages with all words: with fewer, pages with some of them follow
MOST_RANKED = 64  # words of a long text that are searched
MOST_CORRECTED = 4  # words of a query
_SHORTEST_PART = 3  # letters
_COMMON = 0.1  # the share of the pages that have a stop word
_CORRECTION_WORTH = 0.5
Found = TypeVar("Found")


class WordFacts(Vocabulary, Protocol):
    """What an index knows about words."""

    def pages(self) -> int:
        """The number of pages."""

    def languages(self) -> Iterable[str]:
        """The languages of the pages."""


class Match(msgspec.Struct, Generic[Found], frozen=True):
    """The pages that a query finds."""

    total: int
    found: Sequence[tuple[float, Found]]  # the best, with their scores
    ask: Ask  # what they were found by
    corrected: dict[str, str] = {}  # misspelt words as typed, and how they are probably spelt


Run = Callable[[Ask, int], tuple[int, Sequence[tuple[float, Found]]]]
"""Gives the number of pages that an `Ask` finds, and the best so many of them."""


def best_match(
    ask: Ask, query: Query, facts: WordFacts, wanted: int, run: Run[Found], key: Callable[[Found], Hashable]
) -> Match[Found]:
    """The pages found, and the best `wanted` with their scores. `key` tells pages apart.

    Where hits are sorted by time, pages with some of the words only come if none has all: they would come first.
    """
    enough = ENOUGH if query.sort == "relevance" else 1
    strict = all_words(ask, facts)
    match = Match(*run(strict, max(wanted, enough)), strict)
    if match.total < enough:
        match = _with_corrections(match, query, facts, wanted, run, key)
    if match.total < enough and (relaxed := some_words(match.ask)) is not None:
        match = _followed_by(match, relaxed, wanted, run, key)
    return replace(match, found=match.found[:wanted])


def _with_corrections(
    match: Match[Found],
    query: Query,
    facts: WordFacts,
    wanted: int,
    run: Run[Found],
    key: Callable[[Found], Hashable],
) -> Match[Found]:
    """The same, with the pages that have a word as it is probably spelt."""

    def holders(word: str) -> int:
        return run(Ask(((Words((word,), word),),)), 0)[0]

    corrected: dict[str, str] = {}
    groups: dict[Group, Group] = {}
    typed = match.ask.must
    for group in typed if len(typed) <= LONG_TEXT else ():
        word = group[0]
        if not isinstance(word, Words) or len(word.folded) > 1 or word.field or len(corrected) == MOST_CORRECTED:
            continue
        binds = word.quoted or word.needed  # corrected in the suggestion only
        if binds and match.total:
            continue
        if word.prefix:
            if query.as_you_type and not run(Ask(((word,),)), 0)[0]:
                starts = beginnings(word.folded[0], facts)
                groups[group] = (*group, *(replace(word, folded=(each,), worth=_CORRECTION_WORTH) for each in starts))
            continue
        known = corrections(word.folded[0], facts, holders)
        if known and not any(run(Ask(((each,),)), 0)[0] for each in group[1:]):  # no synonym or other part is found
            corrected[word.typed] = known[0]
            also = [Words((each,), each, times=word.times, worth=_CORRECTION_WORTH) for each in known]
            groups[group] = group if binds else (*group, *also)
    if not groups:
        return match
    ask = replace(match.ask, must=tuple(groups.get(group, group) for group in typed))
    if ask == match.ask:
        return replace(match, corrected=corrected)
    return replace(_followed_by(match, ask, wanted, run, key), corrected=corrected)


def _followed_by(
    match: Match[Found], ask: Ask, wanted: int, run: Run[Found], key: Callable[[Found], Hashable]
) -> Match[Found]:
    """The pages of `match`, and then those that `ask`, which finds them too, finds beside."""
    first = match.found
    total, found = run(ask, wanted + len(first))
    known = {key(each) for _, each in first}
    others = [(score, each) for score, each in found if key(each) not in known]
    # What was found first comes first, also where another page has a rare word often.
    lift = max(0.0, others[0][0] - first[-1][0]) if first and others else 0.0
    return replace(match, total=total, found=[*((score + lift, each) for score, each in first), *others], ask=ask)


def all_words(ask: Ask, facts: WordFacts) -> Ask:
    """The query without its stop words, if it has other words; of a long text the rarest."""
    if sum(map(is_loose, ask.must)) > LONG_TEXT:
        ask = replace(ask, must=tuple(tuple(map(_unquoted, group)) for group in ask.must))
    loose = [group for group in ask.must if is_loose(group)]
    bound = [group for group in ask.must if not is_loose(group)]
    languages = tuple(facts.languages())
    telling = [group for group in loose if not _is_common(group, languages, facts)]
    if telling or Ask(tuple(bound)).words():
        loose = telling
    if len(loose) > MOST_RANKED:
        known = [group for group in loose if _rarity(group, facts)]
        rarest = sorted(known or loose, key=lambda group: _rarity(group, facts))[:MOST_RANKED]
        loose = [group for group in loose if group in rarest]
    kept = {*loose, *bound}
    return replace(ask, must=tuple(group for group in ask.must if group in kept))


def some_words(ask: Ask) -> Ask | None:
    """The query that does not ask for all words; None if it asks for one only."""
    loose = [group for group in ask.must if is_loose(group)]
    bound = [group for group in ask.must if not is_loose(group)]
    if Ask(tuple(bound)).words():
        return replace(ask, must=tuple(bound), may=(*ask.may, *loose)) if loose else None
    if len(loose) < 2:
        return None
    alternatives = dict.fromkeys(part for group in loose for term in group for part in _with_parts(term))
    return replace(ask, must=(*bound, tuple(alternatives)))


def _with_parts(term: Term) -> Iterator[Term]:
    """A word, and of several written as one (high-speed) each."""
    yield term
    if isinstance(term, Words) and len(term.folded) > 1:
        for part in term.folded:
            if len(part) >= _SHORTEST_PART:
                yield Words((part,), part, times=term.times)


def is_loose(group: Group) -> bool:
    """Whether a page may lack these words."""
    return all(_is_loose_term(term) for term in group)


def _is_loose_term(term: Term) -> bool:
    if isinstance(term, Ask):
        return not term.must_not and all(map(is_loose, term.must))
    return isinstance(term, Words) and term.is_loose()


def _unquoted(term: Term) -> Term:
    return replace(term, quoted=False, between=None) if isinstance(term, Words) and not term.field else term


def _is_common(group: Group, languages: tuple[str, ...], facts: WordFacts) -> bool:
    (first, *others) = group
    if others or not isinstance(first, Words) or first.prefix or len(first.folded) > 1:
        return False
    return _is_stop_word(first.typed, languages) and facts.holders(first.folded[0]) >= _COMMON * facts.pages()


def _rarity(group: Group, facts: WordFacts) -> int:
    return min((facts.holders(word) for each in Ask((group,)).words() for word in each.folded), default=0)


_UNLISTED = frozenset({"ar", "el", "ro", "ta", "tr"})  # tantivy has no stop words of these
_OTHERS = {
    "en": " can do does from had has have how its so what when where which who why you your ",
    "tr": " ama bir bu da de gibi her ile için mi mı ne o olan olarak ve veya ya çok şu ",
}


@lru_cache(maxsize=1 << 12)
def _is_stop_word(typed: str, languages: tuple[str, ...]) -> bool:
    lowered = typed.lower().encode("utf-8", "replace").decode()
    return any(f" {lowered} " in _OTHERS.get(code, "") or _leaves_out(code, lowered) for code in languages)


def _leaves_out(language: str, lowered: str) -> bool:
    return language in LANGUAGES and language not in _UNLISTED and not _analyzer(LANGUAGES[language])(lowered)


@cache
def _analyzer(language: str) -> Callable[[str], list[str]]:
    build = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    analyze: Callable[[str], list[str]] = build.filter(tantivy.Filter.stopword(language)).build().analyze
    return analyze
