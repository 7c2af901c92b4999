"""Patterns of users: linear, bounded, and refused in one sentence."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.patterns import check_pattern, compiled, glob_pattern


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", r"missing \)"),
        ("[a", r"missing \]"),
        ("(?=x)a", "look-around"),
        (r"(a)\1", "back references"),
        ("(x{900}){900}", "repetition"),
        ("a" * 1_001, "at most 1000 characters"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_in_one_sentence(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        check_pattern(pattern)
    assert "\n" not in str(refused.value)


def test_patterns_that_take_exponential_time_elsewhere_are_linear() -> None:
    text = b"a" * 200_000 + b"!"
    for pattern in ("(a+)+$", "(a|aa)+$", "(.*a){12}$"):
        assert compiled(pattern).search(text) is None


def test_lines_and_letters_beyond_ascii() -> None:
    assert compiled("^\\d+ görüntüleme$").sub(b"", "bir\n12 görüntüleme\niki".encode()) == b"bir\n\niki"
    assert compiled("İSTANBUL", ignore_case=True).search("İstanbul".encode()) is not None


letters = st.text(st.sampled_from("ab.é+(["), max_size=6)


@given(letters, letters)
def test_a_glob_without_slashes_is_the_globs_of_a_shell(before: str, after: str) -> None:
    for glob in (f"{before}*{after}".replace("[", "x"), f"{before}?{after}".replace("[", "x")):
        for name in (before + after, before + "a" + after, before + "ab" + after, after + before):
            found = compiled(glob_pattern(glob)).fullmatch(name.replace("[", "x").encode())
            assert (found is not None) is fnmatchcase(name.replace("[", "x"), glob)


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("/news/*", "/news/one", True),
        ("/news/*", "/news/one/two", False),
        ("/news/**", "/news/one/two", True),
        ("/**/print", "/a/b/print", True),
        ("*.pdf", "a.pdf", True),
        ("*.pdf", "aXpdf", False),
        ("/?", "/é", True),
    ],
)
def test_a_star_stays_in_its_folder_and_two_do_not(glob: str, path: str, matches: bool) -> None:
    assert (compiled(glob_pattern(glob)).fullmatch(path.encode()) is not None) is matches
