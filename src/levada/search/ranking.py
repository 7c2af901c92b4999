"""Reranking of the best hits by what title, address and links say beside the text.

The index finds pages by their words. The order of the first `DEPTH` is then corrected by how much of the title and of
the address the query's words are, by what other pages call a page where they link to it, and by how many do, and
by how many of the words are in headings. Each of these signals adds a share of the page's score, so a page never falls
behind one that is not reranked.

The weights were learnt on the tuned half of the questions over real pages, by cross-validation (`levada lab search`);
docs/design.md has the figures, and what was tried and left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from math import log2
from operator import or_
from typing import Protocol, TypeVar
from urllib.parse import unquote

import msgspec

from levada.pages.folding import words, words_of_title
from levada.search.stemming import LANGUAGES, word_stems
from levada.search.terms import Ask, Words

DEPTH = 24  # hits that are reranked
_MOST_WORDS = 8  # of a query: the signals say little about a long text
_LONGEST_ENDING = 4  # letters that a form of a word has beyond its stem
_SHORTEST_STEM = 3
_LEAD = 2  # letters, by which most words are told from those of the query
_WORDS = re.compile(r"[A-Z]?[a-z\x80-\U0010ffff]+|[A-Z]+(?![a-z])|[0-9]+")  # also those of CamelCase
_ASCII_WORDS = re.compile("[a-z0-9]+")  # what folding makes of these texts, in a tenth of the time
_OWN_PAGE = ("index.", "default.")
Found = TypeVar("Found")


class LinkFacts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the pages of a collection say about one by linking to it."""

    pages: int  # that link to it
    anchors: tuple[tuple[str, int], ...] = ()  # the most frequent texts of these links, folded, with their numbers


class Signals(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What speaks for a page beside its text, each between 0 and 1."""

    title: float  # how much of the title the query's words are
    name: float  # how much of the last part of the address they are
    anchor: float  # how well the texts of links fit the query
    popularity: float  # how many pages link to it
    headings: float = 0.0  # how many of the query's words are in headings


class Shown(Protocol):
    """What ranking looks at of a hit."""

    @property
    def url(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def language(self) -> str: ...
    @property
    def headings(self) -> str:
        """The folded words of its headings, each between spaces."""


WEIGHTS = Signals(title=0.2, name=0.4, anchor=1.5, popularity=0.3, headings=0.8)
_MANY = 10  # doublings of the number of pages that link to a page, above which more count no more
_MANY_SAY_SO = 4  # doublings of the number of links with one text
_MOST_TEXTS = 4  # of links that are compared with the query


def reranked(
    run: Callable[[Ask, int], tuple[int, Sequence[tuple[float, Found]]]],
    summary: Callable[[Found], Shown],
    links: Callable[[Sequence[str]], Mapping[str, LinkFacts]],
    weights: Signals = WEIGHTS,
) -> Callable[[Ask, int], tuple[int, Sequence[tuple[float, Found]]]]:
    """`run` with the first hits in a better order. `summary` gives what is shown of a hit, and `links` what is known of
    some addresses."""

    def rerank(ask: Ask, wanted: int) -> tuple[int, Sequence[tuple[float, Found]]]:
        typed = [each for each in ask.words() if each.folded]
        if not wanted or len(typed) > _MOST_WORDS:
            return run(ask, wanted)
        total, found = run(ask, max(wanted, DEPTH))
        if len(found) < 2 or not found[0][0]:  # nothing to rank, or nothing to rank by
            return total, found[:wanted]
        query = QueryWords(typed)
        shown = [summary(each) for _, each in found[:DEPTH]]
        known = links([each.url for each in shown])
        factors = (query.factor(each, known.get(each.url), weights) for each in shown)
        first = [(score * factor, each) for (score, each), factor in zip(found, factors, strict=False)]
        first.sort(key=lambda scored: -scored[0])
        return total, [*first, *found[DEPTH:]][:wanted]

    return rerank


class QueryWords:
    """The words of a query, to be found in short texts."""

    def __init__(self, typed: Sequence[Words]) -> None:
        self._words = typed
        self._found: dict[str, _Finder] = {}
        # As they stand: no synonym, no correction, and none that is half typed.
        plain = (each.folded[:-1] if each.prefix else each.folded for each in typed if each.worth >= 1)
        self._plain = list(dict.fromkeys(f" {word} " for words in plain for word in words))

    def factor(self, page: Shown, links: LinkFacts | None, weights: Signals) -> float:
        """What the score of a page is multiplied by."""
        found = self.signals(page, links)
        return (
            1.0
            + weights.title * found.title
            + weights.name * found.name
            + weights.anchor * found.anchor
            + weights.popularity * found.popularity
            + weights.headings * found.headings
        )

    def signals(self, page: Shown, links: LinkFacts | None) -> Signals:
        find = self._found.get(page.language)
        if find is None:
            find = self._found[page.language] = _Finder(self._words, page.language)
        of_title, of_name = find.fit(_title_words(page.title))[1], find.fit(_name_of(page.url))[1]
        in_headings = 0.0
        if page.headings and self._plain:
            in_headings = sum(map(page.headings.__contains__, self._plain)) / len(self._plain)
        if links is None:
            return Signals(of_title, of_name, 0.0, 0.0, in_headings)
        anchor, anchors = 0.0, links.anchors[:_MOST_TEXTS]
        if find.may_fit(" ".join([text for text, _ in anchors])):
            for text, often in anchors:
                share, only = find.fit(text.split(" "))
                anchor = max(anchor, share * only * _doublings(often, _MANY_SAY_SO))
        return Signals(of_title, of_name, anchor, _doublings(links.pages, _MANY), in_headings)


@lru_cache(maxsize=1 << 10)
def _doublings(number: int, most: int) -> float:
    """How often one must be doubled to reach a number, as a share of `most`."""
    return min(1.0, log2(1 + number) / most)


class _Finder(dict[str, int]):
    """Tells which words of a query a word of a page is a form of: a bit for each word of the query. The titles and
    addresses of hits have many words in common, so each is looked at once."""

    def __init__(self, typed: Sequence[Words], language: str) -> None:
        self._tests = [(word, _stem(each, word, language)) for each in typed for word in each.folded]
        # A synonym or a correction stands for what was typed.
        self._wanted = sum(len(each.folded) for each in typed if each.worth >= 1) or len(self._tests)
        self._starts = tuple({each for test in self._tests for each in test if each})
        self._leads = {each[:_LEAD] for each in self._starts}

    def may_fit(self, texts: str) -> bool:
        """Whether folded texts can have a form of one of the words. Many have none, which is seen sooner so."""
        return any(map(texts.__contains__, self._starts))

    def fit(self, found: Sequence[str]) -> tuple[float, float]:
        """The share of the query's words that are among these, and the share of these that are the query's."""
        if not found or not self._tests:
            return 0.0, 0.0
        leads = self._leads
        matches = [match for word in found if word[:_LEAD] in leads and (match := self[word])]
        if not matches:
            return 0.0, 0.0
        return min(1.0, reduce(or_, matches).bit_count() / self._wanted), len(matches) / len(found)

    def __missing__(self, word: str) -> int:
        bits = 0
        for place, (typed, stem) in enumerate(self._tests):
            if word == typed or (stem and word.startswith(stem) and len(word) <= len(stem) + _LONGEST_ENDING):
                bits |= 1 << place
        self[word] = bits
        return bits


def _stem(each: Words, word: str, language: str) -> str:
    """What other forms of a word begin with; "" if it has none."""
    if each.prefix and word == each.folded[-1]:
        return word
    if not each.has_forms() or language not in LANGUAGES:
        return ""
    stem = min(word_stems(language, each.typed), key=lambda stem: (len(stem), stem), default=word)
    return stem if len(stem) >= _SHORTEST_STEM else ""


@lru_cache(maxsize=1 << 12)
def _title_words(title: str) -> tuple[str, ...]:
    return tuple(_ASCII_WORDS.findall(title.lower()) if title.isascii() else words_of_title(title))


@lru_cache(maxsize=1 << 12)
def _name_of(url: str) -> tuple[str, ...]:
    """The words of the last part of an address: of a directory's own page those of the directory."""
    path = url.partition("//")[2].partition("?")[0].partition("/")[2].rstrip("/")
    place, _, name = path.rpartition("/")
    is_own = place and name.lower().startswith(_OWN_PAGE)
    name = place.rpartition("/")[2] if is_own else name.rpartition(".")[0] or name
    found = _WORDS.findall(unquote(name) if "%" in name else name)
    return tuple(map(str.lower, found)) if name.isascii() else tuple(words(" ".join(found)))
