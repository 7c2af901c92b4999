"""What does the index hold of a page?

`text` and `title` hold every word as it stands, folded, with positions: what is typed is found, phrases are exact,
and counts are the paper's. `stem_xx`, for the page's language, holds each stem of the page once: it widens a
search to other forms, and costs a third of what a second full field would. The main text itself is not stored
(the documents have it); the rest of a hit is.
"""

from __future__ import annotations

from functools import cache

import msgspec
import tantivy

from levada.adapters.keeping import PAGE_BITS, nth_of
from levada.adapters.stemming import LANGUAGES, fold_page, page_stems
from levada.pages.folding import LONGEST_WORD
from levada.pages.query import site_names
from levada.records import Document

__all__ = ["FORMAT", "Card", "card_of", "document_of", "register_analyzers", "schema"]

FORMAT = 2  # raise it with every change of fields or folding: an older index is rebuilt


class Card(msgspec.Struct, frozen=True, array_like=True):
    """What is shown of a hit."""

    url: str
    site: str
    title: str
    language: str
    changed_at: float


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Card).decode


@cache
def schema() -> tantivy.Schema:
    build = tantivy.SchemaBuilder()
    build.add_integer_field("page", indexed=True)  # signed: tantivy-py deletes by signed terms only
    build.add_unsigned_field("place", fast=True)
    build.add_float_field("changed_at", fast=True)
    build.add_bytes_field("card", stored=True)
    build.add_text_field("within", tokenizer_name="raw", index_option="basic")
    build.add_text_field("language", tokenizer_name="raw", index_option="basic")
    build.add_text_field("title", tokenizer_name="folded", index_option="position")
    build.add_text_field("text", tokenizer_name="folded", index_option="position")
    for language in LANGUAGES:
        build.add_text_field(f"stem_{language}", tokenizer_name="folded", index_option="basic")
    return build.build()


def register_analyzers(index: tantivy.Index) -> None:
    """Folding and stemming are done before a text gets here: what is left is to split at spaces."""
    folded = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    index.register_tokenizer("folded", folded.filter(tantivy.Filter.remove_long(LONGEST_WORD + 1)).build())


def document_of(document: Document, site_number: int) -> tantivy.Document:
    entry = tantivy.Document()
    title, text, language = document.title, document.text, document.language
    title_chunks, text_chunks = title.split(), text.split()
    entry.add_integer("page", document.page_id)
    # Site number, then page number: its order is the order of postings.
    entry.add_unsigned("place", site_number << PAGE_BITS | nth_of(document.page_id))
    entry.add_float("changed_at", document.fetched_at)
    entry.add_bytes(
        "card", _encode(Card(document.url, document.site, _valid(title), language, document.fetched_at))
    )
    for name in site_names(document.site):
        entry.add_text("within", name)
    entry.add_text("language", language)
    entry.add_text("title", fold_page(title, title_chunks))
    entry.add_text("text", fold_page(text, text_chunks))
    if language in LANGUAGES:
        entry.add_text(f"stem_{language}", page_stems(language, title_chunks + text_chunks))
    return entry


def card_of(entry: tantivy.Document) -> Card:
    return _decode(bytes(entry["card"][0]))


def _valid(text: str) -> str:
    """Without lone surrogates, which no encoding has."""
    return text.encode("utf-8", "replace").decode()
