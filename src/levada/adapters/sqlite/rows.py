"""How does a row become a record, and a record a row?"""

from __future__ import annotations

import struct

from levada.adapters.sqlite.database import Row
from levada.adapters.sqlite.schema import HAPPENED, HOWS, KINDS, STATES
from levada.reasons import Reason
from levada.records import Outcome, PageRecord, Said, Visit

__all__ = [
    "FROM_LISTED_PAGES",
    "FROM_PAGES",
    "HAPPENED_CODE",
    "HOW_CODE",
    "KIND_CODE",
    "PAGE_COLUMNS",
    "STATE_CODE",
    "packed_history",
    "page_record",
]

KIND_CODE = {kind: code for code, kind in enumerate(KINDS)}
HAPPENED_CODE = {what: code for code, what in enumerate(HAPPENED)}
HOW_CODE = {how: code for code, how in enumerate(HOWS)}
STATE_CODE = {state: code for code, state in enumerate(STATES)}

PAGE_COLUMNS = """p.id, p.url, s.site, coalesce(v.kind, p.kind), coalesce(v.state, 0), p.how, p.depth, p.hops,
    p.found_at, p.found_on, v.reason, coalesce(v.visits, 0), v.history, v.interval, v.next_visit,
    coalesce(v.failures, 0), p.version, p.etag, p.last_modified, p.body_digest, p.text_digest, p.sketch,
    coalesce(v.memory, x''), coalesce(v.told, 0)"""
_JOINED = "JOIN sites s ON s.id = p.site_id LEFT JOIN visited v ON v.page_id = p.id"
FROM_PAGES = f"FROM pages p {_JOINED}"
# A list of ids as a table: one statement reads a whole batch, in the order of the list (hence CROSS).
FROM_LISTED_PAGES = f"FROM json_each(?) listed CROSS JOIN pages p ON p.id = listed.value {_JOINED}"

_VISIT = struct.Struct("<dBBB")
_OUTCOMES = tuple(Outcome)
_SAID = tuple(map(Said, range(256)))


def packed_history(history: tuple[Visit, ...]) -> bytes:
    """Eleven bytes a visit: when, what it met, how similar in steps of 1/255, and what others had said."""
    return b"".join(
        _VISIT.pack(visit.at, visit.outcome, round(visit.similarity * 255), visit.said) for visit in history
    )


def page_record(row: Row) -> PageRecord:
    """The record of a row of `PAGE_COLUMNS`."""
    id, url, site, kind, state, how, depth, hops, found_at, found_on, reason, visits, history, *rest = row
    interval, next_visit, failures, version, etag, last_modified, body, text, sketch, memory, told = rest
    return PageRecord(
        id,
        url,
        site,
        KINDS[kind],
        STATES[state],
        HOWS[how],
        depth,
        hops,
        found_at,
        found_on,
        reason and Reason(reason),
        visits,
        _history(history or b""),
        interval,
        next_visit if visits else found_at,
        failures,
        version,
        etag,
        last_modified,
        body,
        text,
        sketch,
        memory,
        Said(told),
    )


def _history(packed: bytes) -> tuple[Visit, ...]:
    return tuple(
        Visit(at, _OUTCOMES[outcome], step / 255, _SAID[said])
        for at, outcome, step, said in _VISIT.iter_unpack(packed)
    )
