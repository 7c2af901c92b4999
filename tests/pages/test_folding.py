"""Letters that people take for the same fold to the same."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.pages import folding
from levada.pages.folding import LONGEST_WORD, fold, is_indexed, lowercase, words, words_of_title


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("İstanbul ISTANBUL istanbul ıstanbul I\u0307stanbul", ["istanbul"] * 5),
        ("Diyarbakır DIYARBAKIR diyarbakir DİYARBAKIR", ["diyarbakir"] * 4),
        ("café cafe\u0301 CAFÉ Cafe", ["cafe"] * 4),
        ("Straße STRASSE STRAẞE", ["strasse"] * 3),
        ("Łódź ŁÓDŹ smørrebrød Æsir œuvre", ["lodz", "lodz", "smorrebrod", "aesir", "oeuvre"]),
        ("Αθήνα ΑΘΗΝΑ", ["αθηνα"] * 2),
        ("ёлка ЕЛКА", ["елка"] * 2),
        ("مُحَمَّد محمد", ["محمد"] * 2),
        ("ｆｕｌｌ ﬁn x²", ["full", "fin", "x2"]),
        ("soft\u00adhyphen zero\u200bwidth", ["softhyphen", "zerowidth"]),
        ("東京タワー tower", ["東", "京", "タ", "ワ", "ー", "tower"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("한국어", ["한국어"]),
        ("İstanbul'da e-mail, don’t_stop", ["istanbul", "da", "e", "mail", "don", "t", "stop"]),
        ("\ud800lone", ["lone"]),
        (" \t\n-- ", []),
        ("", []),
    ],
)
def test_spellings_of_a_word_fold_alike(written: str, folded: list[str]) -> None:
    assert words(written) == folded


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert words(fold(text)) == words(text)


@given(st.text())
def test_composed_and_decomposed_text_fold_alike(text: str) -> None:
    assert words(unicodedata.normalize("NFD", text)) == words(unicodedata.normalize("NFC", text))


ALPHABETS = ["latin-1", "cp1254", "cp1250", "cp1251", "cp1253", "cp1257", "ascii"]


@given(st.sampled_from(ALPHABETS).flatmap(lambda alphabet: st.text(st.characters(codec=alphabet))))
def test_a_text_of_one_alphabet_folds_letter_by_letter(text: str) -> None:
    assert words(text) == words("".join(map(fold, text)))


@given(st.text(alphabet=st.one_of(st.sampled_from("aIİıéµшЖß’—\xa0\u0301 \n.-東"), st.characters())))
def test_a_title_has_the_words_that_it_has_as_a_text(text: str) -> None:
    assert words_of_title(text) == words(text)


@given(st.text(alphabet=st.one_of(st.sampled_from("aIİıéµшЖß’—\xa0\u0301 \n.-東"), st.characters())))
def test_a_page_folds_chunk_by_chunk_as_in_one_piece(text: str) -> None:
    assert words(text) == [word for chunk in text.split() for word in words(chunk)]


@given(st.text(alphabet="abcçdefgğhıijklmnoöprsştuüvyzâîû ABCÇDEFGĞHIİJKLMNOÖPRSŞTUÜVYZ'.-"))
def test_turkish_in_capitals_or_small_letters_folds_alike_by_either_rule(text: str) -> None:
    assert words(text) == words(text.lower()) == words(text.upper()) == words(lowercase(text, "tr"))


@given(st.text())
def test_a_word_is_letters_digits_and_marks_only(text: str) -> None:
    assert all(unicodedata.category(letter)[0] in "LNM" for word in words(text) for letter in word)


def test_lower_case_follows_the_language() -> None:
    assert lowercase("ISI İKİ", "tr") == "ısı iki"
    assert lowercase("ISI İKİ", "en") == "isi iki"
    assert lowercase("E\u0301TE\u0301", "fr") == "été"


def test_what_is_too_long_to_be_a_word_is_none() -> None:
    assert is_indexed("x" * LONGEST_WORD)
    assert not is_indexed("x" * (LONGEST_WORD + 1))
    assert not is_indexed("東" * LONGEST_WORD)


LONG = st.text(st.characters(categories=["L", "M", "N", "Z"]), min_size=200, max_size=700)
MARKS = st.text("\u0301\u0323\u093c\u094d\u3099\uff9e\u0345", max_size=40)


@given(LONG, MARKS, LONG, st.sampled_from(["NFC", "NFKD"]))
def test_a_long_text_is_normalised_as_one_of_a_piece(before: str, marks: str, after: str, form: str) -> None:
    text = before + marks + "x" + after
    assert folding._normalized(form, text) == unicodedata.normalize(form, text)  # type: ignore[arg-type]


@given(st.lists(st.sampled_from("\u1112\u1161\u11ab한가각"), min_size=300, max_size=600))
def test_korean_in_parts_is_put_together_across_pieces(parts: list[str]) -> None:
    text = "".join(parts)
    for form in ("NFC", "NFKD"):
        assert folding._normalized(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("marks", ["\u094d\u093c", "\u0301\u0323", "\uff9e\u094d", "x\u094d\u093c\u3099"])
def test_no_piece_that_is_normalised_at_once_is_long(marks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting marks is quadratic, so the longest piece bounds the work for each character."""
    longest = 0
    plain = unicodedata.normalize

    def counted(form: str, text: str) -> str:
        nonlocal longest
        longest = max(longest, len(text))
        return plain(form, text)  # type: ignore[arg-type]

    monkeypatch.setattr("levada.pages.folding.unicodedata.normalize", counted)
    for text in (marks * 50_000, "a" + marks * 50_000):
        fold(text)
        lowercase(text, "tr")
    assert longest <= folding._PIECE
