"""A snippet shows the words of the query."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.search_records import Pieces
from levada.search.query import parse_query
from levada.search.snippets import TitleMarker, excerpt
from levada.search.terms import Words

FILLER = "Lorem ipsum dolor sit amet. " * 40


def never(typed: str, found: str) -> bool:
    return False


def snippet(
    text: str, words: tuple[Words, ...], is_form: Callable[[str, str], bool] = never, size: int = 200
) -> Pieces:
    """The pieces, without the page that they are from."""
    found = excerpt(text, words, is_form, size)
    assert (found.page > 0) is ("\f" in text)
    if found.page:
        assert found.pieces[0] == (f"p. {found.page} · ", False)
    return found.pieces[1:] if found.page else found.pieces


def marked(text: str, query: str) -> list[str]:
    return [piece for piece, asked in snippet(text, asked_words(query)) if asked]


def asked_words(query: str) -> tuple[Words, ...]:
    return parse_query(query, 0.0).words()


def plain(pieces: Pieces) -> str:
    return "".join(piece for piece, _ in pieces)


@pytest.mark.parametrize(
    ("text", "query", "marks"),
    [
        ("Dün İstanbul'da, ISTANBUL ve ıstanbul", "istanbul", ["İstanbul", "ISTANBUL", "ıstanbul"]),
        ("DIYARBAKIR yolu", "Diyarbakır", ["DIYARBAKIR"]),
        ("un cafe\u0301 noir", "CAFÉ", ["cafe\u0301"]),
        ("die Straße", "strasse", ["Straße"]),
        ("sea-bus, sea bus, bus sea", '"sea bus"', ["sea-bus", "sea bus"]),
        ("我住在东京都", "东京", ["东京"]),
        ("대한민국 만세", "대한민국", ["대한민국"]),
        ("हिन्दी भाषा", "भाषा", ["भाषा"]),
        ("cat concatenate cats", "cat", ["cat"]),
        ("Der Fußball rollt", "Fußball", ["Fußball"]),
        ("Der FUSSBALL rollt", "Fußball", ["FUSSBALL"]),
        ("das weiße Haus", '"weisse haus"', ["weiße Haus"]),
        ("le cœur, son œuvre", "cœur oeuvre", ["cœur", "œuvre"]),
        ("at være, er það ekki", "være það", ["være", "það"]),
        ("قال أحمد للناس", "احمد", ["أحمد"]),
        ("قال احمد للناس", "أحمد", ["احمد"]),
        ("قال مُحَمَّد للناس", "محمد", ["مُحَمَّد"]),
        ("این می\u200cشود خوب", "می\u200cشود", ["می\u200cشود"]),
        ("אמר שָׁלוֹם לכל", "שלום", ["שָׁלוֹם"]),
        ("ferry and pier", "pier ferry", ["ferry", "pier"]),
        ("Covid-19 in 2024, 12 m²", "covid-19 2024 m2", ["Covid-19", "2024", "m²"]),
    ],
)
def test_words_are_marked_whatever_their_case_and_accents(text: str, query: str, marks: list[str]) -> None:
    assert marked(text, query) == marks


def test_other_forms_are_marked_if_the_index_knows_them() -> None:
    def drops_s(typed: str, found: str) -> bool:
        return typed.rstrip("s") == found.rstrip("s")

    pieces = snippet("two elections", asked_words("election"), drops_s)
    assert pieces == (("two ", False), ("elections", True))
    assert snippet("two elections", asked_words('"election"'), drops_s) == (("two elections", False),)


def test_the_window_with_the_most_different_words_wins() -> None:
    text = f"ferry ferry ferry {FILLER} the ferry leaves the pier {FILLER}"
    pieces = snippet(text, asked_words("ferry pier"))
    assert plain(pieces).startswith("… ")
    assert plain(pieces).endswith(" …")
    assert [piece for piece, asked in pieces if asked] == ["ferry", "pier"]


SENTENCES = (
    "The old town has a long history that nobody reads to its end. The ferry leaves the pier at noon every day. "
    "It takes an hour to the island and an hour back. Tickets are sold on board, and bicycles travel for nothing. "
) * 3


@pytest.mark.parametrize("query", ["ferry pier", "noon", "island hour", "bicycles tickets"])
def test_a_snippet_begins_and_ends_with_a_sentence_where_one_fits(query: str) -> None:
    shown = plain(snippet(SENTENCES, asked_words(query))).removeprefix("… ").removesuffix(" …")
    assert shown[0].isupper()
    assert shown.endswith(".")
    assert set(query.split()) <= set(re.findall(r"\w+", shown.lower()))


@pytest.mark.parametrize("query", ["ferry pier", '"the ferry" noon', "history nobody bicycles"])
def test_no_window_of_the_text_has_more_different_words(query: str) -> None:
    asked = asked_words(query)

    def different(text: str) -> int:
        return sum(bool(excerpt(text, [each], size=10_000).pieces[1:]) for each in asked)

    shown = plain(snippet(SENTENCES, asked, size=120))
    assert different(shown) >= max(different(SENTENCES[at : at + 80]) for at in range(0, len(SENTENCES) - 80, 5))


@given(
    st.text(alphabet="abcıİéß -'_—", max_size=60),
    st.sampled_from(["ab", "i c", '"a b"', "ab*", "ss", "é OR abc", '"a b"~2', "x"]),
)
def test_a_title_is_marked_as_a_text_is(title: str, query: str) -> None:
    asked = asked_words(query)
    pieces = TitleMarker(asked).marked(title, never)
    assert plain(pieces) == re.sub(r"\s+", " ", title)
    text = excerpt(title, asked, never, size=1_000).pieces
    assert {piece for piece, mark in pieces if mark} == {piece for piece, mark in text if mark}


@given(
    st.text(alphabet="abisSI -'_.—“©中", max_size=60),
    st.sampled_from(["ab", "i b", '"a b"', "ab*", "ss", "basis", "ass OR bb", '"a b"~2', "is"]),
)
def test_plain_letters_are_found_alike_in_a_text_with_and_without_accents(text: str, query: str) -> None:
    assert marked(text, query) == marked(f"{text} é", query)


def test_without_a_match_the_text_begins_at_its_beginning() -> None:
    pieces = snippet(FILLER, asked_words("ferry"))
    assert plain(pieces).startswith("Lorem ipsum")
    assert all(not asked for _, asked in pieces)


def test_line_breaks_become_spaces() -> None:
    assert snippet("a\n\n  b", asked_words("x")) == (("a b", False),)


def test_an_empty_text_has_no_pieces() -> None:
    assert snippet("", asked_words("x")) == ()


@pytest.mark.parametrize(("query", "page"), [("ferry", 1), ("bridge", 3), ("tower", 4), ("nowhere", 1)])
def test_a_snippet_of_a_document_with_pages_names_its_page(query: str, page: int) -> None:
    text = f"The ferry leaves.{FILLER}\f\f{FILLER} The bridge is closed.\fThe tower is open."
    found = excerpt(text, asked_words(query))
    assert found.page == page
    assert plain(found.pieces).startswith(f"p. {page} · ")


def test_marks_upon_marks_do_not_hold_up_the_search() -> None:
    text = ("a" + "\u0301" * 30) * 2_000
    assert snippet(text, asked_words('"a a a a a a a a b"'))


@given(st.text(max_size=600), st.sampled_from(["a", "İ", '"a b"', "東", "0 1", "é OR ß"]))
def test_pieces_are_a_stretch_of_the_text_and_no_longer_than_asked(text: str, query: str) -> None:
    pieces = snippet(text, asked_words(query), size=100)
    shown = plain(pieces).removeprefix("… ").removesuffix(" …")
    assert shown in re.sub(r"\s+", " ", text) or "…" in text
    assert len(plain(pieces)) <= 100 + len("…  …")


@given(st.text(alphabet="abcıİIiöÖşŞ .'", max_size=300), st.sampled_from(["i", "ab", "OSI"]))
def test_every_mark_is_the_word_asked_for(text: str, query: str) -> None:
    (each,) = asked_words(query)
    for piece in marked(text, query):
        assert (
            unicodedata.normalize("NFKD", piece.replace("ı", "i")).encode("ascii", "ignore").decode().lower()
            == (each.folded[0])
        )
