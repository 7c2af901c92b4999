"""What does the index hold of a page?

`text` and `title` hold every word as it stands, folded, with positions: what is typed is found, phrases are exact,
and counts are the paper's. The forms of a word are held once for all pages (see `tantivy_forms`). The main text
itself is not stored (the documents have it); the rest of a hit is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

import msgspec
import tantivy

from levada.adapters.keeping import PAGE_BITS, nth_of, plain_text
from levada.adapters.tantivy_forms import FORMS, LONGEST_FORM
from levada.pages.folding import LONGEST_WORD, fold
from levada.pages.query import site_names
from levada.records import Document

__all__ = ["FORMAT", "Card", "card_of", "document_of", "forms_entry", "register_analyzers", "schema"]

FORMAT = 3  # raise it with every change of fields or folding: an older index is rebuilt


class Card(msgspec.Struct, frozen=True, array_like=True):
    """What is shown of a hit."""

    url: str
    site: str
    title: str
    language: str
    changed_at: float


_LONGEST_NAME = 300  # bytes of a host and its port
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Card).decode


@cache
def schema() -> tantivy.Schema:
    build = tantivy.SchemaBuilder()
    build.add_integer_field("page", indexed=True)  # signed: tantivy-py deletes by signed terms only
    build.add_unsigned_field("place", fast=True)
    build.add_float_field("changed_at", fast=True)
    build.add_bytes_field("card", stored=True)
    build.add_text_field("within", tokenizer_name="names", index_option="basic")
    build.add_text_field("language", tokenizer_name="raw", index_option="basic")
    build.add_text_field("title", tokenizer_name="folded", index_option="position")
    build.add_text_field("text", tokenizer_name="folded", index_option="position")
    build.add_text_field(FORMS, tokenizer_name="forms", index_option="basic")
    return build.build()


def register_analyzers(index: tantivy.Index) -> None:
    """Folding is done before a text gets here: what is left is to split at spaces."""
    for name, longest in (("folded", LONGEST_WORD), ("forms", LONGEST_FORM), ("names", _LONGEST_NAME)):
        split = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        index.register_tokenizer(name, split.filter(tantivy.Filter.remove_long(longest + 1)).build())


def document_of(document: Document, site_number: int) -> tantivy.Document:
    entry = tantivy.Document()
    entry.add_integer("page", document.page_id)
    # Site number, then page number: its order is the order of postings.
    entry.add_unsigned("place", site_number << PAGE_BITS | nth_of(document.page_id))
    entry.add_float("changed_at", document.fetched_at)
    title, language = plain_text(document.title), document.language
    entry.add_bytes("card", _encode(Card(document.url, document.site, title, language, document.fetched_at)))
    entry.add_text("within", _within(document.site))
    entry.add_text("language", language)
    entry.add_text("title", fold(document.title))
    entry.add_text("text", fold(document.text))
    return entry


@lru_cache(maxsize=1024)
def _within(site: str) -> str:
    return " ".join(site_names(site))


def forms_entry(terms: Iterable[str]) -> tantivy.Document:
    """A document that is no page: it has no words of its own, and nothing takes it out again."""
    entry = tantivy.Document()
    entry.add_text(FORMS, " ".join(terms))
    return entry


def card_of(entry: tantivy.Document) -> Card:
    return _decode(bytes(entry["card"][0]))
