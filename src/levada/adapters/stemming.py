"""Which forms of a word are one word, by language? (Snowball's stemmers, as tantivy carries them.)

A stem is taken of the word as its language writes it, and folded afterwards: Turkish endings follow the vowels
before them, so "kitaplari" without its ı has no ending that the stemmer knows. Stemming a word costs more than
indexing it, and words repeat, so the stems of what stands between two spaces are remembered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache

import tantivy

from levada.pages.folding import fold, is_indexed, lowercase, words

__all__ = ["LANGUAGES", "fold_page", "page_stems", "same_stem", "word_stems"]

LANGUAGES = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nb": "norwegian",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}

_MOST_REMEMBERED = 100_000  # chunks per kind, about 20 MB
_NUMBER = re.compile(r"[\W\d_]*")
_LONGEST_REMEMBERED = 40  # characters: what is longer hardly comes again


class _Remembered(dict[str, str]):
    """What is made of a chunk of text (all that stands between two spaces), made once while there is room."""

    def __init__(self, make: Callable[[str], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, chunk: str) -> str:
        found = self._make(chunk)
        # Numbers hardly come again, and a page has dozens.
        if len(chunk) <= _LONGEST_REMEMBERED and not _NUMBER.fullmatch(chunk):
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[chunk] = found
        return found


# All that is not ASCII in most English pages; none of these joins or makes a letter.
_PRINTERS_SIGNS = "’‘“”–—…•\xa0"

_folds = _Remembered(fold)


def fold_page(text: str, chunks: Iterable[str]) -> str:
    """The words of `fold(text)`, quicker where a page repeats them; `chunks` is `text.split()`."""
    for sign in _PRINTERS_SIGNS:
        text = text.replace(sign, " ")
    return fold(text) if text.isascii() else " ".join(map(_folds.__getitem__, chunks))


def page_stems(language: str, chunks: Iterable[str]) -> str:
    """The stems in `chunks` of a text in `language`, each about once, with spaces between them."""
    return " ".join(set(map(_stems_of(language).__getitem__, set(chunks))))


@lru_cache(maxsize=1 << 14)
def word_stems(language: str, word: str) -> frozenset[str]:
    """What to look for among stems when a person typed `word`, with or without a Turkish keyboard."""
    lowered = lowercase(word, language)
    stems = {*_stems(language, lowered), *_stems(language, lowercase(word, ""))}
    if language == "tr":
        # "vapurlari" with an ASCII keyboard: the stemmer needs the ı that the vowels before it ask for, and
        # folding makes i of it again.
        stems.update(_stems(language, lowered.replace("i", "ı")))
    # What people type is mostly the plain form already, even where a stemmer cuts at it ("ısı" to "ıs").
    return frozenset(stem for stem in stems if len(stem) > 1).union(words(word))


def same_stem(language: str) -> Callable[[str, str], bool]:
    """Are two words forms of one word in `language`?"""
    if language not in LANGUAGES:
        return lambda one, other: False
    return lambda one, other: not word_stems(language, one).isdisjoint(word_stems(language, other))


@cache
def _stems_of(language: str) -> _Remembered:
    def stems(chunk: str) -> str:
        if _NUMBER.fullmatch(chunk):  # it has no other forms; as it stands it is found in the text itself
            return ""
        return " ".join(_stems(language, lowercase(chunk, language)))

    return _Remembered(stems)


def _stems(language: str, lowered: str) -> list[str]:
    # A lone surrogate is no letter, and not UTF-8 either.
    clean = lowered.encode("utf-8", "replace").decode()
    return [word for stem in _analyzer(language)(clean) for word in words(stem) if is_indexed(word)]


@cache
def _analyzer(language: str) -> Callable[[str], list[str]]:
    build = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    analyze: Callable[[str], list[str]] = build.filter(tantivy.Filter.stemmer(LANGUAGES[language])).build().analyze
    return analyze
