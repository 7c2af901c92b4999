"""What was on a page, now and before? The `Documents` port on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

from levada.adapters.document_rows import change_record, document_record
from levada.adapters.page_rows import HAPPENED
from levada.adapters.postgresql.database import Database
from levada.adapters.postgresql.page_columns import BY_URL, url_rest
from levada.records import Change, Document, Happening, VersionInfo

__all__ = ["PostgresqlDocuments"]

_DOCUMENT = """p.id, p.url, s.site, v.version, v.title, v.language, v.charset, v.status, v.fetched_at, h.met_at,
    v.words, v.similarity, v.searchable, d.gone, d.version, v.headers, v.content_zstd"""
_TABLES = """FROM documents d JOIN pages p ON p.id = d.page_id JOIN sites s ON s.id = p.site_id
    JOIN visited h ON h.page_id = d.page_id JOIN versions v ON v.page_id = d.page_id"""
_BY_URL = f"SELECT {_DOCUMENT} {_TABLES} AND v.version = coalesce(%s, d.version) WHERE {BY_URL}"
# One statement, so that both halves are of one moment: whoever follows would pass over what comes between them.
_ARRIVED = "LEFT JOIN arrived a ON a.page_id = d.page_id"
_DEPARTED = f"seq, 0, page_id, url, site, {', '.join(['NULL'] * 14)} FROM departed"
_CHANGED = f"""(SELECT d.seq, coalesce(a.version, 0), {_DOCUMENT} {_TABLES} AND v.version = d.version {_ARRIVED}
    WHERE d.seq > %(after)s ORDER BY d.seq LIMIT %(limit)s)
    UNION ALL (SELECT {_DEPARTED} WHERE seq > %(after)s ORDER BY seq LIMIT %(limit)s)
    ORDER BY 1 LIMIT %(limit)s"""
_NEWEST = """SELECT greatest((SELECT coalesce(max(seq), 0) FROM documents WHERE seq IS NOT NULL),
    (SELECT coalesce(max(seq), 0) FROM departed))"""
_SCAN = f"""SELECT {_DOCUMENT} {_TABLES} AND v.version = d.version
    WHERE d.page_id > %s AND NOT d.gone ORDER BY d.page_id LIMIT %s"""
_ALL_VERSIONS = """v.version, v.fetched_at, v.title, v.words, v.similarity FROM versions v
    JOIN pages p ON p.id = v.page_id"""
_VERSIONS = f"SELECT {_ALL_VERSIONS} WHERE {BY_URL} ORDER BY v.version DESC"
# What happened before a page moved to another shard stays in the log of this one.
_HAPPENINGS = """SELECT h.seq, h.at, h.what, h.page_id, coalesce(p.url, d.url), coalesce(s.site, d.site), h.version,
    h.similarity, coalesce(v.title, '') FROM happenings h
    LEFT JOIN pages p ON p.id = h.page_id LEFT JOIN sites s ON s.id = p.site_id
    LEFT JOIN versions v ON v.page_id = h.page_id AND v.version = h.version
    LEFT JOIN departed d ON d.page_id = h.page_id
    WHERE h.seq > %s AND coalesce(p.url, d.url) IS NOT NULL ORDER BY h.seq LIMIT %s"""
_SCANNED_AT_ONCE = 32


class PostgresqlDocuments:
    def __init__(self, database: Database) -> None:
        self._database = database

    def document(self, url: str, version: int | None = None) -> Document | None:
        rows = self._database.rows(_BY_URL, (version, url, url_rest(url)))
        return document_record(rows[0]) if rows else None

    def versions(self, url: str) -> list[VersionInfo]:
        return [VersionInfo(*row) for row in self._database.rows(_VERSIONS, (url, url_rest(url)))]

    def changes(self, after: int, limit: int) -> list[Change]:
        return [
            change_record(row) for row in self._database.rows(_CHANGED, {"after": after, "limit": max(0, limit)})
        ]

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
