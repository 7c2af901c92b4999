"""Typing errors are found by laws, not by a list of words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.search.typos import MOST_CORRECTIONS, OneByOne, corrections, errors_between

LETTERS = st.text("abcde", max_size=7)


class Known(OneByOne):
    """A vocabulary of words with the pages that have them."""

    def __init__(self, counts: dict[str, int], pages: int = 100) -> None:
        self._counts = counts
        self._pages = pages
        self.asked = 0

    def pages(self) -> int:
        return self._pages

    def holders(self, word: str) -> int:
        self.asked += 1
        return self._counts.get(word, 0)

    def beginning(self, start: str, limit: int) -> Sequence[tuple[str, int]]:
        found = [each for each in self._counts.items() if each[0].startswith(start)]
        return sorted(found, key=lambda each: -each[1])[:limit]


def by_the_book(one: str, other: str) -> int:
    """The distance as it is defined, the whole table (optimal string alignment)."""
    table = {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(other) + 1)}
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            same = one[i - 1] == other[j - 1]
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (not same))
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(one), len(other)]


@given(LETTERS, LETTERS, st.integers(0, 4))
def test_errors_are_counted_as_they_are_defined_up_to_a_limit(one: str, other: str, most: int) -> None:
    assert errors_between(one, other, most) == min(by_the_book(one, other), most + 1)


@given(st.text("abcde", min_size=4, max_size=7), st.lists(LETTERS.filter(bool), max_size=40))
def test_every_word_with_one_error_is_found(word: str, known: list[str]) -> None:
    counts = {each: 1 + len(each) for each in known if each != word}
    near = sorted((each for each in counts if by_the_book(word, each) == 1), key=lambda each: (-counts[each], each))
    vocabulary = Known(counts)
    assert corrections(word, vocabulary, vocabulary.holders) == near[:MOST_CORRECTIONS]


@given(st.text("abcde", min_size=8, max_size=10), st.text("abcde", min_size=6, max_size=12))
def test_a_long_word_may_have_two_errors_after_its_first_three_letters(word: str, known: str) -> None:
    vocabulary = Known({known: 1})
    found = corrections(word, vocabulary, vocabulary.holders)
    errors = by_the_book(word, known)
    expected = errors == 1 or (errors == 2 and word[:3] == known[:3])
    assert (found == [known]) is expected


@given(st.integers(2, 3), st.integers(1, 200))
def test_a_word_that_is_known_is_corrected_if_the_other_is_far_more_frequent(own: int, other: int) -> None:
    vocabulary = Known({"harbour": other, "harbuor": own}, pages=30_000)
    assert corrections("harbuor", vocabulary, vocabulary.holders) == (["harbour"] if other >= 20 * own else [])
    assert corrections("harbuor", Known({"harbour": 200}, 30_000), lambda word: 4) == [], "a title has it"


@pytest.mark.parametrize("word", ["fer", "rfc9309", "x" * 33, "東京都庁1", ""])
def test_short_words_numbers_and_very_long_ones_are_left_alone(word: str) -> None:
    near = Known(dict.fromkeys((word + "s", word[:-1], word[1:]), 1))
    assert corrections(word, near, near.holders) == []


@given(st.text(min_size=4, max_size=32))
def test_the_number_of_look_ups_has_a_limit(word: str) -> None:
    vocabulary = Known({})
    corrections(word, vocabulary, vocabulary.holders)
    assert vocabulary.asked <= 64 * 33 + 100
