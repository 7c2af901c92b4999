"""Which words does this text consist of, as far as counting and comparing go?

Words are UTF-8 bytes here: without marks, ASCII letters in lower case (those of other alphabets as they stand:
half the cost of counting would go into them, and a page hardly ever changes by their case alone). Everything
runs as whole-text operations, because this is done for every word of every page.
"""

from __future__ import annotations

from operator import add
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from levada.pages.sketch import sketch_of
from levada.pages.wide import WideReplacement

__all__ = ["NO_WORDS", "Profile", "profile_of"]

UNSPACED = 16  # characters per word on average: a script that puts no spaces between words
MAX_UNSPACED = 200_000  # characters of such a script that are looked at

_MARKS = bytes(code for code in range(128) if not chr(code).isalnum())
_PLAIN = bytes.maketrans(_MARKS + ascii_uppercase.encode(), b" " * len(_MARKS) + ascii_lowercase.encode())
_without_wide_marks = WideReplacement(dict.fromkeys("“”‘’«»„…–—·•،؛؟。、，！？：；（）「」『』", b" "))


class Profile(NamedTuple):
    words: int  # in running text
    distinct: int
    sketch: bytes
    vocabulary: set[bytes] | frozenset[bytes]


NO_WORDS = Profile(0, 0, b"", frozenset())


def profile_of(text: bytes) -> Profile:
    """Count and sketch the words of a text in UTF-8, whatever their case and the marks around them."""
    plain = text if text.isascii() else _without_wide_marks(text)
    words = plain.translate(_PLAIN).split()
    if words and len(text) > UNSPACED * len(words):
        words = _pairs_if_unspaced(text.decode("utf-8", "replace"), words)
    vocabulary = set(words)
    return Profile(len(words), len(vocabulary), sketch_of(vocabulary), vocabulary)


def _pairs_if_unspaced(text: str, words: list[bytes]) -> list[bytes]:
    """Neighbouring characters stand in for the words of a script without spaces."""
    if len(text) <= UNSPACED * len(words):
        return words
    letters = "".join(text[:MAX_UNSPACED].split())
    return [pair.encode("utf-8", "replace") for pair in map(add, letters, letters[1:] or letters)]
