"""Row codecs: how pages, documents and sites are written as rows, the same in every database.

Enumerations are stored as the numbers given here, which must never change their meaning.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec

from levada.core.errors import StoreDamaged
from levada.core.reasons import Reason
from levada.core.records import (
    Change,
    ChangeKind,
    DiscoveredBy,
    Document,
    DocumentFacts,
    FoundUrl,
    NewVersion,
    OutboxLink,
    Outcome,
    PageKind,
    PageRecord,
    PageState,
    RobotsRecord,
    Signals,
    SiteRecord,
    Visit,
    VisitResult,
)
from levada.pages.compression import picture_of
from levada.store.base import MovedPage, MovedVersion
from levada.store.rules import met_content, plain_text, remember, unpacked, unpacked_text

Row = tuple[Any, ...]

KINDS = (PageKind.PAGE, PageKind.SITEMAP, PageKind.FEED)
HOWS = (
    DiscoveredBy.SEED,
    DiscoveredBy.FRONT,
    DiscoveredBy.LINK,
    DiscoveredBy.SITEMAP,
    DiscoveredBy.FEED,
    DiscoveredBy.CANONICAL,
    DiscoveredBy.REDIRECT,
)
CHANGE_KINDS = (ChangeKind.NEW, ChangeKind.CHANGED, ChangeKind.GONE, ChangeKind.BACK)
CONTENT = -3
"""The column with the frame, in a row of a document or a change."""

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
CHANGE_KIND_CODE = {what: code for code, what in enumerate(CHANGE_KINDS)}
HOW_CODE = {how: code for code, how in enumerate(HOWS)}
STATE_CODE = {state: code for code, state in enumerate(STATES)}

_VISIT = struct.Struct("<dBBB")
_OUTCOMES = tuple(Outcome)
_signals = cache(Signals)

_encode = msgspec.msgpack.Encoder().encode
_decode_headers = msgspec.msgpack.Decoder(tuple[tuple[str, str], ...]).decode
_decode_robots = msgspec.msgpack.Decoder(tuple[tuple[str, RobotsRecord], ...]).decode
_decode_facts = msgspec.msgpack.Decoder(DocumentFacts).decode
_decode_link = msgspec.msgpack.Decoder(FoundUrl).decode


def page_record(row: Row) -> PageRecord:
    """Read a row with each store's `PAGE_COLUMNS`, which are in this order."""
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
        Signals(told),
        leads_to,
    )


def visit_row(result: VisitResult) -> Row:
    """The columns kind, state, reason, leads_to, visits, history, met_at, interval, next_visit, failures, memory,
    page id."""
    page = result.lease.page
    return (
        KIND_CODE[result.kind],
        STATE_CODE[result.state],
        result.reason,
        result.leads_to,
        page.visits + 1,
        _packed_history(remember(page.history, result.visit)),
        result.visit.at if met_content(result) else None,
        result.interval,
        result.next_visit,
        result.failures,
        result.memory or None,
        page.id,
    )


def moved_visit_row(moved: MovedPage, site_id: int) -> Row:
    """The columns page id, site id, kind, state, visits, failures, met_at, interval, next_visit, reason, leads_to,
    told, history, memory."""
    page = moved.page
    return (
        page.id,
        site_id,
        KIND_CODE[page.kind],
        STATE_CODE[page.state],
        page.visits,
        page.failures,
        moved.met_at,
        page.interval,
        page.next_visit,
        page.reason,
        page.leads_to,
        page.told,
        _packed_history(page.history),
        page.memory,
    )


def version_row(page_id: int, number: int, at: float, version: NewVersion) -> Row:
    """The columns of `versions`, in their order."""
    headers = [(plain_text(name), plain_text(value)) for name, value in version.headers]
    return (
        page_id,
        number,
        at,
        plain_text(version.title),
        version.language,
        version.charset,
        version.status,
        version.words,
        version.distinct_words,
        version.similarity,
        version.searchable,
        _encode(headers),
        version.content_zstd,
        None if version.facts is None else _encode(version.facts),
        version.data or None,
    )


def amended_row(page_id: int, number: int, version: NewVersion) -> Row:
    """The columns title, language, charset, status, words, distinct words, searchable, headers, content, facts,
    data; page, number."""
    row = version_row(page_id, number, 0.0, version)
    return (*row[3:9], *row[10:], page_id, number)


def moved_version(row: Row, sketch: bytes) -> MovedVersion:
    """Read number, fetched_at, title, language, charset, status, headers, content, words, distinct words,
    similarity, searchable, facts, data."""
    number, fetched_at, title, language, charset, status, headers, content_zstd, *counts = row
    words, distinct_words, similarity, searchable, facts, data = counts
    content = NewVersion(
        title=title,
        language=language,
        charset=charset,
        status=status,
        headers=_decode_headers(headers),
        content_zstd=content_zstd,
        sketch=sketch,
        words=words,
        distinct_words=distinct_words,
        similarity=similarity,
        searchable=bool(searchable),
        facts=_document_facts(facts),
        data=data or b"",
    )
    return MovedVersion(number, fetched_at, content)


def change_record(row: Row) -> Change:
    """Read a row of `seq`, `arrived` and the columns of a document, without its body."""
    seq, arrived, document = row[0], row[1], row[2:]
    page_id, url, site, version = document[:4]
    if version is None:  # the page moved to another shard
        return Change(seq, page_id, url, site, None)
    shown = document_record(document, whole=False) if is_shown_change(row) else None
    return Change(seq, page_id, url, site, shown, arrived=arrived)


def is_shown_change(row: Row) -> bool:
    """Whether a row of a change has a document that can be found."""
    return row[5] is not None and bool(row[14]) and not row[15]


def without_document(row: Row) -> Row:
    """The same change of a page whose document cannot be found."""
    return (*row[:14], False, *row[15:])


def document_record(row: Row, *, whole: bool = True) -> Document:
    """Read the columns of a document, which are in this order in each store; with its body if `whole`."""
    id, url, site, version, title, language, charset, status, fetched_at, met_at, *rest = row
    words, similarity, searchable, gone, current, headers, content_zstd, facts, data = rest
    try:
        decoded = _decode_headers(headers)
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"the stored headers of {url} cannot be read ({error})") from error
    body = anchors = b""
    if whole:
        text, body = unpacked(content_zstd)
    else:
        text, anchors = unpacked_text(content_zstd)
    return Document(
        page_id=id,
        url=url,
        site=site,
        version=version,
        title=title,
        language=language,
        charset=charset,
        text=text,
        body=body,
        status=status,
        headers=decoded,
        fetched_at=fetched_at,
        checked_at=met_at if version == current else fetched_at,
        words=words,
        similarity=similarity,
        searchable=bool(searchable),
        gone=bool(gone),
        facts=_document_facts(facts),
        packed_data=data or b"",
        screenshot=picture_of(content_zstd) if whole else b"",
        packed_anchors=anchors,
    )


def _document_facts(packed: bytes | None) -> DocumentFacts | None:
    return None if packed is None else _decode_facts(packed)


def packed_robots(record: SiteRecord) -> bytes:
    return _encode(
        [(scheme, msgspec.structs.replace(each, text=plain_text(each.text))) for scheme, each in record.robots]
    )


def site_record(row: Row, refused: Iterable[Row]) -> SiteRecord:
    """Read id, site, admitted, pages, failures, rest_until, delay, robots. `refused` are reason, n, example."""
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


def packed_link(found: FoundUrl, found_on: int, at: float) -> Row:
    """A link to a page of another shard, as a row of the outbox."""
    return (_encode(found), found_on, at)


def forwarded_link(row: Row, place: str) -> OutboxLink:
    """Read the outbox columns id, found, found_on, at."""
    id, found, found_on, at = row
    try:
        return OutboxLink(id, _decode_link(found), found_on, at)
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"a link in the outbox of {place} cannot be read ({error})") from error


def _packed_history(history: tuple[Visit, ...]) -> bytes:
    """Eleven bytes a visit: time, outcome, similarity in steps of 1/255, and signals."""
    return b"".join(
        _VISIT.pack(visit.at, visit.outcome, round(visit.similarity * 255), visit.said) for visit in history
    )


def _history(packed: bytes) -> tuple[Visit, ...]:
    return tuple(
        Visit(at, _OUTCOMES[outcome], step / 255, _signals(signals))
        for at, outcome, step, signals in _VISIT.iter_unpack(packed)
    )


def _robots(robots: bytes | None, site: str) -> tuple[tuple[str, RobotsRecord], ...]:
    try:
        return _decode_robots(robots) if robots else ()
    except msgspec.MsgspecError as error:
        raise StoreDamaged(f"the stored robots.txt of {site} cannot be read ({error})") from error
