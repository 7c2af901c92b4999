"""Which words does this text consist of, as far as counting and comparing go?

Words are UTF-8 bytes here: lower case, without marks. Everything runs as whole-text operations, because this is
done for every word of every page.
"""

from __future__ import annotations

from operator import add
from typing import NamedTuple

from levada.pages.sketch import bottom, word_hashes

__all__ = ["Profile", "profile_of"]

UNSPACED = 16  # characters per word on average: a script that puts no spaces between words
MAX_UNSPACED = 200_000  # characters of such a script that are looked at

_MARKS = bytes(code for code in range(128) if not chr(code).isalnum())
_TO_SPACE = bytes.maketrans(_MARKS, b" " * len(_MARKS))
_WIDE_MARKS = "“”‘’«»„…–—·•،؛؟。、，！？：；（）「」『』"


class Profile(NamedTuple):
    words: int  # in running text
    distinct: int
    sketch: bytes
    vocabulary: set[bytes]


def profile_of(text: str) -> Profile:
    """Count and sketch the words of a text, whatever their case and the marks around them."""
    text = text.lower()
    if not text.isascii():
        for mark in _WIDE_MARKS:
            if mark in text:
                text = text.replace(mark, " ")
    words = text.encode("utf-8", "replace").translate(_TO_SPACE).split()
    if words and len(text) > UNSPACED * len(words):
        words = _pairs(text)
    vocabulary = set(words)
    return Profile(len(words), len(vocabulary), bottom(word_hashes(vocabulary), len(vocabulary)), vocabulary)


def _pairs(text: str) -> list[bytes]:
    """Neighbouring characters stand in for the words of a script without spaces."""
    letters = "".join(text[:MAX_UNSPACED].split())
    return [pair.encode("utf-8", "replace") for pair in map(add, letters, letters[1:] or letters)]
