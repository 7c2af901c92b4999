"""Synonyms are read from a file, and what is wrong in it is named by its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import BadQuery, SettingsError
from levada.core.search_records import Query
from levada.search.query import parse_page_of_hits, parse_query
from levada.search.synonyms import read_synonyms, with_synonyms

FILE = """# ours
ferry, Vapur, sea bus

nyc => New York , big apple  # the city
İskele, pier
ferry, boat
"""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "synonyms.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_words_of_a_line_stand_for_each_other_and_arrows_go_one_way(tmp_path: Path) -> None:
    assert read_synonyms(written(tmp_path, FILE)) == {
        "ferry": ("Vapur", "sea bus", "boat"),
        "vapur": ("ferry", "sea bus"),
        "sea bus": ("ferry", "Vapur"),
        "nyc": ("New York", "big apple"),
        "iskele": ("pier",),
        "pier": ("İskele",),
        "boat": ("ferry",),
    }
    assert read_synonyms(written(tmp_path, "\ufeff# nothing\r\n\r\n")) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ferry, vapur\nferry", "line 2: a line needs two words at least"),
        ("\n\nferry,, vapur", "line 3: there is no word between two commas"),
        ("a => b => c", "line 1: there are two arrows"),
        ("=> b", "line 1: there is no word between two commas, or beside an arrow"),
        ("a =>", "line 1: there is no word between two commas, or beside an arrow"),
        ("one two three four five, six", "line 1: 'one two three four five' has 5 words; 4 are the limit"),
        (", ".join(f"w{n}" for n in range(40)), "line 1: there are 40 words; 32 are the limit"),
        (b"ok, fine\n\xff\xfe, x", "line 2: this is not UTF-8"),
        ("a, b\n" * 20_001, "is too long: 20,000 lines, or 4 MB, are the limit"),
        ("a" * 4_000_001, "is too long"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_with_its_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        read_synonyms(written(tmp_path, text))
    assert str(error.value).startswith("search.synonyms: ")
    assert said in str(error.value)


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot read .*none\.txt: No such file"):
        read_synonyms(tmp_path / "none.txt")
    with pytest.raises(SettingsError, match="cannot read"):
        read_synonyms(tmp_path)


@given(st.lists(st.text("ab,=> #\n", max_size=12)).map("".join))
def test_any_file_is_read_or_refused_by_its_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = written(tmp_path_factory.mktemp("any"), text)
    try:
        found = read_synonyms(path)
    except SettingsError as error:
        found, said = {}, str(error)
    else:
        said = ", line "
    assert ", line " in said
    assert all(others and folded not in others for folded, others in found.items())


def test_only_plain_words_have_synonyms() -> None:
    synonyms = {"a": ("b",), "c d": ("e",)}
    for typed in ('"a"', "ab*", "title:a", "-a", "x"):
        ask = parse_query(typed, 0.0)
        assert with_synonyms(ask, synonyms) == ask, typed
    for typed in ("a", "a AND x", "c d", "x OR a", "(a x) OR y"):
        ask = parse_query(typed, 0.0)
        assert with_synonyms(ask, synonyms) != ask, typed


@given(st.lists(st.sampled_from(["a", "b", "c", "d", '"a b"', "OR", "AND", "(", ")", "-"]), max_size=8).map(" ".join))
def test_a_query_with_synonyms_keeps_the_words_that_were_typed(typed: str) -> None:
    try:
        plain = parse_query(typed, 0.0)
    except BadQuery:
        return
    synonyms = {"a": ("b", "x"), "b": ("a",), "c d": ("y z",)}
    more = parse_page_of_hits(Query(typed, synonyms=synonyms, now=0.0))
    assert {each.folded for each in plain.words()} <= {each.folded for each in more.words()}
    assert more.must_not == plain.must_not
