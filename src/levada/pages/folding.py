"""Which letters count as the same when people search?

`fold` writes a text as plain words between spaces: no case, no accents, no punctuation. Turkish has two
letters i (İ/i and I/ı) and most keyboards in the world one, so all four fold to "i": İstanbul, ISTANBUL, istanbul
and ıstanbul are one word. Scripts that do not put spaces between words are split into characters; a run of them
is then found as a phrase. `lowercase` keeps the letters apart by language, as a stemmer needs them.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

__all__ = ["LONGEST_WORD", "fold", "is_indexed", "lowercase", "words"]

LONGEST_WORD = 127  # bytes of UTF-8; what is longer is no word, and is neither indexed nor found

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}

# Accents and vowel points that readers leave out when they type. Signs that are letters of their own (Indic
# vowels, Japanese voicing) are marks too, but stay.
_LEFT_OUT = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
    "\ufe00-\ufe0f\ufe20-\ufe2f\u00ad\u200b-\u200d\u2060\ufeff]+"
)
_NO_SPACES_BETWEEN_WORDS = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff])"
)
# Letters whose stroke or shape is not a mark that normalisation could take off.
_WHOLE_LETTERS = str.maketrans(
    {
        "ı": "i",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "æ": "ae",
        "œ": "oe",
        "ħ": "h",
        "ŧ": "t",
        "ŋ": "n",
    }
)
_LONGEST_REMEMBERED = 40
_TURKISH = frozenset({"tr", "az"})
_TURKISH_CAPITALS = str.maketrans({"İ": "i", "I": "ı"})


def fold(text: str) -> str:
    """The words of `text`, without case, accents and punctuation, with spaces between them."""
    if not text.isascii():
        text = _NOT_ASCII.sub(_fold_match, text)
    # What a run folded to may be letters outside ASCII, so the table leaves those alone.
    return text.translate(_ASCII)


def words(text: str) -> list[str]:
    return fold(text).split()


def is_indexed(word: str) -> bool:
    return len(word) <= LONGEST_WORD and len(word.encode()) <= LONGEST_WORD


def lowercase(text: str, language: str) -> str:
    """Lower case as written in `language`, composed: "ISI" is "ısı" in Turkish and "isi" elsewhere."""
    text = unicodedata.normalize("NFC", text)
    if language in _TURKISH:
        return text.translate(_TURKISH_CAPITALS).lower()
    return text.replace("İ", "i").lower()


def _fold_match(run: re.Match[str]) -> str:
    # Only short runs are remembered: a hostile page must not fill the memory with long ones.
    return _fold_known(run[0]) if len(run[0]) <= _LONGEST_REMEMBERED else _fold_run(run[0])


@lru_cache(maxsize=1 << 16)
def _fold_known(run: str) -> str:
    return _fold_run(run)


def _fold_run(run: str) -> str:
    bare = _LEFT_OUT.sub("", unicodedata.normalize("NFKD", run)).casefold().translate(_WHOLE_LETTERS)
    # Case folding can bring marks and compositions back (U+0345), so take them off once more.
    bare = _LEFT_OUT.sub("", unicodedata.normalize("NFKD", bare))
    kept = "".join(letter if unicodedata.category(letter)[0] in "LNM" else " " for letter in bare)
    return _NO_SPACES_BETWEEN_WORDS.sub(r" \1 ", unicodedata.normalize("NFC", kept))
