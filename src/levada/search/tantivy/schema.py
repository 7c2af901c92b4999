"""Fields of a page in the index, and the word forms of each language.

`text` and `title` hold every word as written, folded, with positions: what is typed is found, phrases are exact,
and counts are the paper's. The main text itself is not stored (the documents have it); the rest of a hit is, and the
words of its headings, by which it is ranked.

To find a word in its other forms too, the index holds once, for all pages, which folded words are forms of which
stem: terms `stem, language, word` of documents that are not pages. A search for a stem becomes one for its forms,
and languages that stem a word alike share one look-up.
New forms are rare, so this costs little: tantivy skips the words of a page that the writer knows, which is cheaper
than making an object of each, and only the others are stemmed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import filterfalse
from string import ascii_uppercase

import msgspec
import tantivy

from levada.core.records import Document
from levada.pages.folding import LONGEST_WORD, TURKISH, fold
from levada.pages.links import headings_in
from levada.search.hits import HitSummary
from levada.search.properties import ordered, properties_of_page
from levada.search.stemming import word_forms
from levada.search.terms import site_names, words_of_url
from levada.store.rules import PAGE_BITS, nth_of, plain_text

FORMS = "forms"  # the field
PROPERTIES, NUMBERS = "properties", "numbers"  # the fields of structured data
LONGEST_FORM = 2 * LONGEST_WORD + 16  # bytes
_SEPARATOR = "\x1f"
_MOST_FORMS = 2_000  # forms of one stem that are searched
_MOST_REMEMBERED = 200_000  # words, some 30 MB
_LONGEST_REMEMBERED = 40
_DEARER = 4  # skipping a word from now on costs as much as looking it up this many times
_MARKS = bytes(code for code in range(128) if not chr(code).isalnum())
_CAPITALS = ascii_uppercase.encode()


_MOST_IN_HEADINGS = 300  # words
_JOINED = re.compile(r"[A-Za-z]*[a-z][A-Z][A-Za-z]*")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class KnownForms:
    """The word forms that a writer has seen since it was opened."""

    def __init__(self) -> None:
        self._seen: dict[str, _SeenWords] = {}

    def new_terms(self, language: str, texts: Iterable[str], searcher: tantivy.Searcher | None) -> list[str]:
        """Terms for the forms in the texts that neither the writer has seen nor the index holds."""
        if sum(len(seen.words) for seen in self._seen.values()) > _MOST_REMEMBERED:
            self.forget()
        seen = self._seen.setdefault(language, _SeenWords())
        plain = _plain(language in TURKISH)
        found: set[tuple[str, str]] = set()
        for text in texts:
            for word in seen.new_words(text.encode("utf-8", "replace").translate(plain).decode()):
                found |= word_forms(language, word)
        terms = [_SEPARATOR.join((stem, language, word)) for stem, word in found]
        return [term for term in terms if searcher is None or not searcher.doc_freq(FORMS, term)]

    def forget(self) -> None:
        """Forget everything: what was seen last may not have reached the index."""
        self._seen.clear()


class _SeenWords:
    """The words of one language that were seen."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self._others = _words_except(())
        self._looked_up = 0  # words that were not skipped

    def new_words(self, text: str) -> set[str]:
        """The words of a text that are new. Numbers have no other forms, and a page has dozens of them."""
        others = list(filterfalse(str.isdecimal, self._others(text)))
        new = set(others) - self.words
        # A number with its unit hardly occurs again, and neither does a very long word.
        self.words.update(word for word in new if len(word) <= _LONGEST_REMEMBERED and not word[0].isdecimal())
        self._looked_up += len(others)
        if self._looked_up > _DEARER * len(self.words):
            self._others, self._looked_up = _words_except(self.words), 0
        return new


def _words_except(skipped: Iterable[str]) -> Callable[[str], list[str]]:
    """An analyzer that gives the words between spaces, except some."""
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    analyze: Callable[[str], list[str]] = words.filter(tantivy.Filter.custom_stopword(list(skipped))).build().analyze
    return analyze


@cache
def _plain(turkish: bool) -> bytes:
    """Lower-case ASCII letters, and spaces for punctuation. The I stays: Turkish has another small letter for
    it."""
    capitals = _CAPITALS.replace(b"I", b"") if turkish else _CAPITALS
    return bytes.maketrans(_MARKS + capitals, b" " * len(_MARKS) + capitals.lower())


def forms_of(searcher: tantivy.Searcher, stems: Mapping[str, Collection[str]]) -> set[str]:
    """The words that pages can have for the stems of one word; `stems` are by language."""
    # A stem as a word may have another stem: ciudades has ciudad, which has ciud. A single form is what was typed.
    forms = {stem for of_one in stems.values() if len(of_one) > 1 for stem in of_one}
    languages: defaultdict[str, set[str]] = defaultdict(set)
    for language, of_one in stems.items():
        for stem in of_one:
            languages[stem].add(language)
    for stem, spoken in languages.items():
        start = f"{stem}{_SEPARATOR}"
        for term, _ in searcher.terms_with_prefix(FORMS, start, limit=_MOST_FORMS):
            language, _, word = term[len(start) :].partition(_SEPARATOR)
            if language in spoken:
                forms.add(word)
    return forms


FORMAT = 7  # raise it with every change of fields or folding: an older index is rebuilt


_OTHERS = (("names", 300), ("properties", 200))  # bytes: of a host and its port, of a property and a word
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(HitSummary).decode


@cache
def schema() -> tantivy.Schema:
    build = tantivy.SchemaBuilder()
    build.add_integer_field("page", indexed=True)  # signed: tantivy-py deletes by signed terms only
    build.add_unsigned_field("place", fast=True)
    build.add_float_field("changed_at", fast=True)
    build.add_bytes_field("card", stored=True)
    build.add_text_field("within", tokenizer_name="names", index_option="basic")
    build.add_text_field("language", tokenizer_name="raw", index_option="basic", fast=True)
    build.add_text_field("site", tokenizer_name="raw", index_option="basic", fast=True)
    build.add_text_field("type", tokenizer_name="raw", index_option="basic", fast=True)
    build.add_text_field("url", tokenizer_name="folded", index_option="position")
    build.add_text_field("title", tokenizer_name="folded", index_option="position")
    build.add_text_field("text", tokenizer_name="folded", index_option="position")
    build.add_text_field(PROPERTIES, tokenizer_name="properties", index_option="position")
    build.add_text_field(NUMBERS, tokenizer_name="properties", index_option="basic")
    build.add_text_field(FORMS, tokenizer_name="forms", index_option="basic")
    return build.build()


def register_analyzers(index: tantivy.Index) -> None:
    """Texts come folded, so only splitting at spaces is left."""
    for name, longest in (("folded", LONGEST_WORD), ("forms", LONGEST_FORM), *_OTHERS):
        split = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        index.register_tokenizer(name, split.filter(tantivy.Filter.remove_long(longest + 1)).build())


def document_of(document: Document, site_number: int) -> tantivy.Document:
    entry = tantivy.Document()
    entry.add_integer("page", document.page_id)
    # Site number, then page number: the order of postings.
    entry.add_unsigned("place", site_number << PAGE_BITS | nth_of(document.page_id))
    entry.add_float("changed_at", document.fetched_at)
    title, language = plain_text(document.title), document.language
    headings = words_of_headings(headings_in(document.packed_anchors))
    summary = HitSummary(document.url, document.site, title, language, document.fetched_at, headings)
    entry.add_bytes("card", _encode(summary))
    entry.add_text("within", _within(document.site))
    entry.add_text("language", language)
    entry.add_text("site", document.site)
    entry.add_text("url", words_of_url(document.url))
    entry.add_text("title", fold(document.title))
    entry.add_text("text", fold(document.text))
    found = properties_of_page(document)
    for type in found.types:
        entry.add_text("type", type)
    # What stands between two values keeps a phrase from running from one to the next.
    values = (" ".join(property_term(name, word) for word in value) for name, value in found.values)
    entry.add_text(PROPERTIES, f" {_SEPARATOR} ".join(values))
    if found.numbers:
        entry.add_text(NUMBERS, " ".join(property_term(name, ordered(number)) for name, number in found.numbers))
    return entry


def words_of_headings(headings: Sequence[str]) -> str:
    """The words of headings, and of the names in them that are written as one (RandomForestClassifier)."""
    if not headings:
        return ""
    written = "\n".join(headings)
    parts = (_CAPITAL.sub(" ", name) for name in _JOINED.findall(written))
    found = list(dict.fromkeys(fold(" ".join((written, *parts))).split()))[:_MOST_IN_HEADINGS]
    return f" {' '.join(found)} "


def property_term(name: str, value: str) -> str:
    """The term for a word, or the digits of a number, in a property."""
    return f"{name}={value}"


@lru_cache(maxsize=1024)
def _within(site: str) -> str:
    return " ".join(site_names(site))


def forms_entry(terms: Iterable[str]) -> tantivy.Document:
    """A document that is not a page: it has no words of its own, and nothing deletes it."""
    entry = tantivy.Document()
    entry.add_text(FORMS, " ".join(terms))
    return entry


def summary_of(entry: tantivy.Document) -> HitSummary:
    return _decode(entry["card"][0])
