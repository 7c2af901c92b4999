"""How a page, a form of a word and a position are written in OpenSearch.

`text` and `title` hold every word as written, folded, with positions. They are folded here, so the server only
splits at spaces; neither is kept in the stored source, as the documents have them. Of a page `card` is stored, what a
hit shows.

To find a word in its other forms too, the index holds once, for all pages, which folded words are forms of which
stem: small documents that are not pages. What a page calls others where it links to them stands with the page, as
terms of address and text, so what many pages say of one is counted when somebody searches.

A page that is no longer there leaves a document with nothing but its number: a late write of an older version must not
bring it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from levada.core.hashing import term_number
from levada.core.records import Change, Document
from levada.pages.folding import fold, is_indexed
from levada.pages.links import anchors_in, headings_in
from levada.search.opensearch.connection import Options
from levada.search.properties import ordered, properties_of_page
from levada.search.tantivy.schema import words_of_headings
from levada.search.terms import site_names, words_of_url
from levada.search.weights import FIELDS
from levada.store.rules import nth_of, plain_text

_LONGEST_KEYWORD = 1_000  # characters
_LONGEST_PROPERTY = 200  # bytes of a property and a word
_MOST_WINDOW = 30_000  # hits that one request may ask for
_TOO_LONG = re.compile(rb"[^ ]{128,}")
_GAP = "|"  # no folded word: stands for one that is too long, and between two values
_encode = msgspec.json.Encoder().encode


def body_of_index(options: Options, meta: dict[str, Any]) -> dict[str, Any]:
    """The settings and fields of a new index."""
    keyword = {"type": "keyword", "ignore_above": _LONGEST_KEYWORD}
    words = {"type": "text", "analyzer": "whitespace"}
    return {
        "settings": {
            "number_of_shards": options.shards,
            "auto_expand_replicas": f"0-{options.replicas}",
            "refresh_interval": "-1",  # what is written is shown when its batch is whole
            "max_result_window": _MOST_WINDOW,
        },
        "mappings": {
            "_meta": meta,
            "_source": {"includes": ["card", "changed_at", "form", "form_language", "position", "stem"]},
            "dynamic": False,
            "properties": {
                "page": {"type": "long"},
                "site_number": {"type": "long"},
                "nth": {"type": "long"},
                "changed_at": {"type": "double"},
                "card": {"type": "object", "enabled": False},
                "within": keyword,
                "language": keyword,
                "site": keyword,
                "type": keyword,
                "numbers": keyword,
                "links": {"type": "keyword", "doc_values": False},
                "anchors": keyword,
                "url": words,
                "properties": words,
                **dict.fromkeys(FIELDS, words),
                "stem": keyword,
                "form": {"type": "keyword", "index": False},
                "form_language": keyword,
                "log": {"type": "long"},
                "position": {"type": "long"},
            },
        },
    }


def shown(change: Change) -> Document | None:
    """The document, if a search may find it."""
    document = change.document
    return document if document and document.searchable and not document.gone else None


def lines_of_page(change: Change, site_number: int) -> bytes:
    """The two lines by which a bulk request writes a page as it is now."""
    action = {"index": {"_id": str(change.page_id), "version": change.seq, "version_type": "external_gte"}}
    document = shown(change)
    return _lines(action, {} if document is None else _fields(document, site_number))


def lines_of_forms(terms: Iterable[tuple[str, str, str]]) -> Iterator[bytes]:
    """The lines for forms of words: stem, language and form of each. One that is there already is left alone."""
    for stem, language, form in terms:
        entry = {"stem": stem, "form_language": language, "form": form}
        yield _lines({"create": {"_id": f"{stem} {language} {form}"}}, entry)


def position_id(log: int) -> str:
    return f"position {log}"


def _lines(action: dict[str, Any], entry: dict[str, Any]) -> bytes:
    return b"%b\n%b\n" % (_encode(action), _encode(entry))


def _fields(document: Document, site_number: int) -> dict[str, Any]:
    title, headings = plain_text(document.title), words_of_headings(headings_in(document.packed_anchors))
    found = properties_of_page(document)
    values = (" ".join(property_term(name, word) for word in value) for name, value in found.values)
    fields: dict[str, Any] = {
        "page": document.page_id,
        "site_number": site_number,
        "nth": nth_of(document.page_id),
        "changed_at": document.fetched_at,
        "card": [document.url, document.site, title, document.language, headings],
        "type": list(found.types),
        "properties": _within_limit(f" {_GAP} ".join(values)),
        "numbers": [property_term(name, ordered(number)) for name, number in found.numbers],
        "within": _within(document.site),
        "language": document.language,
        "site": document.site,
        "url": _indexable(words_of_url(document.url)),
    }
    if links := _links(document):
        fields["links"] = sorted({f"{address:x}" for address, _ in links})
        fields["anchors"] = sorted(f"{address:x} {text}" for address, text in links)
    for name, folded in (("title", fold(document.title)), ("text", fold(document.text))):
        if folded:  # the server would count an empty field as one that has words
            fields[name] = _indexable(folded)
    return fields


def property_term(name: str, value: str) -> str:
    """The term for a word, or the digits of a number, in a property."""
    return f"{name}={value}"


def link_to(url: str) -> str:
    """The term of a link to this address."""
    return f"{term_number(url) & _ADDRESS_MASK:x}"


_ADDRESS_MASK = (1 << 47) - 1


def _links(document: Document) -> set[tuple[int, str]]:
    own = term_number(document.url) & _ADDRESS_MASK
    found = ((number & _ADDRESS_MASK, _folded(text)) for number, text in anchors_in(document.packed_anchors))
    return {(address, text) for address, text in found if text and address != own}


@lru_cache(maxsize=1 << 14)
def _folded(text: str) -> str:
    return " ".join(fold(text).split())


@lru_cache(maxsize=1024)
def _within(site: str) -> list[str]:
    return site_names(site)


def _indexable(folded: str) -> str:
    """The words without those that are too long; their places stay."""
    encoded = folded.encode("utf-8", "replace")
    if _TOO_LONG.search(encoded) is None:
        return folded if len(encoded) == len(folded) else encoded.decode()
    return " ".join(word if is_indexed(word) else _GAP for word in encoded.decode().split(" "))


def _within_limit(text: str) -> str:
    words = text.encode("utf-8", "replace").decode().split()
    return " ".join(word if len(word.encode()) <= _LONGEST_PROPERTY else _GAP for word in words)
