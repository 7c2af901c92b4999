"""What does a visit leave behind? Page, document, version, links and done-mark, in one transaction.

Steps of the changes (`seq`) are given out last, by a counter that stays locked until the commit: whoever sees one
sees all before it. A sequence would be free of that lock, and a reader could pass over a change whose
transaction ended late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from levada.adapters.document_rows import amended_row, version_row
from levada.adapters.keeping import (
    TIDIED_EVERY,
    Validators,
    amends,
    happened,
    is_removed,
    still_told,
    validators_after,
    version_after,
)
from levada.adapters.limits import StoreLimits
from levada.adapters.page_rows import HAPPENED_CODE, Row, visit_row
from levada.adapters.postgresql.database import Write
from levada.adapters.postgresql.holding import Holding
from levada.adapters.postgresql.leasing import end_leases
from levada.records import PageState, Settled

__all__ = ["settle_visits"]

_FIRST_VISIT = """INSERT INTO visited
    (kind, state, reason, leads_to, visits, history, met_at, interval, next_visit, failures, memory,
    page_id, site_id)
    VALUES (%s, %s, %s, %s, %s, %s, coalesce(%s::float8, 0), %s, %s, %s, coalesce(%s::bytea, ''), %s, %s)"""
_NO_LONGER_NEW = """DELETE FROM unvisited u USING unnest(%s::bigint[]) listed(id) JOIN pages p ON p.id = listed.id
    WHERE u.site_id = p.site_id AND u.priority = p.priority AND u.page_id = p.id"""
_VISIT_AGAIN = """UPDATE visited SET told = told & %s, kind = %s, state = %s, reason = %s, leads_to = %s,
    visits = %s, history = %s, met_at = coalesce(%s::float8, met_at), interval = %s, next_visit = %s, failures = %s,
    memory = coalesce(%s::bytea, memory) WHERE page_id = %s"""
_KEEP_VALIDATORS = """INSERT INTO documents (page_id, etag, last_modified, body_digest, text_digest)
    VALUES (%s, %s, %s, %s, %s) ON CONFLICT (page_id) DO UPDATE SET
    etag = excluded.etag, last_modified = excluded.last_modified,
    body_digest = excluded.body_digest, text_digest = excluded.text_digest"""
_KEEP_DOCUMENT = """INSERT INTO documents
    (page_id, etag, last_modified, body_digest, text_digest, version, gone, sketch, seq)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (page_id) DO UPDATE SET etag = excluded.etag,
    last_modified = excluded.last_modified, body_digest = excluded.body_digest, text_digest = excluded.text_digest,
    version = excluded.version, gone = excluded.gone, sketch = excluded.sketch, seq = excluded.seq"""
_INSERT_VERSION = "INSERT INTO versions VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
_AMEND_VERSION = """UPDATE versions SET title = %s, language = %s, charset = %s, status = %s, words = %s,
    distinct_words = %s, searchable = %s, headers = %s, content_zstd = %s WHERE page_id = %s AND version = %s"""
_DROP_VERSIONS = """DELETE FROM versions v USING unnest(%s::bigint[], %s::bigint[]) old(page_id, version)
    WHERE v.page_id = old.page_id AND v.version <= old.version RETURNING 1"""
_LOG = "INSERT INTO happenings VALUES (%s, %s, %s, %s, %s, %s)"
_TOKENS = "SELECT token FROM leases WHERE page_id = ANY(%s::bigint[])"
_GONE = "SELECT page_id FROM documents WHERE page_id = ANY(%s::bigint[]) AND gone"


@dataclass
class _Contents:
    """What the visits of a batch make of the stored documents."""

    validators: list[Row] = field(default_factory=list)
    versions: list[Row] = field(default_factory=list)
    amended: list[Row] = field(default_factory=list)
    outdated: list[tuple[int, int]] = field(default_factory=list)  # page, newest version to drop
    changes: list[tuple[Row, Row | None]] = field(default_factory=list)  # document, happening; without their seq


def settle_visits(write: Write, limits: StoreLimits, holding: Holding, visits: Sequence[Settled]) -> list[bool]:
    write.reach("fence")
    found = [each for settled in _newest_now(write, visits) for each in settled.found]
    refused = [each for settled in visits for each in settled.refused]
    holding.prepare(found, refused, [settled.lease.page.site for settled in visits])
    current = end_leases(write, [settled.lease for settled in visits])
    kept = [settled for settled, is_current in zip(visits, current, strict=True) if is_current]
    contents = _contents(write, limits, kept)
    _drop_old(write, contents)
    with write.pipeline():
        write.reach("page")
        _update_pages(write, holding, kept)
        write.reach("version")
        write.executemany(_KEEP_VALIDATORS, contents.validators)
        write.executemany(_INSERT_VERSION, contents.versions)
        write.executemany(_AMEND_VERSION, contents.amended)
        write.reach("links")
        for settled in kept:
            _take_links(holding, settled)
        write.reach("sites")
        holding.finish()
    _commit_changes(write, limits, contents)
    return current


def _newest_now(write: Write, visits: Sequence[Settled]) -> list[Settled]:
    """Without those whose lease is lost already: what they found makes no site. The fence itself comes later."""
    tokens = write.rows(_TOKENS, ([each.lease.page.id for each in visits],))
    there = {token for (token,) in tokens}
    return [settled for settled in visits if settled.lease.token in there]


def _update_pages(write: Write, holding: Holding, kept: Sequence[Settled]) -> None:
    first = [settled for settled in kept if settled.lease.page.visits == 0]
    again = [settled for settled in kept if settled.lease.page.visits]
    write.executemany(_VISIT_AGAIN, [(still_told(each.visit), *visit_row(each)) for each in again])
    sites = holding.sites.by_name
    write.executemany(_FIRST_VISIT, [(*visit_row(each), sites[each.lease.page.site].id) for each in first])
    if first:
        write.execute(_NO_LONGER_NEW, ([each.lease.page.id for each in first],))
    write.count("unvisited", -len(first))
    for settled in kept:
        write.count(f"state.{settled.lease.page.state}", -1)
        write.count(f"state.{settled.state}")


def _contents(write: Write, limits: StoreLimits, kept: Sequence[Settled]) -> _Contents:
    # Nothing that is live is gone: spares the lookup in the common case.
    doubtful = [each.lease.page.id for each in kept if each.lease.page.state is not PageState.LIVE]
    gone = {id for (id,) in write.rows(_GONE, (doubtful,))} if doubtful else set()
    contents = _Contents()
    for settled in kept:
        was_gone = settled.lease.page.id in gone
        if settled.version is not None:
            _keep_version(write, limits, contents, settled, was_gone)
        else:
            _keep_or_drop(write, contents, settled, was_gone)
    return contents


def _keep_version(write: Write, limits: StoreLimits, contents: _Contents, settled: Settled, was_gone: bool) -> None:
    page, version, validators = settled.lease.page, settled.version, validators_after(settled)
    assert version is not None
    assert validators is not None  # a new version brings its own
    number, gone = version_after(settled), is_removed(settled.state)
    write.count("stored", int(not gone) - int(page.version > 0 and not was_gone))
    if amends(settled):
        contents.amended.append(amended_row(page.id, number, version))
    else:
        write.count("versions")
        contents.versions.append(version_row(page.id, number, settled.visit.at, version))
        if number > limits.keep_versions:
            contents.outdated.append((page.id, number - limits.keep_versions))
    document = (page.id, *msgspec.structs.astuple(validators), number, gone, version.sketch)
    contents.changes.append((document, _happening(settled, was_gone)))


def _keep_or_drop(write: Write, contents: _Contents, settled: Settled, was_gone: bool) -> None:
    """A page that is gone leaves search and one that is back returns, its version being as it was."""
    page, validators = settled.lease.page, validators_after(settled)
    removed = is_removed(settled.state)
    stays = page.version == 0 or not (removed or settled.state is PageState.LIVE) or removed == was_gone
    if stays:
        if validators is not None:
            contents.validators.append((page.id, *msgspec.structs.astuple(validators)))
        return
    write.count("stored", -1 if removed else 1)
    kept = validators or Validators(page.etag, page.last_modified, page.body_digest, page.text_digest)
    document = (page.id, *msgspec.structs.astuple(kept), page.version, removed, page.sketch)
    contents.changes.append((document, _happening(settled, was_gone)))


def _happening(settled: Settled, was_gone: bool) -> Row | None:
    what = happened(settled, was_gone)
    if what is None:
        return None
    similarity = settled.version.similarity if settled.version else 1.0
    return (settled.visit.at, HAPPENED_CODE[what], settled.lease.page.id, version_after(settled), similarity)


def _drop_old(write: Write, contents: _Contents) -> None:
    if contents.outdated:
        pages, versions = map(list, zip(*contents.outdated, strict=True))
        write.count("versions", -len(write.rows(_DROP_VERSIONS, (pages, versions))))


def _take_links(holding: Holding, settled: Settled) -> None:
    page = settled.lease.page
    if settled.next_visit is not None:
        holding.sites.by_name[page.site].pull(settled.next_visit)
    for found in settled.found:
        holding.hold(found, page.id, settled.visit.at)
    for found in settled.elsewhere:
        holding.forward(found, page.id, settled.visit.at)
    for refusal in settled.refused:
        holding.refuse(refusal)


def _commit_changes(write: Write, limits: StoreLimits, contents: _Contents) -> None:
    if not contents.changes:
        return
    with write.pipeline():
        steps = write.take_steps(len(contents.changes))
        numbered = list(zip(steps, contents.changes, strict=True))
        write.executemany(_KEEP_DOCUMENT, [(*document, seq) for seq, (document, _) in numbered])
        write.executemany(_LOG, [(seq, *happening) for seq, (_, happening) in numbered if happening])
        tidied = steps[-1] - steps[-1] % TIDIED_EVERY
        if steps[0] <= tidied:
            write.execute("DELETE FROM happenings WHERE seq <= %s", (tidied - limits.keep_happenings,))
