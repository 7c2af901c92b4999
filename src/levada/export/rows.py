"""Export rows: the fields of an exported page, and the JSON Lines format."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from levada.core.files import ExportContext
from levada.core.records import Document
from levada.core.structured import Item, Offer
from levada.store.rules import plain_text


class ExportRow(msgspec.Struct, frozen=True):
    """A stored page as exports write it.

    >>> row = next(news.rows())
    >>> row.version, row.searchable
    (1, True)
    """

    url: str
    site: str
    title: str
    text: str
    language: str
    fetched_at: datetime  # when this version was fetched
    checked_at: datetime  # the last visit that saw this version
    changed_at: datetime  # when this version was first seen
    version: int
    words: int
    status: int
    searchable: bool  # False: the page asks not to be indexed
    price: str  # of the main offer in the page's structured data: an exact decimal number; "": none
    currency: str
    availability: str  # "InStock"
    items: tuple[Item, ...]  # what the page says in structured data


def row_of(document: Document) -> ExportRow:
    fetched, data = utc(document.fetched_at), document.data
    main = data.offers[0] if data.offers else Offer()
    return ExportRow(
        url=plain_text(document.url),
        site=plain_text(document.site),
        title=plain_text(document.title),
        text=plain_text(document.text),
        language=plain_text(document.language),
        fetched_at=fetched,
        checked_at=utc(document.checked_at),
        changed_at=fetched,
        version=document.version,
        words=document.words,
        status=document.status,
        searchable=document.searchable,
        price=main.price,
        currency=main.currency,
        availability=main.availability,
        items=data.items,
    )


def utc(at: float) -> datetime:
    """The time in UTC, to the millisecond; the epoch if it is out of range."""
    try:
        return datetime.fromtimestamp(round(at, 3), UTC)
    except (OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(0, UTC)


class JsonlExporter:
    """One JSON object per line and page."""

    suffix = ".jsonl"

    def export(self, documents: Iterable[Document], out: Path, context: ExportContext) -> int:
        encoder = msgspec.json.Encoder()
        with context.open(out) as file:
            for document in documents:
                file.write(encoder.encode(row_of(document)) + b"\n")
            return file.written
