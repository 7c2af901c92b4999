"""What does this shard hold of a page? Packed as it leaves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from levada.adapters.document_rows import stored_version
from levada.adapters.moving import MovedPage, MovedVersion
from levada.adapters.page_rows import Row, page_record
from levada.adapters.site_rows import site_record
from levada.adapters.sqlite.rows import FROM_LISTED_PAGES, PAGE_COLUMNS
from levada.records import SiteRecord

__all__ = ["packed_pages"]

_PAGES = f"""SELECT p.site_id, p.priority, coalesce(v.met_at, 0), p.gone, {PAGE_COLUMNS} {FROM_LISTED_PAGES}"""
_SITE = """SELECT s.turn_at, s.id, s.site, s.admitted, s.pages, s.failures, s.rest_until, s.delay, r.records
    FROM sites s LEFT JOIN robots r ON r.site_id = s.id WHERE s.id = ?"""
_VERSIONS = """SELECT version, fetched_at, title, language, charset, status, headers, content_zstd, words,
    distinct_words, similarity, searchable FROM versions WHERE page_id = ? ORDER BY version"""


def packed_pages(connection: sqlite3.Connection, ids: Sequence[int]) -> list[MovedPage]:
    sites: dict[int, tuple[SiteRecord, float]] = {}
    pages = []
    for row in connection.execute(_PAGES, (json.dumps(list(ids)),)).fetchall():
        if row[0] not in sites:
            turn_at, *facts = connection.execute(_SITE, (row[0],)).fetchone()
            sites[row[0]] = site_record(tuple(facts), ()), turn_at
        pages.append(_packed(connection, row, *sites[row[0]]))
    return pages


def _packed(connection: sqlite3.Connection, row: Row, site: SiteRecord, turn_at: float) -> MovedPage:
    _, priority, met_at, gone, *facts = row
    page = page_record(tuple(facts))
    versions = [_version(each, page.sketch or b"") for each in connection.execute(_VERSIONS, (page.id,))]
    return MovedPage(page, site, turn_at, priority, met_at, bool(gone), tuple(versions))


def _version(row: Row, sketch: bytes) -> MovedVersion:
    number, fetched_at, *content = row
    return MovedVersion(number, fetched_at, stored_version(tuple(content), sketch))
