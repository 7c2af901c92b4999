"""What are the pages like that were visited before? The `Census` port on SQLite."""

from __future__ import annotations

from collections.abc import Iterator

from levada.adapters.keeping import checked_one_in
from levada.adapters.page_rows import page_record
from levada.adapters.sqlite.counters import read_counters
from levada.adapters.sqlite.database import Database
from levada.adapters.sqlite.rows import FROM_PAGES, PAGE_COLUMNS
from levada.records import PageRecord

__all__ = ["DRAWN", "SqliteCensus"]

DRAWN = "((((p.id & 16777215) * 40503 + (p.id >> 24) * 30011) >> 4) & (?1 - 1)) = 0"
"""`levada.hashing.drawn` of the page `p`, one in `?1`."""

# Slice by slice instead of one long statement: nobody who writes meanwhile waits for, or disturbs, the reader.
_SAMPLE = f"""SELECT {PAGE_COLUMNS} {FROM_PAGES} WHERE p.id > ?2 AND p.version > 0 AND p.gone = 0 AND {DRAWN}
    ORDER BY p.id LIMIT ?3"""
_READ_AT_ONCE = 256


class SqliteCensus:
    def __init__(self, database: Database) -> None:
        self._database = database

    def sample(self, one_in: int) -> Iterator[PageRecord]:
        one_in, last = checked_one_in(one_in), 0
        while rows := self._database.rows(_SAMPLE, (one_in, last, _READ_AT_ONCE)):
            last = rows[-1][0]
            yield from map(page_record, rows)

    def live_pages(self) -> int:
        with self._database.read() as connection:
            return read_counters(connection).get("stored", 0)
