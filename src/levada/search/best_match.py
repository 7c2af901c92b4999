"""Best match: pages with all words of a query, and where these are few, pages with some of them.

Stop words (the, of, ve) do not decide what is found, if the query has other words: a word is left out if it is a stop
word in a language of the pages and a tenth of the pages have it. Of a long text the rarest words are searched, as
they say most. What is quoted, excluded, joined by AND, or a filter always binds.

The decision depends on nothing but the query and the pages, so every part of the hits comes from the same list.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Protocol, TypeVar

import tantivy
from msgspec.structs import replace

from levada.search.query import Ask, Term, Words
from levada.search.stemming import LANGUAGES

ENOUGH = 10  # pages with all words: with fewer, pages with some of them follow
MOST_RANKED = 64  # words of a long text that are searched
_LONG_TEXT = 20  # words: its quotes are those of a text, and not of somebody who searches for a phrase
_SHORTEST_PART = 3  # letters
_COMMON = 0.1  # the share of the pages that have a stop word
Found = TypeVar("Found")
Group = tuple[Term, ...]


class WordFacts(Protocol):
    """What an index knows about words."""

    def pages(self) -> int:
        """The number of pages."""

    def holders(self, word: str) -> int:
        """The number of pages that have this folded word in their text."""

    def languages(self) -> Iterable[str]:
        """The languages of the pages."""


def best_match(
    ask: Ask,
    facts: WordFacts,
    wanted: int,
    run: Callable[[Ask, int], tuple[int, Sequence[tuple[float, Found]]]],
    key: Callable[[Found], Hashable],
) -> tuple[int, list[tuple[float, Found]]]:
    """The number of pages found, and the best `wanted` with their scores.

    `run` gives the number of pages that an `Ask` finds and the best so many of them. `key` tells pages apart.
    """
    strict = all_words(ask, facts)
    relaxed = some_words(strict)
    total, full = run(strict, wanted if relaxed is None else max(wanted, ENOUGH))
    if relaxed is None or total >= ENOUGH:
        return total, list(full[:wanted])
    total, found = run(relaxed, wanted + len(full))
    known = {key(each) for _, each in full}
    others = [(score, each) for score, each in found if key(each) not in known]
    # Pages with all words come first, also where a page has a rare word often.
    lift = max(0.0, others[0][0] - full[-1][0]) if full and others else 0.0
    return total, [*((score + lift, each) for score, each in full), *others][:wanted]


def all_words(ask: Ask, facts: WordFacts) -> Ask:
    """The query without its stop words, if it has other words; of a long text the rarest."""
    if sum(map(is_loose, ask.must)) > _LONG_TEXT:
        ask = replace(ask, must=tuple(tuple(map(_unquoted, group)) for group in ask.must))
    loose = [group for group in ask.must if is_loose(group)]
    bound = [group for group in ask.must if not is_loose(group)]
    languages = tuple(facts.languages())
    telling = [group for group in loose if not _is_common(group, languages, facts)]
    if telling or any(isinstance(term, Words) for group in bound for term in group):
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
    if any(isinstance(term, Words) for group in bound for term in group):
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
    return all(isinstance(term, Words) and not term.quoted and not term.needed for term in group)


def _unquoted(term: Term) -> Term:
    return replace(term, quoted=False) if isinstance(term, Words) else term


def _is_common(group: Group, languages: tuple[str, ...], facts: WordFacts) -> bool:
    (first, *others) = group
    if others or not isinstance(first, Words) or first.prefix or len(first.folded) > 1:
        return False
    return _is_stop_word(first.typed, languages) and facts.holders(first.folded[0]) >= _COMMON * facts.pages()


def _rarity(group: Group, facts: WordFacts) -> int:
    return min((facts.holders(word) for term in group if isinstance(term, Words) for word in term.folded), default=0)


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
