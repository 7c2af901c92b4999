"""What was on a page, now and before? The `Documents` port on SQLite."""

from __future__ import annotations

from collections.abc import Iterator

from levada.adapters.document_rows import change_record, document_record
from levada.adapters.keeping import plain_text
from levada.adapters.page_rows import HAPPENED
from levada.adapters.sqlite.database import Database
from levada.records import Change, Document, Happening, VersionInfo

__all__ = ["SqliteDocuments"]

_DOCUMENT = """p.id, p.url, s.site, v.version, v.title, v.language, v.charset, v.status, v.fetched_at, h.met_at,
    v.words, v.similarity, v.searchable, p.gone, p.version, v.headers, v.content_zstd"""
_TABLES = """FROM pages p JOIN sites s ON s.id = p.site_id JOIN visited h ON h.page_id = p.id
    JOIN versions v ON v.page_id = p.id"""
_BY_URL = f"SELECT {_DOCUMENT} {_TABLES} AND v.version = coalesce(?, p.version) WHERE p.url = ?"
# One statement, so that both halves are of one moment: whoever follows would pass over what comes between them.
_CHANGED = f"""SELECT p.seq, coalesce(a.version, 0), {_DOCUMENT} {_TABLES} AND v.version = p.version
    LEFT JOIN arrived a ON a.page_id = p.id WHERE p.seq > ?1
    UNION ALL SELECT seq, 0, page_id, url, site, {", ".join(["NULL"] * 14)} FROM departed WHERE seq > ?1
    ORDER BY 1 LIMIT ?2"""  # noqa: S608
_NEWEST = """SELECT max((SELECT coalesce(max(seq), 0) FROM pages WHERE seq IS NOT NULL),
    (SELECT coalesce(max(seq), 0) FROM departed))"""
_SCAN = f"""SELECT {_DOCUMENT} {_TABLES} AND v.version = p.version
    WHERE p.id > ? AND p.gone = 0 ORDER BY p.id LIMIT ?"""
_VERSIONS = """SELECT v.version, v.fetched_at, v.title, v.words, v.similarity FROM versions v
    JOIN pages p ON p.id = v.page_id WHERE p.url = ? ORDER BY v.version DESC"""
# What happened before a page moved to another shard stays in the log of this one.
_HAPPENINGS = """SELECT h.seq, h.at, h.what, h.page_id, coalesce(p.url, d.url), coalesce(s.site, d.site), h.version,
    h.similarity, coalesce(v.title, '') FROM happenings h
    LEFT JOIN pages p ON p.id = h.page_id LEFT JOIN sites s ON s.id = p.site_id
    LEFT JOIN versions v ON v.page_id = h.page_id AND v.version = h.version
    LEFT JOIN departed d ON d.page_id = h.page_id
    WHERE h.seq > ? AND coalesce(p.url, d.url) IS NOT NULL ORDER BY h.seq LIMIT ?"""
_SCANNED_AT_ONCE = 32


class SqliteDocuments:
    def __init__(self, database: Database) -> None:
        self._database = database

    def document(self, url: str, version: int | None = None) -> Document | None:
        rows = self._database.rows(_BY_URL, (version, plain_text(url)))
        return document_record(rows[0]) if rows else None

    def versions(self, url: str) -> list[VersionInfo]:
        return [VersionInfo(*row) for row in self._database.rows(_VERSIONS, (plain_text(url),))]

    def changes(self, after: int, limit: int) -> list[Change]:
        return [change_record(row) for row in self._database.rows(_CHANGED, (after, max(0, limit)))]

    def happenings(self, after: int, limit: int) -> list[Happening]:
        rows = self._database.rows(_HAPPENINGS, (after, max(0, limit)))
        return [Happening(seq, at, HAPPENED[what], *rest) for seq, at, what, *rest in rows]

    def newest_seq(self) -> int:
        (newest,) = self._database.rows(_NEWEST)[0]
        return int(newest)

    def scan(self) -> Iterator[Document]:
        last = 0
        while rows := self._database.rows(_SCAN, (last, _SCANNED_AT_ONCE)):
            last = rows[-1][0]
            for row in rows:
                yield document_record(row)
