"""Which forms of a word has the index met, by language?

Pages hold words as they stand. So that a word is found in its other forms too, the index holds, once for all
pages, which folded words are forms of which stem: terms `language, stem, word` of documents that are no pages. A
search for a stem becomes one for its forms. What is seldom new costs little to keep: tantivy passes over the words
of a page that the writer has met, which is cheaper than to make an object of each, and only the others are stemmed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cache
from itertools import filterfalse
from string import ascii_uppercase

import tantivy

from levada.adapters.stemming import word_forms
from levada.pages.folding import LONGEST_WORD, TURKISH

__all__ = ["FORMS", "LONGEST_FORM", "FormsBook", "forms_of"]

FORMS = "forms"  # the field
LONGEST_FORM = 2 * LONGEST_WORD + 16  # bytes

_SEPARATOR = "\x1f"
_MOST_FORMS = 2_000  # of one stem that are sought
_MOST_REMEMBERED = 200_000  # words, some 30 MB
_LONGEST_REMEMBERED = 40
_DEARER = 4  # times as dear is it to have a word passed over from now on as to look it up once
_MARKS = bytes(code for code in range(128) if not chr(code).isalnum())
_CAPITALS = ascii_uppercase.encode()


class FormsBook:
    """What a writer has met since it was opened."""

    def __init__(self) -> None:
        self._met: dict[str, _Met] = {}

    def new_terms(self, language: str, texts: Iterable[str], searcher: tantivy.Searcher | None) -> list[str]:
        """Terms for the forms in texts that neither the writer has met nor the index holds already."""
        if sum(len(met.words) for met in self._met.values()) > _MOST_REMEMBERED:
            self.forget()
        met = self._met.setdefault(language, _Met())
        plain = _plain(language in TURKISH)
        found: set[tuple[str, str]] = set()
        for text in texts:
            for word in met.new_words(text.encode("utf-8", "replace").translate(plain).decode()):
                found |= word_forms(language, word)
        terms = [_SEPARATOR.join((language, *pair)) for pair in found]
        return [term for term in terms if searcher is None or not searcher.doc_freq(FORMS, term)]

    def forget(self) -> None:
        """What was met last may not have reached the index."""
        self._met.clear()


class _Met:
    """The words of one language that were met."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self._others = _words_but(())
        self._looked_up = 0  # words that were not passed over

    def new_words(self, text: str) -> set[str]:
        """Those of a text that were not met before; numbers have no other forms, and a page has dozens."""
        others = list(filterfalse(str.isdecimal, self._others(text)))
        new = set(others) - self.words
        # A number and its unit hardly come again, and neither does what is very long.
        self.words.update(word for word in new if len(word) <= _LONGEST_REMEMBERED and not word[0].isdecimal())
        self._looked_up += len(others)
        if self._looked_up > _DEARER * len(self.words):
            self._others, self._looked_up = _words_but(self.words), 0
        return new


def _words_but(passed_over: Iterable[str]) -> Callable[[str], list[str]]:
    """Gives the words between spaces, without some."""
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    analyze: Callable[[str], list[str]] = (
        words.filter(tantivy.Filter.custom_stopword(list(passed_over))).build().analyze
    )
    return analyze


@cache
def _plain(turkish: bool) -> bytes:
    """Marks are spaces, ASCII letters in lower case: but not the I, which Turkish has another small letter for."""
    capitals = _CAPITALS.replace(b"I", b"") if turkish else _CAPITALS
    return bytes.maketrans(_MARKS + capitals, b" " * len(_MARKS) + capitals.lower())


def forms_of(searcher: tantivy.Searcher, language: str, stems: Collection[str]) -> set[str]:
    """The words that pages in `language` can have where one of these stems is sought."""
    # A stem as a word may have another stem: ciudades has ciudad, which has ciud. One alone is what was typed.
    forms = set(stems) if len(stems) > 1 else set()
    for stem in stems:
        start = _SEPARATOR.join((language, stem, ""))
        forms.update(term[len(start) :] for term, _ in searcher.terms_with_prefix(FORMS, start, limit=_MOST_FORMS))
    return forms
