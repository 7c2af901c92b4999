"""What is told of each page of a shard in one piece? The `CardShelf` and `Stamps` of a shard on SQLite."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from levada.adapters.limits import StoreLimits
from levada.adapters.page_cards import PageCard, Stamp, card_of
from levada.adapters.page_rows import Row, page_record
from levada.adapters.sqlite.failures import translated
from levada.adapters.sqlite.opening import connect
from levada.adapters.sqlite.rows import FROM_PAGES, PAGE_COLUMNS

__all__ = ["SqliteCards"]

_RANGE = "p.url >= ? AND p.url < ?"
_COUNT = f"SELECT count(*) FROM pages p WHERE {_RANGE}"  # noqa: S608
# By the index of addresses alone, which holds the ids as well.
_URLS = f"""SELECT p.url FROM pages p WHERE {_RANGE}
    AND ((((p.id & 16777215) * 40503 + (p.id >> 24) * 30011) >> 4) % ?) = 0 ORDER BY p.url"""  # noqa: S608
_CARDS = f"""SELECT {PAGE_COLUMNS}, v.met_at, w.title, w.words, w.fetched_at {FROM_PAGES}
    LEFT JOIN versions w ON w.page_id = p.id AND w.version = p.version
    WHERE {_RANGE} AND v.page_id IS NOT NULL {{since}} ORDER BY p.url LIMIT ?"""
_ALL = _CARDS.format(since="")
# A visit that failed is not in `met_at`.
_SINCE = _CARDS.format(since="AND (v.met_at >= ? OR v.state <> 1 OR v.failures > 0)")
_NEWEST = "SELECT coalesce(max(met_at), 0) FROM visited"
_STAMP = "SELECT visits, next_visit, met_at FROM visited WHERE page_id = ?"
_CACHE_BYTES = 8 << 20


class SqliteCards:
    """`name` is the shard's, as its cards say it. For one thread at a time."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._connection = connect(path, StoreLimits(cache_bytes=_CACHE_BYTES), read_only=True)
        self._cursor = self._connection.cursor()

    def count(self, low: str, high: str) -> int:
        ((found,),) = self._rows(_COUNT, (low, high))
        return int(found)

    def urls(self, low: str, high: str, one_in: int) -> list[str]:
        return [url for (url,) in self._rows(_URLS, (low, high, one_in))]

    def cards(self, low: str, high: str, limit: int, since: float | None) -> list[tuple[str, PageCard]]:
        asked, given = (_ALL, (low, high)) if since is None else (_SINCE, (low, high, since))
        return [self._card(*row) for row in self._rows(asked, (*given, limit))]

    def newest(self) -> float:
        ((found,),) = self._rows(_NEWEST)
        return float(found)

    def stamp(self, page_id: int) -> Stamp | None:
        rows = self._rows(_STAMP, (page_id,))
        return Stamp(*rows[0]) if rows else None

    def mark(self) -> int | None:
        """Another one after every commit of anybody else."""
        ((found,),) = self._rows("PRAGMA data_version")
        return int(found)

    def close(self) -> None:
        self._connection.close()

    def _rows(self, sql: str, parameters: Row = ()) -> list[Row]:
        try:
            return self._cursor.execute(sql, parameters).fetchall()
        except (sqlite3.Error, OSError) as error:
            raise translated(error, self._path) from error

    def _card(self, *row: object) -> tuple[str, PageCard]:
        *columns, met_at, title, words, fetched_at = row
        page = page_record(tuple(columns))
        card = card_of(page, title, words, fetched_at, shard=self._name, met_at=met_at)  # type: ignore[arg-type]
        return page.url, card
