"""Stemming by language, with tantivy's Snowball stemmers.

A word is stemmed as its language writes it, and folded afterwards: Turkish endings follow the vowels before them,
so "kitaplari" without its ı has no ending that the stemmer knows. Stemming a word costs more than indexing it, and
words repeat, so an index stems each form once, when it first sees it, and remembers its stem.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import islice, product

import tantivy

from levada.pages.folding import TURKISH, is_indexed, lowercase, words

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

_OTHER_SCRIPTS = frozenset({"ar", "el", "ru", "ta"})  # their stemmers leave Latin letters as they are
_LONG, _LETTERS_MORE = 7, 2  # shorter ones are mostly others: proper, property
_NUMBER = re.compile(r"[\W\d_]*")
_MOST_PAIRS = 64  # in a chunk whose stems and words cannot be matched one to one


def word_forms(language: str, chunk: str) -> set[tuple[str, str]]:
    """Each stem in a chunk of text (between two spaces) with the folded word that is a form of it."""
    if _NUMBER.fullmatch(chunk):  # a number has no other forms
        return set()
    stems = _stems(language, lowercase(chunk, language))
    forms = [word for word in words(chunk) if is_indexed(word)]
    if len(stems) == len(forms):
        return set(zip(stems, forms, strict=True))
    # The stemmer divides words differently (it ends one at a virama), so any word may be a form of any stem.
    return set(islice(product(dict.fromkeys(stems), dict.fromkeys(forms)), _MOST_PAIRS))


@lru_cache(maxsize=1 << 14)
def word_stems(language: str, word: str) -> frozenset[str]:
    """The stems to search for a typed `word`, with or without a Turkish keyboard."""
    if word.isascii() and language not in TURKISH:
        return _ascii_stems("" if language in _OTHER_SCRIPTS else LANGUAGES[language], word.lower())
    lowered = lowercase(word, language)
    spellings = {lowered, lowercase(word, "")}
    if language == "tr":
        # "vapurlari" on an ASCII keyboard: the stemmer needs the ı that the vowels before it demand, and folding
        # turns it into i again.
        spellings.add(lowered.replace("i", "ı"))
    stems = {stem for each in spellings for stem in _stems(language, each)}
    # People mostly type the plain form, even where a stemmer cuts it ("ısı" to "ıs").
    return frozenset(stem for stem in stems if len(stem) > 1).union(words(word))


@lru_cache(maxsize=1 << 14)
def _ascii_stems(stemmer: str, lowered: str) -> frozenset[str]:
    """The same for a word of plain letters, once for the languages that have a stemmer in common."""
    stems = _stemmed(stemmer, lowered) if stemmer else ()
    return frozenset([stem for stem in stems if len(stem) > 1]).union(_plain_words(lowered))


@lru_cache(maxsize=1 << 10)
def _plain_words(lowered: str) -> tuple[str, ...]:
    return tuple(words(lowered))


def may_go_on(word: str) -> bool:
    """Whether a folded word is long enough to say much of one that begins with it."""
    return len(word) >= _LONG and word.isalpha()


def goes_on(word: str, longer: str) -> bool:
    """Whether `longer` is a long folded word with a letter or two more, as postgresql is postgres."""
    return may_go_on(word) and longer.startswith(word) and 0 < len(longer) - len(word) <= _LETTERS_MORE


def same_stem(language: str) -> Callable[[str, str], bool]:
    """Whether two words are forms of one word in `language`, or the other one goes on from the first."""
    if language not in LANGUAGES:
        return lambda one, other: goes_on(one.lower(), other.lower())
    return lambda one, other: (
        not word_stems(language, one).isdisjoint(word_stems(language, other)) or goes_on(one.lower(), other.lower())
    )


def _stems(language: str, lowered: str) -> list[str]:
    return _stemmed(LANGUAGES[language], lowered)


def _stemmed(stemmer: str, lowered: str) -> list[str]:
    analyze = _analyzer(stemmer)
    if lowered.isascii():
        stems = analyze(lowered)
        if len(stems) == 1 and stems[0].isalnum() and is_indexed(stems[0]):  # as nearly always: nothing to fold
            return stems
    # An unpaired surrogate is no letter, and not UTF-8 either.
    clean = lowered.encode("utf-8", "replace").decode()
    return [word for stem in analyze(clean) for word in words(stem) if is_indexed(word)]


@cache
def _analyzer(stemmer: str) -> Callable[[str], list[str]]:
    build = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    analyze: Callable[[str], list[str]] = build.filter(tantivy.Filter.stemmer(stemmer)).build().analyze
    return analyze
