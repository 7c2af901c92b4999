"""What is known of each site? The `Sites` port on SQLite."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from levada.adapters.keeping import plain_text
from levada.adapters.sqlite.database import Database, Row, Write
from levada.adapters.sqlite.leasing import earliest_due
from levada.errors import StoreDamaged
from levada.reasons import Reason
from levada.records import RobotsRecord, SiteRecord

__all__ = ["SqliteSites"]

_COLUMNS = """s.id, s.site, s.admitted, s.pages, s.failures, s.rest_until, s.delay, r.records
    FROM sites s LEFT JOIN robots r ON r.site_id = s.id"""
_SAVE = """INSERT INTO sites (site, admitted, failures, rest_until, delay) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (site) DO UPDATE SET admitted = max(admitted, excluded.admitted), failures = excluded.failures,
    rest_until = excluded.rest_until, delay = excluded.delay"""
_SAVE_ROBOTS = """INSERT INTO robots (site_id, records) VALUES (?, ?)
    ON CONFLICT (site_id) DO UPDATE SET records = excluded.records"""
_PAGE_OF_SITES = 200

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[tuple[str, RobotsRecord], ...]).decode


class SqliteSites:
    def __init__(self, database: Database) -> None:
        self._database = database

    def site(self, site: str) -> SiteRecord | None:
        rows = self._database.rows(f"SELECT {_COLUMNS} WHERE s.site = ?", (plain_text(site),))
        return self._record(rows[0]) if rows else None

    def save(self, record: SiteRecord) -> None:
        robots = _encode([(scheme, _writable(each)) for scheme, each in record.robots])
        with self._database.write("save-site") as write:
            write.reach("site")
            known = write.execute("SELECT id FROM sites WHERE site = ?", (record.site,)).fetchone()
            row = (record.site, record.admitted, record.failures, record.rest_until, record.delay)
            write.execute(_SAVE, row)
            if known is None:
                write.counters.add("sites")
            (id,) = write.execute("SELECT id FROM sites WHERE site = ?", (record.site,)).fetchone()
            write.execute(_SAVE_ROBOTS, (id, robots))
            _set_turn(write, id)

    def sites(self) -> Iterator[SiteRecord]:
        last = 0
        while rows := self._database.rows(
            f"SELECT {_COLUMNS} WHERE s.id > ? ORDER BY s.id LIMIT {_PAGE_OF_SITES}", (last,)
        ):
            last = rows[-1][0]
            yield from map(self._record, rows)

    def _record(self, row: Row) -> SiteRecord:
        id, site, admitted, pages, failures, rest_until, delay, robots = row
        refused = self._database.rows(
            "SELECT reason, n, example FROM refusals WHERE site_id = ? ORDER BY reason", (id,)
        )
        return SiteRecord(
            site=site,
            admitted=bool(admitted),
            pages=pages,
            failures=failures,
            rest_until=rest_until,
            delay=delay,
            robots=_decoded(robots, site),
            refused=tuple((Reason(reason), n, example) for reason, n, example in refused),
        )


def _set_turn(write: Write, site: int) -> None:
    """Rest may have been set or ended: say anew when the site's next page may be had."""
    write.execute(
        "UPDATE sites SET due_at = max(?1, turn_at, rest_until) WHERE id = ?2", (earliest_due(write, site), site)
    )


def _writable(record: RobotsRecord) -> RobotsRecord:
    return msgspec.structs.replace(record, text=plain_text(record.text))


def _decoded(robots: bytes | None, site: str) -> tuple[tuple[str, RobotsRecord], ...]:
    try:
        return _decode(robots) if robots else ()
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"what is stored of robots.txt of {site} is not readable ({error})") from error
