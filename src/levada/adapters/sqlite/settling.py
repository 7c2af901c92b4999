"""What does a visit leave behind? Page, document, version, links and done-mark, in one transaction.

The visits of a batch become rows first, and each statement then runs over all of its rows: a call of its own for
every row would take longer, and give Python's lock away more often to threads that wait for it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import msgspec

from levada.adapters.document_rows import amended_row, version_row
from levada.adapters.keeping import (
    TIDIED_EVERY,
    amends,
    happened,
    is_removed,
    still_told,
    validators_after,
    version_after,
)
from levada.adapters.limits import StoreLimits
from levada.adapters.page_rows import HAPPENED_CODE, Row, visit_row
from levada.adapters.sqlite.database import Write
from levada.adapters.sqlite.holding import Holding
from levada.adapters.sqlite.leasing import end_leases
from levada.records import NewVersion, PageState, Settled

__all__ = ["settle_visits"]

_FIRST_VISIT = """INSERT INTO visited
    (kind, state, reason, leads_to, visits, history, met_at, interval, next_visit, failures, memory,
    page_id, site_id)
    VALUES (?, ?, ?, ?, ?, ?, coalesce(?, 0), ?, ?, ?, coalesce(?, x''), ?, ?)"""
_NO_LONGER_NEW = """DELETE FROM unvisited
    WHERE page_id = ?1 AND site_id = ?2 AND priority = (SELECT priority FROM pages WHERE id = ?1)"""
_VISIT_AGAIN = """UPDATE visited SET told = told & ?, kind = ?, state = ?, reason = ?, leads_to = ?, visits = ?,
    history = ?, met_at = coalesce(?, met_at), interval = ?, next_visit = ?, failures = ?,
    memory = coalesce(?, memory) WHERE page_id = ?"""
_KEEP_VALIDATORS = """UPDATE pages SET etag = ?2, last_modified = ?3, body_digest = ?4, text_digest = ?5
    WHERE id = ?1"""
_KEEP_DOCUMENT = """UPDATE pages SET etag = ?2, last_modified = ?3, body_digest = ?4, text_digest = ?5,
    version = ?6, seq = ?7, gone = ?8, sketch = ?9 WHERE id = ?1"""
_REMOVE_OR_RETURN = "UPDATE pages SET gone = ?2, seq = ?3 WHERE id = ?1"
_INSERT_VERSION = "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_AMEND_VERSION = """UPDATE versions SET title = ?, language = ?, charset = ?, status = ?, words = ?,
    distinct_words = ?, searchable = ?, headers = ?, content_zstd = ? WHERE page_id = ? AND version = ?"""
_DROP_VERSIONS = "DELETE FROM versions WHERE page_id = ? AND version <= ?"
_LOG = "INSERT INTO happenings VALUES (?, ?, ?, ?, ?, ?)"
_GONE = "SELECT p.id FROM json_each(?) listed CROSS JOIN pages p ON p.id = listed.value WHERE p.gone"


def settle_visits(write: Write, limits: StoreLimits, holding: Holding, visits: Sequence[Settled]) -> list[bool]:
    write.reach("fence")
    current = end_leases(write, [settled.lease for settled in visits])
    kept = [settled for settled, is_current in zip(visits, current, strict=True) if is_current]
    write.reach("page")
    _update_pages(write, holding, kept)
    write.reach("version")
    gone = _gone_before(write, kept)
    contents = _Contents(write, limits)
    for settled in kept:
        contents.take(settled, was_gone=settled.lease.page.id in gone)
    contents.finish()
    write.reach("links")
    for settled in kept:
        _take_links(holding, settled)
    write.reach("sites")
    holding.finish()
    return current


def _update_pages(write: Write, holding: Holding, kept: Sequence[Settled]) -> None:
    first, again, no_longer_new = [], [], []
    for settled in kept:
        page = settled.lease.page
        site = holding.site(page.site)
        if page.visits:
            again.append((still_told(settled.visit), *visit_row(settled)))
        elif site is not None:
            first.append((*visit_row(settled), site.id))
            no_longer_new.append((page.id, site.id))
    write.executemany(_VISIT_AGAIN, again)
    if first:
        write.executemany(_FIRST_VISIT, first)
        write.executemany(_NO_LONGER_NEW, no_longer_new)
        write.counters.add("unvisited", -len(first))
    for (before, after), n in Counter((settled.lease.page.state, settled.state) for settled in kept).items():
        if before is not after:
            write.counters.add(f"state.{before}", -n)
            write.counters.add(f"state.{after}", n)


def _gone_before(write: Write, kept: Sequence[Settled]) -> set[int]:
    """Which of these pages were stored and gone? Not those that are live, which spares most batches the lookup."""
    pages = [settled.lease.page for settled in kept]
    doubtful = [page.id for page in pages if page.version and page.state is not PageState.LIVE]
    return {id for (id,) in write.execute(_GONE, (json.dumps(doubtful),))} if doubtful else set()


class _Contents:
    """What a batch makes of the stored documents; `finish` writes it.

    No page is in a batch twice, since its lease ends only once: in which order pages are written does not matter.
    """

    def __init__(self, write: Write, limits: StoreLimits) -> None:
        self._write = write
        self._limits = limits
        self._validators: list[Row] = []
        self._documents: list[Row] = []
        self._removed_or_back: list[Row] = []
        self._versions: list[Row] = []
        self._amended: list[Row] = []
        self._outdated: list[Row] = []  # page, newest version to drop
        self._happenings: list[Row] = []  # one for each step of change, in order

    def take(self, settled: Settled, *, was_gone: bool) -> None:
        validators = validators_after(settled)
        row = (settled.lease.page.id, *msgspec.structs.astuple(validators)) if validators else None
        if settled.version is not None and row is not None:
            self._keep_version(settled, settled.version, row, was_gone)
            return
        if row is not None:
            self._validators.append(row)
        self._keep_or_drop(settled, was_gone)

    def finish(self) -> None:
        self._write.executemany(_KEEP_VALIDATORS, self._validators)
        self._write.executemany(_KEEP_DOCUMENT, self._documents)
        self._write.executemany(_REMOVE_OR_RETURN, self._removed_or_back)
        self._write.executemany(_AMEND_VERSION, self._amended)
        if self._versions:
            # Old ones go first: the new ones take their room in the file.
            dropped = self._write.executemany(_DROP_VERSIONS, self._outdated).rowcount
            self._write.executemany(_INSERT_VERSION, self._versions)
            self._write.counters.add("versions", len(self._versions) - dropped)
        if self._happenings:
            self._write.executemany(_LOG, self._happenings)
            self._tidy(self._happenings[0][0], self._happenings[-1][0])

    def _keep_version(self, settled: Settled, version: NewVersion, validators: Row, was_gone: bool) -> None:
        page = settled.lease.page
        number = version_after(settled)
        gone = is_removed(settled.state)
        was_stored = page.version > 0 and not was_gone
        self._write.counters.add("stored", int(not gone) - int(was_stored))
        seq = self._log(settled, was_gone)
        self._documents.append((*validators, number, seq, gone, version.sketch))
        if amends(settled):
            self._amended.append(amended_row(page.id, number, version))
            return
        self._versions.append(version_row(page.id, number, settled.visit.at, version))
        if number > self._limits.keep_versions:
            self._outdated.append((page.id, number - self._limits.keep_versions))

    def _keep_or_drop(self, settled: Settled, was_gone: bool) -> None:
        """A page that is gone leaves search and one that is back returns, its version being as it was."""
        page = settled.lease.page
        removed = is_removed(settled.state)
        if page.version == 0 or not (removed or settled.state is PageState.LIVE) or removed == was_gone:
            return
        self._write.counters.add("stored", -1 if removed else 1)
        self._removed_or_back.append((page.id, removed, self._log(settled, was_gone)))

    def _log(self, settled: Settled, was_gone: bool) -> int:
        """The number of this step of change."""
        seq = self._write.next_seq()
        what = happened(settled, was_gone)
        if what is not None:
            page, version, number = settled.lease.page, settled.version, version_after(settled)
            similarity = version.similarity if version else 1.0
            self._happenings.append((seq, settled.visit.at, HAPPENED_CODE[what], page.id, number, similarity))
        return seq

    def _tidy(self, first: int, last: int) -> None:
        tidied = last - last % TIDIED_EVERY
        if first <= tidied:
            self._write.execute("DELETE FROM happenings WHERE seq <= ?", (tidied - self._limits.keep_happenings,))


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
