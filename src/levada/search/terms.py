"""A parsed query: words and conditions, in groups of which a page must have one each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias
from urllib.parse import unquote

import msgspec

from levada.pages.folding import fold
from levada.search.properties import RangeOf, WordsOf


class Words(msgspec.Struct, frozen=True):
    """One word, or several consecutive ones (a phrase, or what folding split: e-mail)."""

    folded: tuple[str, ...]
    typed: str
    quoted: bool = False  # only this form, not its stem
    prefix: bool = False  # the last word, or any that begins with it
    needed: bool = False  # joined by AND: no page may lack it
    times: int = 1  # how often the query has it
    field: Literal["", "title"] = ""  # "": anywhere
    between: int | None = None  # at most so many other words between each two of them; None: one after the other
    worth: float = 1.0  # what a match counts: a synonym or a correction counts less than what was typed

    def has_forms(self) -> bool:
        """Whether other forms of the word are searched too."""
        return not self.quoted and len(self.folded) == 1

    def is_loose(self) -> bool:
        """Whether a page may lack it."""
        return not (self.quoted or self.needed or self.field)

    def pairs(self) -> list[tuple[str, str]]:
        """The words that must be near each other."""
        return [(one, other) for one, other in pairwise(self.folded) if one != other]

    def matches(self, found: Sequence[str]) -> bool:
        """Whether these folded words, as many as these, are what is searched for."""
        if not self.prefix:
            return tuple(found) == self.folded
        *before, last = self.folded
        return list(found[:-1]) == before and len(found) == len(self.folded) and found[-1].startswith(last)


class UrlWords(msgspec.Struct, frozen=True):
    """A condition: the address has these words one after the other."""

    folded: tuple[str, ...]
    prefix: bool = False


class SiteFilter(msgspec.Struct, frozen=True):
    host: str


class Language(msgspec.Struct, frozen=True):
    code: str


class Since(msgspec.Struct, frozen=True):
    at: float


class Until(msgspec.Struct, frozen=True):
    at: float


class Pages(msgspec.Struct, frozen=True):
    """One of these pages: no form of a query asks for it, and hybrid search does."""

    ids: frozenset[int]


class Ask(msgspec.Struct, frozen=True):
    """A parsed query: one of each group of `must`, and none of `must_not`; the words of `may` rank only. As a term of
    a group it is an expression in parentheses."""

    must: tuple[tuple[Term, ...], ...]
    must_not: tuple[Term, ...] = ()
    may: tuple[tuple[Term, ...], ...] = ()
    notes: tuple[str, ...] = ()  # what was not taken as it might be meant

    def words(self) -> tuple[Words, ...]:
        """The words that a hit may contain."""
        return tuple(each for group in (*self.must, *self.may) for term in group for each in _words_of(term))

    def every_word(self) -> tuple[Words, ...]:
        """The words of a hit, and those that it may not contain."""
        return tuple(_every_word(self))

    def languages(self) -> frozenset[str] | None:
        """The languages that a hit can be in; None for any."""
        groups = [group for group in self.must if all(isinstance(term, Language) for term in group)]
        if not groups:
            return None
        return frozenset.intersection(
            *(frozenset(term.code for term in group if isinstance(term, Language)) for group in groups)
        )


Term: TypeAlias = Words | UrlWords | SiteFilter | Language | Since | Until | WordsOf | RangeOf | Pages | Ask
Group: TypeAlias = tuple[Term, ...]


def _words_of(term: Term) -> tuple[Words, ...]:
    if isinstance(term, Words):
        return (term,)
    return term.words() if isinstance(term, Ask) else ()


def _every_word(ask: Ask) -> Iterator[Words]:
    for term in (*(term for group in (*ask.must, *ask.may) for term in group), *ask.must_not):
        if isinstance(term, Words):
            yield term
        elif isinstance(term, Ask):
            yield from _every_word(term)


def words_of_url(url: str) -> str:
    """The folded words of an address, as `url:` finds them."""
    return fold(unquote(url.partition("://")[2] or url))


def site_names(site: str) -> list[str]:
    """What `site:` may name to mean this site: it and every host above it, with and without its port."""
    host, colon, port = site.rpartition(":")
    if not colon or not port.isdecimal():
        host, port = site, ""
    labels = host.split(".")
    above = [".".join(labels[start:]) for start in range(len(labels))]
    return above + [f"{name}:{port}" for name in above] if port else above
