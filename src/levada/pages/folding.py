"""Case and accent folding for search.

`fold` turns a text into plain words between spaces: no case, no accents, no punctuation. Turkish has two letters i
(İ/i and I/ı) and most keyboards have one, so all four fold to "i": İstanbul, ISTANBUL, istanbul and ıstanbul are
one word. Scripts without spaces between words are split into characters; search finds a run of them as a phrase.
`lowercase` keeps the letters of a language apart, as a stemmer needs them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal, NamedTuple

_ASCII_ONLY = bytes(range(128))


class WideReplacement:
    """Replaces characters outside ASCII in UTF-8, each by its own bytes."""

    def __init__(self, replacements: Mapping[str, bytes]) -> None:
        pairs = [(char.encode(), new) for char, new in replacements.items()]
        starts = {char[:-1] for char, _ in pairs}
        self._by_start = {start: [pair for pair in pairs if pair[0].startswith(start)] for start in starts}
        self._first_bytes = sorted({char[:1] for char, _ in pairs})

    def __call__(self, text: bytes) -> bytes:
        if not any(map(text.__contains__, self._first_bytes)):
            return text
        # Most of a text is ASCII: the rest alone is searched faster.
        rest = text.translate(None, _ASCII_ONLY)
        for start, pairs in self._by_start.items():
            if start in rest:
                for char, new in pairs:
                    if char in rest:
                        text = text.replace(char, new)
        return text


LONGEST_WORD = 127  # bytes of UTF-8; longer ones are neither indexed nor found
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
_ASCII_LETTERS = "".join(_ASCII.values()).encode().ljust(256)
# Accents and vowel points that people leave out when they type. Marks that are letters (Indic vowels, Japanese
# voicing) stay.
_LEFT_OUT = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
    "\ufe00-\ufe0f\ufe20-\ufe2f\u00ad\u200b-\u200d\u2060\ufeff]+"
)
_NO_SPACES_BETWEEN_WORDS = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff])"
)
# Letters whose stroke or shape is not a mark that normalisation removes.
_WHOLE_LETTERS = str.maketrans("ıøłđðħŧŋ", "iolddhtn") | str.maketrans({"þ": "th", "æ": "ae", "œ": "oe"})
# Encodings of one byte per letter: one table folds a whole text. None of them has combining accents.
_ALPHABETS = ("latin-1", "cp1254", "cp1250", "cp1251", "cp1253", "cp1257")
_PIECE = 256  # characters that are normalised at once
_MOST_REMEMBERED = 1 << 16  # chunks of text (between two spaces)
_LONGEST_REMEMBERED = 40  # characters: a hostile page must not fill the memory with long ones
TURKISH = frozenset({"tr", "az"})
_TURKISH_CAPITALS = str.maketrans({"İ": "i", "I": "ı"})


class _Table(NamedTuple):
    """How the letters of a one-byte encoding fold."""

    letters: bytes  # by the letter's byte
    others: tuple[tuple[bytes, bytes], ...]  # those that fold to several letters, or to none
    foreign: tuple[bytes, ...]  # those that fold to a letter that the encoding does not have


def fold(text: str) -> str:
    """The words of `text`, without case, accents and punctuation, with spaces between them."""
    folded = _fold_by_table(text)
    return " ".join(map(_chunks.__getitem__, text.split())) if folded is None else folded


def words(text: str) -> list[str]:
    return fold(text).split()


def words_of_title(text: str) -> list[str]:
    """`words`, sooner for a short text: most of its words were folded before."""
    return " ".join(map(_chunks.__getitem__, text.split())).split()


def is_indexed(word: str) -> bool:
    return len(word) <= LONGEST_WORD and len(word.encode()) <= LONGEST_WORD


def lowercase(text: str, language: str) -> str:
    """Lower case as written in `language`, composed: "ISI" is "ısı" in Turkish and "isi" elsewhere."""
    text = _normalized("NFC", text)
    if language in TURKISH:
        return text.translate(_TURKISH_CAPITALS).lower()
    return text.replace("İ", "i").lower()


def _fold_by_table(text: str) -> str | None:
    """Fold at a fifth of the cost, if one encoding with a table has all letters of the text."""
    if text.isascii():
        return text.encode().translate(_ASCII_LETTERS).decode()
    for alphabet in _ALPHABETS:
        try:
            data = text.encode(alphabet)
        except UnicodeEncodeError:
            continue
        table = _table(alphabet)
        if any(letter in data for letter in table.foreign):
            return None
        for letter, folded in table.others:
            if letter in data:
                data = data.replace(letter, folded)
        folded = data.translate(table.letters)
        return folded.decode("ascii" if folded.isascii() else alphabet)  # folded Latin text is mostly ASCII
    return None


@cache
def _table(alphabet: str) -> _Table:
    letters, others, foreign = bytearray(range(256)), [], []
    for code in range(256):
        byte = bytes((code,))
        try:
            folded = _fold_by_runs(byte.decode(alphabet)).encode(alphabet)
        except UnicodeDecodeError:  # no letter has this byte
            continue
        except UnicodeEncodeError:
            foreign.append(byte)
            continue
        if len(folded) == 1:
            letters[code] = folded[0]
        else:
            others.append((byte, folded))
    return _Table(bytes(letters), tuple(others), tuple(foreign))


def _fold_by_runs(text: str) -> str:
    if not text.isascii():
        text = _NOT_ASCII.sub(_fold_run, text)
    # A run may fold to letters outside ASCII; the table leaves those alone.
    return text.translate(_ASCII)


def _fold_run(run: re.Match[str]) -> str:
    bare = _LEFT_OUT.sub("", _normalized("NFKD", run[0])).casefold().translate(_WHOLE_LETTERS)
    # Case folding can bring marks and compositions back (U+0345), so remove them once more.
    bare = _LEFT_OUT.sub("", _normalized("NFKD", bare))
    kept = "".join(letter if unicodedata.category(letter)[0] in "LNM" else " " for letter in bare)
    return _NO_SPACES_BETWEEN_WORDS.sub(r" \1 ", _normalized("NFC", kept))


def _normalized(form: Literal["NFC", "NFKD"], text: str) -> str:
    """The text in this form, in linear time.

    Unicode sorts a run of combining marks in quadratic time: a megabyte of them took minutes. So a long text is taken
    in pieces that begin with a letter. A piece of marks alone is cut anywhere, which no text of a language has.
    """
    if len(text) <= _PIECE:
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, piece) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _PIECE:
        cut = next((at for at in range(start + _PIECE, start, -1) if _begins_anew(text[at])), start + _PIECE)
        yield text[start:cut]
        start = cut
    yield text[start:]


def _begins_anew(char: str) -> bool:
    """Whether normalisation never joins this character with what stands before it."""
    return unicodedata.category(char)[0] in "LNZ" and not "\u1100" <= char <= "\u11ff" and char not in "\uff9e\uff9f"


class _Remembered(dict[str, str]):
    """A bounded cache of folded chunks of text: pages repeat their words."""

    def __missing__(self, chunk: str) -> str:
        folded = _fold_by_runs(chunk)
        if len(chunk) <= _LONGEST_REMEMBERED:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[chunk] = folded
        return folded


_chunks = _Remembered()
