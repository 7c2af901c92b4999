"""Typing errors: which known words a rare or unknown word probably is.

A word of four letters may have one error, and one of eight two: a letter too many, one missing, a wrong one, or two
that changed places (Damerau 1964). With one error, every word that could be meant is looked up in the index: some
500 look-ups, a microsecond or two each. With two errors, the words are compared that begin with the same three
letters. So the cost has a limit, whatever the index holds, and no dictionary is kept.

A half-typed word that no word begins with may have one error from its fifth letter on.

A word that is known is only corrected if it is rare and the other one is far more frequent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

MOST_CORRECTIONS = 3  # of one word
_ONE_ERROR, _TWO_ERRORS = 4, 8  # letters of a word that may have so many
_HALF_TYPED = 5  # letters of a half-typed word that may have an error
_LONGEST = 32  # letters
_RARE = 10_000  # a word is rare if at most one in so many pages has it
_FAR_MORE = 20  # times as frequent
_SAME_START = 3  # letters, where there are two errors
_MOST_COMPARED = 5_000  # words that begin so, the most frequent ones
_ALPHABETS = tuple(
    "".join(map(chr, range(ord(first), ord(last) + 1)))
    for first, last in (("a", "z"), ("а", "я"), ("α", "ω"), ("א", "ת"), ("ء", "ي"))
)


class Vocabulary(Protocol):
    """The words of an index."""

    def pages(self) -> int:
        """The number of pages."""

    def holders(self, word: str) -> int:
        """The number of pages that have this folded word in their text; where it is more than a few, perhaps with some
        that were deleted."""

    def holders_of(self, words: Collection[str]) -> Mapping[str, int]:
        """The `holders` of many words at once; one that no page has may be left out."""

    def beginning_with(self, starts: Collection[str]) -> Mapping[str, int]:
        """For those of `starts` with which a word begins: about how many pages have it."""

    def like(self, word: str, same: int) -> Sequence[tuple[str, int]]:
        """Words that begin with the same so many letters, those with at most two errors among them, and how many pages
        have each."""


class OneByOne(ABC):
    """The rest of a vocabulary that looks up single words in a microsecond or two."""

    @abstractmethod
    def holders(self, word: str) -> int: ...

    @abstractmethod
    def beginning(self, start: str, limit: int) -> Sequence[tuple[str, int]]:
        """The words that begin so, at most `limit`, the most frequent ones, and how many pages have each."""

    def holders_of(self, words: Collection[str]) -> Mapping[str, int]:
        return {word: self.holders(word) for word in words}

    def beginning_with(self, starts: Collection[str]) -> Mapping[str, int]:
        known = ((start, self.beginning(start, 1)) for start in starts)
        return {start: found[0][1] for start, found in known if found}

    def like(self, word: str, same: int) -> Sequence[tuple[str, int]]:
        return self.beginning(word[:same], _MOST_COMPARED)


def corrections(word: str, known: Vocabulary, found: Callable[[str], int]) -> list[str]:
    """The words that `word` may be meant to be, the likeliest first; none if it seems to be right.

    `found` gives the number of pages that a search for a word finds, also in titles and in its other forms.
    """
    if not _ONE_ERROR <= len(word) <= _LONGEST or any(map(str.isdecimal, word)):
        return []
    rare = max(1, known.pages() // _RARE)
    if known.holders(word) > rare or (own := found(word)) > rare:
        return []
    least = max(1, own * _FAR_MORE)
    near = _frequent(known.holders_of(_one_error(word)), least)
    if not near and not own and len(word) >= _TWO_ERRORS:
        started = [each for each, _ in known.like(word, _SAME_START) if errors_between(word, each, 2) <= 2]
        near = _frequent(known.holders_of(started), least)
    return near


def beginnings(start: str, known: Vocabulary) -> list[str]:
    """What `start`, with which no known word begins, may be meant to be."""
    if not _HALF_TYPED <= len(start) <= _LONGEST or any(map(str.isdecimal, start)):
        return []
    return _frequent(known.beginning_with(_one_error(start)), 1)


def _frequent(holders: Mapping[str, int], least: int) -> list[str]:
    ranked = sorted((-count, each) for each, count in holders.items() if count >= least)
    return [each for _, each in ranked[:MOST_CORRECTIONS]]


def _one_error(word: str) -> set[str]:
    """Every word from which this one differs by one error."""
    alphabet = next((each for each in _ALPHABETS if word[0] in each), "")
    found: set[str] = set()
    for at in range(len(word) + 1):
        before, rest = word[:at], word[at:]
        found.update(f"{before}{letter}{rest}" for letter in alphabet)
        if rest:
            found.add(before + rest[1:])
            found.update(f"{before}{letter}{rest[1:]}" for letter in alphabet)
        if len(rest) > 1:
            found.add(f"{before}{rest[1]}{rest[0]}{rest[2:]}")
    found.discard(word)
    return found


def errors_between(one: str, other: str, most: int) -> int:
    """How many letters are too many, missing, wrong or in each other's place; `most` + 1 if there are more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > most and min(before) > most:
            return most + 1
    return min(row[-1], most + 1)
