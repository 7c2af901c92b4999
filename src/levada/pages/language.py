"""Words of a page, and language detection from its declaration and its words.

Words are UTF-8 bytes without punctuation, with ASCII letters in lower case. Other letters keep their case: folding
them would double the cost, and a page hardly ever changes by their case alone. All operations work on the whole
text, because every word of every page passes here.

A language is known by a few dozen of its most frequent short words. A page of a hundred words has many of its own
language and hardly any of another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Set
from itertools import filterfalse
from operator import add
from pkgutil import get_data
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple
from zlib import crc32

from levada.pages.change import sketch_of
from levada.pages.folding import WideReplacement

UNSPACED = 16  # characters per word on average: a script without spaces between words
MAX_UNSPACED = 200_000  # characters of such a text that are read
_MARKS = bytes(code for code in range(128) if not chr(code).isalnum())
_PLAIN = bytes.maketrans(_MARKS + ascii_uppercase.encode(), b" " * len(_MARKS) + ascii_lowercase.encode())
# ASCII, Arabic-Indic, Persian and Devanagari digits, in UTF-8.
_HAS_DIGIT = re.compile(rb"[0-9]|\xd9[\xa0-\xa9]|\xdb[\xb0-\xb9]|\xe0\xa5[\xa6-\xaf]").search
_without_wide_marks = WideReplacement(dict.fromkeys("“”‘’«»„…–—·•،؛؟。、，！？：；（）「」『』", b" "))


class Profile(NamedTuple):
    words: int  # in running text
    distinct: int
    sketch: bytes
    vocabulary: set[bytes] | frozenset[bytes]


NO_WORDS = Profile(0, 0, b"", frozenset())


def profile_of(text: bytes) -> Profile:
    """Count and sketch the words of a text in UTF-8."""
    plain = text if text.isascii() else _without_wide_marks(text)
    words = plain.translate(_PLAIN).split()
    if words and len(text) > UNSPACED * len(words):
        words = _pairs_if_unspaced(text.decode("utf-8", "replace"), words)
    vocabulary = set(words)
    return Profile(len(words), len(vocabulary), sketch_of(vocabulary), vocabulary)


def gist_of(text: bytes) -> int:
    """A checksum of what stands in a text between its white space, without what has a digit in it, in any order.

    So it is the same for an offer at another price and an empty month of another year. What is not a word counts:
    the manual of one operator may differ from that of another by nothing else.
    """
    words = set(text.split())
    numbered = filter(_HAS_DIGIT, filterfalse(bytes.isalpha, words))  # most are plain letters, and soon told
    return (sum(map(crc32, words)) - sum(map(crc32, numbered))) & 0xFFFF_FFFF


def _pairs_if_unspaced(text: str, words: list[bytes]) -> list[bytes]:
    """Pairs of neighbouring characters, as the words of a script without spaces."""
    if len(text) <= UNSPACED * len(words):
        return words
    letters = "".join(text[:MAX_UNSPACED].split())
    return [pair.encode("utf-8", "replace") for pair in map(add, letters, letters[1:] or letters)]


PLAIN = 12  # stop words that confirm the declared language
SURE = 4  # stop words that a page without a declaration needs
LEAD = 1.3  # times as many as the second language has
OWN = 2  # words that the second language lacks, and three times as many as it has of its own
CONTRADICTION = 8  # stop words of another language that overrule the declaration
_CODE = re.compile(r"([A-Za-z]{2})(?:[-_][A-Za-z0-9]+)*$")
# A line of the file is a language and its stop words. Not by importlib.resources: that takes a parser child longer.
_LINES = map(bytes.split, (get_data("levada.pages", "data/stop_words.txt") or b"").splitlines())
LANGUAGES = {code.decode(): frozenset(words) for code, *words in _LINES}
_LANGUAGES_OF: dict[bytes, list[str]] = {}
for _code, _stop in LANGUAGES.items():
    for _word in _stop:
        _LANGUAGES_OF.setdefault(_word, []).append(_code)
_ALL_WORDS = frozenset(_LANGUAGES_OF)


def language_of(declared: str, words: Set[bytes]) -> str:
    """ISO 639-1 code from the `lang` attribute and the distinct words of the page; "" if unsure."""
    found = _CODE.match(declared[:35].strip())
    claim = found[1].lower() if found else ""
    own = len(LANGUAGES[claim] & words) if claim in LANGUAGES else 0
    if own >= PLAIN:
        return claim
    (best, code), (second, other) = _two_best(words)
    clear = best >= SURE and (best >= LEAD * second or _has_more_own(code, other, words))
    if not claim:
        return code if clear else ""
    # A declared language without a word list cannot be contradicted.
    return code if clear and best >= max(CONTRADICTION, 3 * own) and claim in LANGUAGES else claim


def _has_more_own(code: str, other: str, words: Set[bytes]) -> bool:
    """Compare by the words that only one of two languages has: Danish and Norwegian share most of theirs."""
    own, others = LANGUAGES[code] - LANGUAGES[other], LANGUAGES[other] - LANGUAGES[code]
    return len(own & words) >= max(OWN, 3 * len(others & words))


def _two_best(words: Set[bytes]) -> list[tuple[int, str]]:
    """The two languages with the most stop words on the page, and how many."""
    met = Counter(code for word in _ALL_WORDS & words for code in _LANGUAGES_OF[word])
    return sorted(((n, code) for code, n in (*met.items(), ("", 0), ("", 0))), reverse=True)[:2]
