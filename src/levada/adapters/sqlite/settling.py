"""What does a visit leave behind? Page, document, version, links and done-mark, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from levada.adapters.document_rows import version_row
from levada.adapters.keeping import (
    TIDIED_EVERY,
    happened,
    is_removed,
    still_told,
    validators_after,
)
from levada.adapters.limits import StoreLimits
from levada.adapters.page_rows import HAPPENED_CODE, Row, visit_row
from levada.adapters.sqlite.database import Write
from levada.adapters.sqlite.holding import Holding
from levada.adapters.sqlite.leasing import end_leases
from levada.records import NewVersion, PageState, Settled

__all__ = ["settle_visits"]

_FIRST_VISIT = """INSERT INTO visited
    (kind, state, reason, visits, history, met_at, interval, next_visit, failures, memory, page_id, site_id)
    VALUES (?, ?, ?, ?, ?, coalesce(?, 0), ?, ?, ?, coalesce(?, x''), ?, ?)"""
_NO_LONGER_NEW = """DELETE FROM unvisited
    WHERE page_id = ?1 AND site_id = ?2 AND priority = (SELECT priority FROM pages WHERE id = ?1)"""
_VISIT_AGAIN = """UPDATE visited SET told = told & ?, kind = ?, state = ?, reason = ?, visits = ?, history = ?,
    met_at = coalesce(?, met_at), interval = ?, next_visit = ?, failures = ?, memory = coalesce(?, memory)
    WHERE page_id = ?"""
_KEEP_VALIDATORS = """UPDATE pages SET etag = ?2, last_modified = ?3, body_digest = ?4, text_digest = ?5
    WHERE id = ?1"""
_KEEP_DOCUMENT = """UPDATE pages SET etag = ?2, last_modified = ?3, body_digest = ?4, text_digest = ?5,
    version = ?6, seq = ?7, gone = ?8, sketch = ?9 WHERE id = ?1"""
_LOG = "INSERT INTO happenings VALUES (?, ?, ?, ?, ?, ?)"
_INSERT_VERSION = "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def settle_visits(write: Write, limits: StoreLimits, holding: Holding, visits: Sequence[Settled]) -> list[bool]:
    write.reach("fence")
    current = end_leases(write, [settled.lease for settled in visits])
    kept = [settled for settled, is_current in zip(visits, current, strict=True) if is_current]
    write.reach("page")
    _update_pages(write, holding, kept)
    write.reach("version")
    for settled in kept:
        _keep_content(write, limits, settled)
    write.reach("links")
    for settled in kept:
        _take_links(holding, settled)
    write.reach("sites")
    holding.finish()
    return current


def _update_pages(write: Write, holding: Holding, kept: Sequence[Settled]) -> None:
    again = [(still_told(settled.visit), *visit_row(settled)) for settled in kept if settled.lease.page.visits]
    write.executemany(_VISIT_AGAIN, again)
    for settled in kept:
        page = settled.lease.page
        site = holding.site(page.site)
        if page.visits == 0 and site is not None:
            write.execute(_FIRST_VISIT, (*visit_row(settled), site.id))
            write.execute(_NO_LONGER_NEW, (page.id, site.id))
            write.counters.add("unvisited", -1)
        if page.state is not settled.state:
            write.counters.add(f"state.{page.state}", -1)
            write.counters.add(f"state.{settled.state}")


def _keep_content(write: Write, limits: StoreLimits, settled: Settled) -> None:
    validators = validators_after(settled)
    row = (settled.lease.page.id, *msgspec.structs.astuple(validators)) if validators else None
    if settled.version is not None and row is not None:
        _keep_version(write, limits, settled, settled.version, row)
        return
    if row is not None:
        write.execute(_KEEP_VALIDATORS, row)
    _keep_or_drop(write, limits, settled)


def _keep_version(
    write: Write, limits: StoreLimits, settled: Settled, version: NewVersion, validators: Row
) -> None:
    page = settled.lease.page
    number = page.version + 1
    gone = is_removed(settled.state)
    was_gone = _was_gone(write, settled)
    was_stored = page.version > 0 and not was_gone
    write.counters.add("stored", int(not gone) - int(was_stored))
    seq = write.next_seq()
    _log(write, limits, settled, seq, was_gone)
    write.execute(_KEEP_DOCUMENT, (*validators, number, seq, gone, version.sketch))
    write.execute(_INSERT_VERSION, version_row(page.id, number, settled.visit.at, version))
    oldest = number - limits.keep_versions
    dropped = 0
    if oldest > 0:
        dropped = write.execute(
            "DELETE FROM versions WHERE page_id = ? AND version <= ?", (page.id, oldest)
        ).rowcount
    write.counters.add("versions", 1 - dropped)


def _keep_or_drop(write: Write, limits: StoreLimits, settled: Settled) -> None:
    """A page that is gone leaves search and one that is back returns, its version being as it was."""
    removed = is_removed(settled.state)
    if settled.lease.page.version == 0 or not (removed or settled.state is PageState.LIVE):
        return
    was_gone = _was_gone(write, settled)
    if removed == was_gone:
        return
    write.counters.add("stored", -1 if removed else 1)
    seq = write.next_seq()
    _log(write, limits, settled, seq, was_gone)
    write.execute("UPDATE pages SET gone = ?, seq = ? WHERE id = ?", (removed, seq, settled.lease.page.id))


def _log(write: Write, limits: StoreLimits, settled: Settled, seq: int, was_gone: bool) -> None:
    what = happened(settled, was_gone)
    if what is None:
        return
    page, version = settled.lease.page, settled.version
    number, similarity = (page.version + 1, version.similarity) if version else (page.version, 1.0)
    write.execute(_LOG, (seq, settled.visit.at, HAPPENED_CODE[what], page.id, number, similarity))
    if seq % TIDIED_EVERY == 0:
        write.execute("DELETE FROM happenings WHERE seq <= ?", (seq - limits.keep_happenings,))


def _was_gone(write: Write, settled: Settled) -> bool:
    page = settled.lease.page
    if page.state is PageState.LIVE or not page.version:
        return False  # what is live is not gone, nor what was never stored: spares the lookup in the common cases
    row = write.execute("SELECT gone FROM pages WHERE id = ?", (page.id,)).fetchone()
    return bool(row and row[0])


def _take_links(holding: Holding, settled: Settled) -> None:
    page = settled.lease.page
    site = holding.site(page.site)
    if site is not None and settled.next_visit is not None:
        site.due_again(settled.next_visit)
    for found in settled.found:
        holding.hold(found, page.id, settled.visit.at)
    for found in settled.elsewhere:
        holding.forward(found, page.id, settled.visit.at)
    for refusal in settled.refused:
        holding.refuse(refusal)
