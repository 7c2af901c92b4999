"""How does a row of a store become a document, and a new version a row? The same in every database."""

from __future__ import annotations

import msgspec

from levada.adapters.keeping import plain_text, unpacked, unpacked_text
from levada.adapters.page_rows import Row
from levada.errors import StoreDamaged
from levada.records import Change, Document, NewVersion

__all__ = ["amended_row", "change_record", "document_record", "stored_version", "version_row"]

_encode = msgspec.msgpack.Encoder().encode
_headers = msgspec.msgpack.Decoder(tuple[tuple[str, str], ...]).decode


def version_row(page_id: int, number: int, at: float, version: NewVersion) -> Row:
    """In the order of the columns of `versions`."""
    headers = [(plain_text(name), plain_text(value)) for name, value in version.headers]
    return (
        page_id,
        number,
        at,
        plain_text(version.title),
        version.language,
        version.charset,
        version.status,
        version.words,
        version.distinct_words,
        version.similarity,
        version.searchable,
        _encode(headers),
        version.content_zstd,
    )


def amended_row(page_id: int, number: int, version: NewVersion) -> Row:
    """Title, language, charset, status, words, distinct words, searchable, headers, content; page and number."""
    row = version_row(page_id, number, 0.0, version)
    return (*row[3:9], *row[10:], page_id, number)


def stored_version(row: Row, sketch: bytes) -> NewVersion:
    """Of title, language, charset, status, headers, content, words, distinct words, similarity, searchable."""
    title, language, charset, status, headers, content_zstd, *counts = row
    words, distinct_words, similarity, searchable = counts
    return NewVersion(
        title=title,
        language=language,
        charset=charset,
        status=status,
        headers=_headers(headers),
        content_zstd=content_zstd,
        sketch=sketch,
        words=words,
        distinct_words=distinct_words,
        similarity=similarity,
        searchable=bool(searchable),
    )


def change_record(row: Row) -> Change:
    """Of a row that begins with `seq` and `arrived`, and goes on as a document's; without the body."""
    seq, arrived, document = row[0], row[1], row[2:]
    page_id, url, site, version = document[:4]
    if version is None:  # the page moved to another shard
        return Change(seq, page_id, url, site, None)
    is_shown = document[12] and not document[13]
    return Change(
        seq, page_id, url, site, document_record(document, whole=False) if is_shown else None, arrived=arrived
    )


def document_record(row: Row, *, whole: bool = True) -> Document:
    """Each store's columns of a document are in this order; with its body if `whole`."""
    id, url, site, version, title, language, charset, status, fetched_at, met_at, *rest = row
    words, similarity, searchable, gone, current, headers, content_zstd = rest
    try:
        decoded = _headers(headers)
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"what is stored of the headers of {url} is not readable ({error})") from error
    text, body = unpacked(content_zstd) if whole else (unpacked_text(content_zstd), b"")
    return Document(
        page_id=id,
        url=url,
        site=site,
        version=version,
        title=title,
        language=language,
        charset=charset,
        text=text,
        body=body,
        status=status,
        headers=decoded,
        fetched_at=fetched_at,
        checked_at=met_at if version == current else fetched_at,
        words=words,
        similarity=similarity,
        searchable=bool(searchable),
        gone=bool(gone),
    )
