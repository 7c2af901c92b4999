"""What are the pages like that were visited before? The `Census` port on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

from levada.adapters.keeping import checked_one_in
from levada.adapters.page_rows import page_record
from levada.adapters.postgresql.database import Database
from levada.adapters.postgresql.page_columns import FROM_PAGES, PAGE_COLUMNS
from levada.records import PageRecord

__all__ = ["DRAWN", "PostgresqlCensus"]

DRAWN = "((((p.id & 16777215) * 40503 + (p.id >> 24) * 30011) >> 4) & (%s - 1)) = 0"
"""`levada.hashing.drawn` of the page `p`."""

# Slice by slice instead of one long statement: a long one would keep the server from clearing what is outdated.
_SAMPLE = f"""SELECT {PAGE_COLUMNS} {FROM_PAGES} WHERE p.id > %s AND d.version > 0 AND NOT d.gone AND {DRAWN}
    ORDER BY p.id LIMIT %s"""
_STORED = "SELECT n FROM counters WHERE name = 'stored'"
_READ_AT_ONCE = 500


class PostgresqlCensus:
    def __init__(self, database: Database) -> None:
        self._database = database

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        one_in, last = checked_one_in(one_in), 0
        while rows := self._database.rows(_SAMPLE, (last, one_in, _READ_AT_ONCE)):
            last = rows[-1][0]
            yield from map(page_record, rows)

    def live_pages(self) -> int:
        rows = self._database.rows(_STORED)
        return int(rows[0][0]) if rows else 0
