"""Alike pages have alike sketches."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from levada.pages.change import SKETCH_SIZE, are_alike, similarity, sketch_of
from levada.pages.language import profile_of

WORDS = st.sets(st.text("abcdefgh", min_size=1, max_size=5), max_size=200)


def sketch(words: Iterable[str]) -> bytes:
    return sketch_of({word.encode() for word in words})


@given(WORDS)
def test_a_sketch_depends_only_on_the_set_of_words(words: set[str]) -> None:
    ordered = sorted(words)
    assert sketch(ordered) == sketch(ordered[::-1] + ordered)
    assert len(sketch(words)) == 4 * min(len(words), SKETCH_SIZE)
    assert similarity(sketch(words), sketch(words)) == 1.0


@given(WORDS, WORDS)
def test_similarity_is_symmetric_and_between_0_and_1(one: set[str], two: set[str]) -> None:
    there, back = similarity(sketch(one), sketch(two)), similarity(sketch(two), sketch(one))
    assert there == back
    assert 0.0 <= there <= 1.0


@given(WORDS.filter(lambda words: len(words) <= 16), WORDS.filter(lambda words: len(words) <= 16))
def test_small_pages_are_compared_exactly(one: set[str], two: set[str]) -> None:
    exact = len(one & two) / len(one | two) if one | two else 1.0
    assert abs(similarity(sketch(one), sketch(two)) - exact) < 1e-9


@given(WORDS, WORDS, WORDS, st.floats(0, 1))
def test_pages_are_alike_from_that_similarity_on(both: set[str], one: set[str], two: set[str], least: float) -> None:
    a, b = sketch(both | one), sketch(both | two)
    found = similarity(a, b)
    assert are_alike(a, b, least) == (found >= least)
    assert are_alike(a, b, found)


def test_empty_pages_are_alike_and_unlike_all_others() -> None:
    assert similarity(b"", b"") == 1.0
    assert similarity(b"", sketch(["word"])) == 0.0


def test_the_estimate_is_close_to_the_true_similarity() -> None:
    random = Random(7)
    errors = []
    for share in (0.1, 0.3, 0.5, 0.7, 0.9, 0.95):
        for _ in range(40):
            words = ["".join(random.choices("abcdefghijklmnop", k=random.randint(2, 9))) for _ in range(1200)]
            middle = int(600 * 2 * share / (1 + share))
            one, two = set(words[:600]), set(words[600 - middle : 1200 - middle])
            exact = len(one & two) / len(one | two)
            errors.append(similarity(sketch(one), sketch(two)) - exact)
    assert abs(sum(errors) / len(errors)) < 0.02
    assert (sum(error * error for error in errors) / len(errors)) ** 0.5 < 0.09


def test_case_and_marks_do_not_count() -> None:
    assert profile_of("The bridge, “the” (bridge)!".encode()).sketch == profile_of(b"the bridge").sketch


def test_a_script_without_spaces_is_compared_by_pairs() -> None:
    one = profile_of("東京都は新しい橋を建設すると発表した。工事は来年の春に始まる予定である".encode())
    two = profile_of("東京都は新しい橋を建設すると発表した。工事は来年の秋に始まる予定である".encode())
    assert 0.7 < similarity(one.sketch, two.sketch) < 1.0
    assert one.words > 20
