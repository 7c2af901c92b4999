"""How does a row of a store become a page's record, and a visit a row? The same in every database.

Enumerations are stored by the numbers given here, which must never change their meaning.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

from levada.adapters.keeping import met_content, remember
from levada.reasons import Reason
from levada.records import Happened, How, Outcome, PageKind, PageRecord, PageState, Said, Settled, Visit

__all__ = [
    "HAPPENED",
    "HAPPENED_CODE",
    "HOWS",
    "HOW_CODE",
    "KINDS",
    "KIND_CODE",
    "STATES",
    "STATE_CODE",
    "Row",
    "packed_history",
    "page_record",
    "visit_row",
]

Row = tuple[Any, ...]

KINDS = (PageKind.PAGE, PageKind.SITEMAP, PageKind.FEED)
HOWS = (How.SEED, How.FRONT, How.LINK, How.SITEMAP, How.FEED, How.CANONICAL, How.REDIRECT)
HAPPENED = (Happened.NEW, Happened.CHANGED, Happened.GONE, Happened.BACK)
STATES = (
    PageState.NEW,
    PageState.LIVE,
    PageState.FAILED,
    PageState.GONE,
    PageState.REFUSED,
    PageState.ELSEWHERE,
    PageState.QUARANTINED,
)
KIND_CODE = {kind: code for code, kind in enumerate(KINDS)}
HAPPENED_CODE = {what: code for code, what in enumerate(HAPPENED)}
HOW_CODE = {how: code for code, how in enumerate(HOWS)}
STATE_CODE = {state: code for code, state in enumerate(STATES)}

_VISIT = struct.Struct("<dBBB")
_OUTCOMES = tuple(Outcome)
_said = cache(Said)


def packed_history(history: tuple[Visit, ...]) -> bytes:
    """Eleven bytes a visit: when, what it met, how similar in steps of 1/255, and what others had said."""
    return b"".join(
        _VISIT.pack(visit.at, visit.outcome, round(visit.similarity * 255), visit.said) for visit in history
    )


def page_record(row: Row) -> PageRecord:
    """The record of a row; each store's `PAGE_COLUMNS` are in this order."""
    id, url, site, kind, state, how, depth, hops, found_at, found_on, reason, visits, history, *rest = row
    interval, next_visit, failures, version, etag, last_modified, body, text, sketch, memory, told, leads_to = rest
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
        leads_to,
    )


def visit_row(settled: Settled) -> Row:
    """Kind, state, reason, leads_to, visits, history, met_at, interval, next_visit, failures, memory, page id."""
    page = settled.lease.page
    return (
        KIND_CODE[settled.kind],
        STATE_CODE[settled.state],
        settled.reason,
        settled.leads_to,
        page.visits + 1,
        packed_history(remember(page.history, settled.visit)),
        settled.visit.at if met_content(settled) else None,
        settled.interval,
        settled.next_visit,
        settled.failures,
        settled.memory or None,
        page.id,
    )


def _history(packed: bytes) -> tuple[Visit, ...]:
    return tuple(
        Visit(at, _OUTCOMES[outcome], step / 255, _said(said))
        for at, outcome, step, said in _VISIT.iter_unpack(packed)
    )
