"""Which words does this text consist of, as far as counting and comparing go?

Words are UTF-8 bytes here: without marks, ASCII letters in lower case (those of other alphabets as they stand:
half the cost of counting would go into them, and a page hardly ever changes by their case alone). Everything
runs as whole-text operations, because this is done for every word of every page.
"""

from __future__ import annotations

from operator import add
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from levada.pages.sketch import bottom, word_hashes

__all__ = ["Profile", "profile_of"]

UNSPACED = 16  # characters per word on average: a script that puts no spaces between words
MAX_UNSPACED = 200_000  # characters of such a script that are looked at

_MARKS = bytes(code for code in range(128) if not chr(code).isalnum())
_PLAIN = bytes.maketrans(_MARKS + ascii_uppercase.encode(), b" " * len(_MARKS) + ascii_lowercase.encode())
_WIDE_MARKS = [mark.encode() for mark in "“”‘’«»„…–—·•،؛؟。、，！？：；（）「」『』"]
# By their first bytes: a look for these few shows that most texts have none of the many.
_WIDE_MARKS_BY_START = {
    start: [mark for mark in _WIDE_MARKS if mark.startswith(start)] for start in {mark[:-1] for mark in _WIDE_MARKS}
}


class Profile(NamedTuple):
    words: int  # in running text
    distinct: int
    sketch: bytes
    vocabulary: set[bytes]


def profile_of(text: str) -> Profile:
    """Count and sketch the words of a text, whatever their case and the marks around them."""
    data = text.encode("utf-8", "replace")
    if not text.isascii():
        data = _without_wide_marks(data)
    words = data.translate(_PLAIN).split()
    if words and len(text) > UNSPACED * len(words):
        words = _pairs(text)
    vocabulary = set(words)
    return Profile(len(words), len(vocabulary), bottom(word_hashes(vocabulary), len(vocabulary)), vocabulary)


def _without_wide_marks(data: bytes) -> bytes:
    for start, marks in _WIDE_MARKS_BY_START.items():
        if start in data:
            for mark in marks:
                data = data.replace(mark, b" ")
    return data


def _pairs(text: str) -> list[bytes]:
    """Neighbouring characters stand in for the words of a script without spaces."""
    letters = "".join(text[:MAX_UNSPACED].split())
    return [pair.encode("utf-8", "replace") for pair in map(add, letters, letters[1:] or letters)]
