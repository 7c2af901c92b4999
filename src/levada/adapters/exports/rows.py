"""What does a stored page look like to a program? The same fields in every table that is exported."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from levada.adapters.keeping import plain_text
from levada.records import Document

__all__ = ["Row", "row_of", "utc"]


class Row(msgspec.Struct, frozen=True):
    url: str
    site: str
    title: str
    text: str
    language: str
    fetched_at: datetime  # when this version was fetched
    checked_at: datetime  # the last visit that met it
    changed_at: datetime  # when it was first seen to be so: with the first version, that it was found
    version: int
    words: int
    status: int
    searchable: bool  # False: the page asks not to be indexed


def row_of(document: Document) -> Row:
    fetched = utc(document.fetched_at)
    return Row(
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
    )


def utc(at: float) -> datetime:
    """To the millisecond; a time that no calendar has becomes the epoch."""
    try:
        return datetime.fromtimestamp(round(at, 3), UTC)
    except (OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(0, UTC)
