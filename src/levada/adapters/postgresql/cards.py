"""What is told of each page of a shard in one piece? The `CardShelf` and `Stamps` of a shard on PostgreSQL."""

from __future__ import annotations

from levada.adapters.faults import NoFaults
from levada.adapters.limits import StoreLimits
from levada.adapters.page_cards import PageCard, Stamp, card_of
from levada.adapters.page_rows import page_record
from levada.adapters.postgresql.connecting import Address
from levada.adapters.postgresql.database import Database
from levada.adapters.postgresql.page_columns import FROM_PAGES, PAGE_COLUMNS
from levada.adapters.postgresql.schema import URL_INDEXED

__all__ = ["PostgresqlCards"]

# The index of addresses holds their beginnings; the whole address decides.
_RANGE = f"""left(p.url, {URL_INDEXED}) >= left(%(low)s, {URL_INDEXED})
    AND left(p.url, {URL_INDEXED}) <= left(%(high)s, {URL_INDEXED}) AND p.url >= %(low)s AND p.url < %(high)s"""
_ORDER = f"ORDER BY left(p.url, {URL_INDEXED}), p.url"
_COUNT = f"SELECT count(*) FROM pages p WHERE {_RANGE}"  # noqa: S608
_URLS = f"""SELECT p.url FROM pages p WHERE {_RANGE}
    AND mod(((p.id & 16777215) * 40503 + (p.id >> 24) * 30011) >> 4, %(one_in)s) = 0 {_ORDER}"""  # noqa: S608
_CARDS = f"""SELECT {PAGE_COLUMNS}, v.met_at, w.title, w.words, w.fetched_at {FROM_PAGES}
    LEFT JOIN versions w ON w.page_id = p.id AND w.version = d.version
    WHERE {_RANGE} AND v.page_id IS NOT NULL
    AND (%(since)s::float8 IS NULL OR v.met_at >= %(since)s OR v.state <> 1 OR v.failures > 0)
    {_ORDER} LIMIT %(limit)s"""
_NEWEST = "SELECT coalesce(max(met_at), 0) FROM visited"
_STAMP = "SELECT visits, next_visit, met_at FROM visited WHERE page_id = %s"


class PostgresqlCards:
    """`name` is the shard's, as its cards say it. Threads may share it."""

    def __init__(self, dsn: str, schema: str, name: str) -> None:
        self._name = name
        self._database = Database(Address(dsn, schema), StoreLimits(), NoFaults(), read_only=True)

    def count(self, low: str, high: str) -> int:
        ((found,),) = self._database.rows(_COUNT, {"low": low, "high": high})
        return int(found)

    def urls(self, low: str, high: str, one_in: int) -> list[str]:
        return [url for (url,) in self._database.rows(_URLS, {"low": low, "high": high, "one_in": one_in})]

    def cards(self, low: str, high: str, limit: int, since: float | None) -> list[tuple[str, PageCard]]:
        asked = {"low": low, "high": high, "limit": limit, "since": since}
        return [self._card(*row) for row in self._database.rows(_CARDS, asked)]

    def newest(self) -> float:
        ((found,),) = self._database.rows(_NEWEST)
        return float(found)

    def stamp(self, page_id: int) -> Stamp | None:
        rows = self._database.rows(_STAMP, (page_id,))
        return Stamp(*rows[0]) if rows else None

    def mark(self) -> int | None:
        return None

    def close(self) -> None:
        self._database.close()

    def _card(self, *row: object) -> tuple[str, PageCard]:
        *columns, met_at, title, words, fetched_at = row
        page = page_record(tuple(columns))
        card = card_of(page, title, words, fetched_at, shard=self._name, met_at=met_at)  # type: ignore[arg-type]
        return page.url, card
