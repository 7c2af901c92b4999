"""What was on a page, now and before? The `Documents` port on SQLite."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from levada.adapters.keeping import plain_text, unpacked
from levada.adapters.sqlite.database import Database, Row
from levada.adapters.sqlite.schema import HAPPENED
from levada.errors import StoreDamaged
from levada.records import Change, Document, Happening, VersionInfo

__all__ = ["SqliteDocuments"]

_DOCUMENT = """p.id, p.url, s.site, v.version, v.title, v.language, v.charset, v.status, v.fetched_at, h.met_at,
    v.words, v.similarity, v.searchable, p.gone, p.version, v.headers, v.text_zstd"""
_TABLES = """FROM pages p JOIN sites s ON s.id = p.site_id JOIN visited h ON h.page_id = p.id
    JOIN versions v ON v.page_id = p.id"""
_BY_URL = f"SELECT {_DOCUMENT}, v.body_zstd {_TABLES} AND v.version = coalesce(?, p.version) WHERE p.url = ?"
# Without bodies: the index has no use for them, and they are most of what would be read.
_CHANGED = f"""SELECT p.seq, {_DOCUMENT} {_TABLES} AND v.version = p.version
    WHERE p.seq > ? ORDER BY p.seq LIMIT ?"""
_SCAN = f"""SELECT {_DOCUMENT}, v.body_zstd {_TABLES} AND v.version = p.version
    WHERE p.id > ? AND p.gone = 0 ORDER BY p.id LIMIT ?"""
_VERSIONS = """SELECT v.version, v.fetched_at, v.title, v.words, v.similarity FROM versions v
    JOIN pages p ON p.id = v.page_id WHERE p.url = ? ORDER BY v.version DESC"""
_HAPPENINGS = """SELECT h.seq, h.at, h.what, h.page_id, p.url, s.site, h.version, h.similarity,
    coalesce(v.title, '') FROM happenings h JOIN pages p ON p.id = h.page_id JOIN sites s ON s.id = p.site_id
    LEFT JOIN versions v ON v.page_id = h.page_id AND v.version = h.version
    WHERE h.seq > ? ORDER BY h.seq LIMIT ?"""
_SCANNED_AT_ONCE = 32

_headers = msgspec.msgpack.Decoder(tuple[tuple[str, str], ...]).decode


class SqliteDocuments:
    def __init__(self, database: Database) -> None:
        self._database = database

    def document(self, url: str, version: int | None = None) -> Document | None:
        rows = self._database.rows(_BY_URL, (version, plain_text(url)))
        return _document(rows[0][:-1], rows[0][-1]) if rows else None

    def versions(self, url: str) -> list[VersionInfo]:
        return [VersionInfo(*row) for row in self._database.rows(_VERSIONS, (plain_text(url),))]

    def changes(self, after: int, limit: int) -> list[Change]:
        return [_change(row) for row in self._database.rows(_CHANGED, (after, max(0, limit)))]

    def happenings(self, after: int, limit: int) -> list[Happening]:
        rows = self._database.rows(_HAPPENINGS, (after, max(0, limit)))
        return [Happening(seq, at, HAPPENED[what], *rest) for seq, at, what, *rest in rows]

    def newest_seq(self) -> int:
        (newest,) = self._database.rows("SELECT coalesce(max(seq), 0) FROM pages WHERE seq IS NOT NULL")[0]
        return int(newest)

    def scan(self) -> Iterator[Document]:
        last = 0
        while rows := self._database.rows(_SCAN, (last, _SCANNED_AT_ONCE)):
            last = rows[-1][0]
            for row in rows:
                yield _document(row[:-1], row[-1])


def _change(row: Row) -> Change:
    seq, page_id, url, site, *_ = row
    shown = row[13] and not row[14]
    return Change(seq, page_id, url, site, _document(row[1:], b"") if shown else None)


def _document(row: Row, body_zstd: bytes) -> Document:
    id, url, site, version, title, language, charset, status, fetched_at, met_at, *rest = row
    words, similarity, searchable, gone, current, headers, text_zstd = rest
    try:
        decoded = _headers(headers)
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"what is stored of the headers of {url} is not readable ({error})") from error
    return Document(
        page_id=id,
        url=url,
        site=site,
        version=version,
        title=title,
        language=language,
        charset=charset,
        text=unpacked(text_zstd).decode("utf-8", "replace"),
        body=unpacked(body_zstd),
        status=status,
        headers=decoded,
        fetched_at=fetched_at,
        checked_at=met_at if version == current else fetched_at,
        words=words,
        similarity=similarity,
        searchable=bool(searchable),
        gone=bool(gone),
    )
