"""What does this shard hold of a page? Packed as it leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from levada.adapters.document_rows import stored_version
from levada.adapters.moving import MovedPage, MovedVersion
from levada.adapters.page_rows import Row, page_record
from levada.adapters.postgresql.database import Write
from levada.adapters.postgresql.page_columns import FROM_LISTED_PAGES, PAGE_COLUMNS
from levada.adapters.site_rows import site_record
from levada.records import SiteRecord

__all__ = ["packed_pages"]

_EXTRA = "p.site_id, p.priority, coalesce(v.met_at, 0), coalesce(d.gone, false)"
_PAGES = f"SELECT {_EXTRA}, {PAGE_COLUMNS} {FROM_LISTED_PAGES}"
_SITES = """SELECT s.turn_at, s.id, s.site, s.admitted, s.pages, s.failures, s.rest_until, s.delay, r.records
    FROM sites s LEFT JOIN robots r ON r.site_id = s.id WHERE s.id = ANY(%s::bigint[])"""
_VERSIONS = """SELECT page_id, version, fetched_at, title, language, charset, status, headers, content_zstd,
    words, distinct_words, similarity, searchable FROM versions
    WHERE page_id = ANY(%s::bigint[]) ORDER BY page_id, version"""


def packed_pages(write: Write, ids: Sequence[int]) -> list[MovedPage]:
    listed = (list(ids),)
    rows = write.rows(_PAGES, listed)
    sites = _sites(write, {row[0] for row in rows})
    versions = _by_page(write.rows(_VERSIONS, listed))
    moved = []
    for site_id, priority, met_at, gone, *facts in rows:
        page = page_record(tuple(facts))
        contents = tuple(_version(row, page.sketch or b"") for row in versions[page.id])
        moved.append(MovedPage(page, *sites[site_id], priority, met_at, gone, contents))
    return moved


def _sites(write: Write, ids: set[int]) -> dict[int, tuple[SiteRecord, float]]:
    rows = write.rows(_SITES, (sorted(ids),))
    return {facts[0]: (site_record(tuple(facts), ()), turn_at) for turn_at, *facts in rows}


def _by_page(rows: Sequence[Row]) -> defaultdict[int, list[Row]]:
    grouped: defaultdict[int, list[Row]] = defaultdict(list)
    for page_id, *row in rows:
        grouped[page_id].append(tuple(row))
    return grouped


def _version(row: Row, sketch: bytes) -> MovedVersion:
    number, fetched_at, *content = row
    return MovedVersion(number, fetched_at, stored_version(tuple(content), sketch))
