"""Which forms of a word has the index met, by language?

Pages hold words as they stand. So that a word is found in its other forms too, the index holds, once for all
pages, which folded words are forms of which stem: terms `language, stem, word` of documents that are no pages. A
search for a stem becomes one for its forms. What is seldom new costs little to keep: a page's words are looked up
in what the writer remembers, and only those that it does not know are stemmed.
"""

from __future__ import annotations

from collections.abc import Iterable
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
_MOST_REMEMBERED = 200_000  # words, some 20 MB
_LONGEST_REMEMBERED = 40  # bytes: what is longer hardly comes again
_MARKS = bytes(code for code in range(128) if not chr(code).isalnum())
_CAPITALS = ascii_uppercase.encode()


class FormsBook:
    """What a writer has met since it was opened."""

    def __init__(self) -> None:
        self._known: dict[str, set[bytes]] = {}

    def new_terms(self, language: str, text: str, searcher: tantivy.Searcher | None) -> list[str]:
        """Terms for the forms in a text that neither the writer has met nor the index holds already."""
        if sum(map(len, self._known.values())) > _MOST_REMEMBERED:
            self.forget()
        known = self._known.setdefault(language, set())
        words = text.encode("utf-8", "replace").translate(_plain(language in TURKISH)).split()
        found: set[tuple[str, str]] = set()
        # A number has no other forms and hardly comes again, and a page has dozens.
        for word in filterfalse(bytes.isdigit, set(words) - known):
            found |= word_forms(language, word.decode())
            if len(word) <= _LONGEST_REMEMBERED and not word[:1].isdigit():
                known.add(word)
        terms = [_SEPARATOR.join((language, *pair)) for pair in found]
        return [term for term in terms if searcher is None or not searcher.doc_freq(FORMS, term)]

    def forget(self) -> None:
        """What was met last may not have reached the index."""
        self._known.clear()


@cache
def _plain(turkish: bool) -> bytes:
    """Marks are spaces, ASCII letters in lower case: but not the I, which Turkish has another small letter for."""
    capitals = _CAPITALS.replace(b"I", b"") if turkish else _CAPITALS
    return bytes.maketrans(_MARKS + capitals, b" " * len(_MARKS) + capitals.lower())


def forms_of(searcher: tantivy.Searcher, language: str, stems: Iterable[str]) -> set[str]:
    """The words that pages in `language` can have where one of these stems is sought."""
    forms: set[str] = set()
    for stem in stems:
        start = _SEPARATOR.join((language, stem, ""))
        forms.update(term[len(start) :] for term, _ in searcher.terms_with_prefix(FORMS, start, limit=_MOST_FORMS))
    return forms
