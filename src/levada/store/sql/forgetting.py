"""Forgetting on an SQL store: tombstones, and deleting pages, sites and versions for good.

A tombstone is written first, and every write that could bring a URL back looks at it under the lock of the URL's
site: adding URLs, links of other shards, moved pages, and the records of sites. So from the commit of a tombstone on,
deleting may take as many transactions as it needs, and die between any two of them.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby

from levada.core.hashing import tombstone
from levada.core.records import FoundUrl, PageState
from levada.pages.urls import site_of
from levada.store.base import Deleted, Retention
from levada.store.bodies.references import MARK
from levada.store.retention import expendable, is_expired
from levada.store.rows import STATES, Row, forwarded_link
from levada.store.rules import PAGE_BITS, SITE_BITS
from levada.store.sql.base import HeldSites, Write, WriteT
from levada.store.sql.tombstones import Tombstones
from levada.store.sql.writing import ELSEWHERE_ID, EVER, SqlFrontier

_AT_ONCE = 500


class SqlForgetting(SqlFrontier[WriteT]):
    """`levada.store.base.Forgetting` on either database."""

    def _forgetting(self) -> AbstractContextManager[None]:
        """The context of a transaction that deletes pages."""
        return nullcontext()

    def compact(self) -> None:
        raise NotImplementedError

    # Tombstones

    def bury(self, urls: Sequence[str], sites: Sequence[str], at: float, key: str = "") -> str:
        with self._database.write("bury") as write:
            write.reach("key")
            key = self._key(write, key or secrets.token_hex(16))
            write.reach("marks")
            marks = sorted({tombstone(key, name) for name in (*urls, *sites)})
            write.executemany(self.sql.bury, [(mark, float(at)) for mark in marks])
        return key

    def tombstones(self) -> tuple[str, list[tuple[str, float]]]:
        rows = self._rows(self.sql.tombstone_key)
        return rows[0][0] if rows else "", [(mark, at) for mark, at in self._rows(self.sql.tombstones)]

    def adopt_tombstones(self, key: str, tombstones: Sequence[tuple[str, float]]) -> None:
        with self._database.write("bury") as write:
            write.reach("key")
            self._key(write, key)
            write.reach("marks")
            write.executemany(self.sql.bury, tombstones)

    def forgotten(self, urls: Sequence[str]) -> set[str]:
        return {url for url, _ in self._buried([(url, site_of(url)) for url in urls])}

    def forgotten_sites(self, sites: Sequence[str]) -> set[str]:
        return {site for site, _ in self._buried([(site, site) for site in sites])}

    def lift(self, found: Sequence[FoundUrl]) -> list[str]:
        with self._database.write("lift") as write:
            write.reach("marks")
            return Tombstones(write, self.sql).lift(found)

    def _buried(self, named: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        rows = self._rows(self.sql.tombstone_key)
        if not rows or not named:
            return set()
        marks = {name: tombstone(rows[0][0], name) for pair in named for name in pair}
        asked = self.sql.dialect.name_list(sorted(set(marks.values())))
        there = {mark for (mark,) in self._rows(self.sql.buried, (asked,))}
        return {pair for pair in named if any(marks[name] in there for name in pair)}

    def _key(self, write: WriteT, key: str) -> str:
        write.execute(self.sql.make_tombstone_key, (key,))
        ((kept,),) = write.rows(self.sql.tombstone_key)
        return str(kept)

    # Deleting

    def erase(self, urls: Sequence[str], *, only_gone: bool = False) -> Deleted:
        listed = self.sql.dialect.id_list
        with self._forgetting(), self._database.write("erase") as write:
            write.reach("pages")
            sites = self._lock_sites(write)
            sites.lock_named({site_of(url) for url in urls})
            # Also where the page is on another shard: every shard of a site may have its near-duplicate runs, which
            # hold patterns of URLs and sketches of texts.
            write.execute(self.sql.forget_near_runs, (listed(sites.by_id),))
            found = write.rows(self.sql.found, self.sql.dialect.url_list(list(dict.fromkeys(urls))))
            if not found:
                return Deleted()
            sites.lock_numbered({site for _, site in found} - sites.by_id.keys())
            rows = write.rows(self.sql.erasing, (listed(id for id, _ in found),))
            rows = [row for row in rows if not only_gone or row[5]]
            ids = listed(row[0] for row in rows)
            write.execute(self.sql.forget_events, (ids,))
            if self._bodies is not None:
                write.execute(self.sql.unused_of_pages, (EVER, MARK, ids))
            self._delete(write, sites, rows)
            sites.save()
            write.reach("departed")
            departed = [row[0] for row in rows if row[4]]
            # Followers learn of it by its place in the order of changes, and by no more than the page's number.
            steps = zip(write.take_steps(len(departed)), departed, strict=True)
            write.executemany(self.sql.depart, [(id, seq, "", "") for seq, id in steps])
        self._known.discard(row[2] for row in rows)
        return Deleted(len(rows), sum(row[8] for row in rows))

    def _delete(self, write: WriteT, sites: HeldSites[WriteT], rows: Sequence[Row]) -> None:
        """Delete these pages (rows as of `Statements.erasing`) with their versions, and count them."""
        for _, _, _, _, version, gone, state, is_new, kept in rows:
            count_page(write, STATES[state], -1, is_new=bool(is_new), versions=kept, stored=bool(version and not gone))
        ids = self.sql.dialect.id_list(row[0] for row in rows)
        for statement in self.sql.forget:
            write.execute(statement, (ids,))
        write.reach("sites")
        for site, count in Counter(row[1] for row in rows).items():
            sites.by_id[site].pages -= count
            sites.by_id[site].changed = True

    def erase_traces(self, after: int, limit: int) -> int | None:
        ids = [id for (id,) in self._rows(self.sql.next_pages, (after, limit))]
        if not self.tombstones()[0]:
            return None
        if not ids:
            self._erase_last_traces()
            return None
        last: int = ids[-1]
        with self._forgetting(), self._database.write("traces") as write:
            write.reach("pages")
            first = self._limits.shard << (PAGE_BITS + SITE_BITS)
            born_here = (first, first + (1 << (PAGE_BITS + SITE_BITS)))
            write.execute(self.sql.forget_found_on, (after, last, *born_here))
            leads = write.rows(self.sql.leads, (after, last))
            marks = Tombstones(write, self.sql)
            marks.look_up((url, site_of(url)) for _, url in leads)
            forgotten = [id for id, url in leads if marks.cover(url)]
            if forgotten:
                write.execute(self.sql.forget_leads, (self.sql.dialect.id_list(forgotten),))
        return last

    def _erase_last_traces(self) -> None:
        """What is not found by page: departed pages, links in the outbox, sites, and examples of refusals."""
        with self._forgetting(), self._database.write("last-traces") as write:
            marks, listed = Tombstones(write, self.sql), self.sql.dialect.id_list
            write.reach("departed")
            for some in self._slices(write, self.sql.departed_urls):
                marks.look_up((url, site_of(url)) for _, url in some)
                ids = listed(id for id, url in some if marks.cover(url))
                write.execute(self.sql.forget_events, (ids,))
                write.execute(self.sql.forget_departed, (ids,))
            write.reach("outbox")
            for some in self._slices(write, self.sql.outbox_links):
                links = [forwarded_link(row, self._database.place) for row in some]
                marks.look_up((link.found.url, link.found.site) for link in links)
                going = [link.id for link in links if marks.cover(link.found.url, link.found.site)]
                write.execute(self.sql.delivered, (listed(going),))
            write.reach("examples")
            examples = write.rows(self.sql.examples)
            marks.look_up((url, site_of(url)) for _, _, url in examples)
            write.executemany(
                self.sql.forget_example, [(site, reason) for site, reason, url in examples if marks.cover(url)]
            )
            write.reach("sites")
            self._drop_forgotten_sites(write, marks)

    def _drop_forgotten_sites(self, write: WriteT, marks: Tombstones) -> None:
        going: list[int] = []
        for some in self._slices(write, self.sql.site_names):
            marks.look_up((site, site) for _, site in some)
            going += [id for id, site in some if marks.cover(site, site)]
        if not going:
            return
        sites = self._lock_sites(write)
        sites.lock_numbered(going)
        self._drop_empty(write, sites)
        sites.save()

    def _slices(self, write: WriteT, sql: str) -> Iterable[list[Row]]:
        """The rows of a statement that continues after an id, some at a time."""
        last = -1
        while some := write.rows(sql, (last, _AT_ONCE)):
            last = some[-1][0]
            yield some

    def _drop_empty(self, write: WriteT, sites: HeldSites[WriteT]) -> None:
        """Delete sites without pages, and count their refusals under no site."""
        empty = [site for site in sites.by_id.values() if not site.pages]
        if not empty:
            return
        ids = self.sql.dialect.id_list(site.id for site in empty)
        refused = [(ELSEWHERE_ID, reason, int(n), url) for reason, n, url in write.rows(self.sql.refused_of, (ids,))]
        write.executemany(self.sql.count_refusal, refused)
        for statement in self.sql.forget_sites:
            write.execute(statement, (ids,))
        for site in empty:
            sites.drop(site)

    # Versions

    def thin_out(
        self, after: int, limit: int, now: float, rules: Retention, *, site: str = "", dry_run: bool = False
    ) -> tuple[int | None, Deleted, list[str]]:
        ids = [id for (id,) in self._rows(self.sql.next_with_versions, (after, limit))]
        if not ids:
            return None, Deleted(), []
        rows = self._rows(self.sql.kept_versions, (after, ids[-1]))
        going: list[tuple[int, int]] = []
        expired: list[str] = []
        pages = 0
        for (id, url, gone), each in groupby(rows, key=lambda row: row[:3]):
            if site and site_of(url) != site:
                continue
            kept = [(version, at) for _, _, _, _, version, at in each]
            if gone and is_expired(kept[-1][1], now, rules):
                expired.append(url)
                continue
            old = expendable(kept, now, rules)
            pages += bool(old)
            going += [(id, version) for version in old]
        dropped = len(going)
        if going and not dry_run:
            with self._forgetting(), self._database.write("thin-out") as write:
                write.reach("versions")
                self._note_unused(write, self.sql.unused_of_version, going, EVER)
                dropped = self._drop_these(write, going)
                write.count("versions", -dropped)
        return ids[-1], Deleted(pages, dropped), expired


def count_page(write: Write, state: PageState, one: int, *, is_new: bool, versions: int, stored: bool) -> None:
    """Count one page more, or one fewer."""
    write.count(f"state.{state}", one)
    write.count("unvisited", one * is_new)
    write.count("versions", one * versions)
    write.count("stored", one * stored)
