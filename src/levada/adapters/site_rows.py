"""How does a row of a store become the record of a site? The same in every database."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from levada.adapters.keeping import plain_text
from levada.adapters.page_rows import Row
from levada.errors import StoreDamaged
from levada.reasons import Reason
from levada.records import RobotsRecord, SiteRecord

__all__ = ["packed_robots", "site_record"]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[tuple[str, RobotsRecord], ...]).decode


def packed_robots(record: SiteRecord) -> bytes:
    return _encode([(scheme, _writable(each)) for scheme, each in record.robots])


def site_record(row: Row, refused: Iterable[Row]) -> SiteRecord:
    """Of id, site, admitted, pages, failures, rest_until, delay, robots; `refused` are reason, n, example."""
    _, site, admitted, pages, failures, rest_until, delay, robots = row
    return SiteRecord(
        site=site,
        admitted=bool(admitted),
        pages=pages,
        failures=failures,
        rest_until=rest_until,
        delay=delay,
        robots=_robots(robots, site),
        refused=tuple((Reason(reason), n, example) for reason, n, example in refused),
    )


def _writable(record: RobotsRecord) -> RobotsRecord:
    return msgspec.structs.replace(record, text=plain_text(record.text))


def _robots(robots: bytes | None, site: str) -> tuple[tuple[str, RobotsRecord], ...]:
    try:
        return _decode(robots) if robots else ()
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"what is stored of robots.txt of {site} is not readable ({error})") from error
