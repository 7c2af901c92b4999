"""The SQL store as a shard: its outbox of links for other shards, and pages that move between shards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from levada.core.records import OutboxLink
from levada.store.base import Capability, MovedPage, ShardAway
from levada.store.rows import (
    HOW_CODE,
    KIND_CODE,
    Row,
    forwarded_link,
    moved_version,
    moved_visit_row,
    packed_robots,
    page_record,
    site_record,
    version_row,
)
from levada.store.rules import text_key
from levada.store.sql.base import HeldSites, WriteT
from levada.store.sql.bodies import SqlBodies
from levada.store.sql.forgetting import count_page
from levada.store.sql.tombstones import Tombstones


class SqlStore(SqlBodies[WriteT]):
    """A whole store on one database. It can be one of several shards."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.SHARD, Capability.FORGET, Capability.LIMITS, Capability.BODIES}
    )
    away: ClassVar[Mapping[int, ShardAway]] = {}

    @property
    def shards(self) -> tuple[Self]:
        return (self,)

    logs = shards

    def _fence_off(self, write: WriteT, ids: Sequence[int]) -> None:
        """Give these pages a lease that never expires."""
        raise NotImplementedError

    def undelivered(self, limit: int, after: int = 0) -> list[OutboxLink]:
        return [forwarded_link(row, self._database.place) for row in self._rows(self.sql.undelivered, (after, limit))]

    def delivered(self, ids: Sequence[int]) -> None:
        if not ids:
            return
        with self._database.write("delivered") as write:
            write.reach("outbox")
            write.execute(self.sql.delivered, (self.sql.dialect.id_list(ids),))

    def fence(self, urls: Sequence[str], expired_by: float = 0.0) -> list[MovedPage]:
        listed = self.sql.dialect.id_list
        with self._database.write("fence") as write:
            write.reach("pages")
            found = write.rows(self.sql.found, self.sql.dialect.url_list(list(dict.fromkeys(urls))))
            self._lock_sites(write).lock_numbered({site for _, site in found})
            ids = [id for (id,) in write.rows(self.sql.movable, (listed(id for id, _ in found), expired_by))]
            self._fence_off(write, ids)
            return self._packed(write, ids)

    def import_pages(self, pages: Sequence[MovedPage]) -> None:
        """A page that is already here stays as it is: its copy came before a crash."""
        if not pages:
            return
        with self._database.write("take-in") as write:
            sites = self._lock_sites(write)
            write.reach("pages")
            sites.take_named(list(dict.fromkeys(each.page.site for each in self._absent(write, pages))))
            # Checked again: only now, under the sites' locks, nobody else adds pages.
            marks = Tombstones(write, self.sql)
            arriving = [
                each
                for each in self._absent(write, pages)
                if each.page.site in sites.by_name and not marks.cover(each.page.url, each.page.site)
            ]
            with write.pipeline():
                self._insert(write, sites, arriving)
                write.reach("sites")
                self._keep_sites(write, sites, arriving)
                sites.save()
            self._insert_documents(write, arriving)

    def let_go(self, page_ids: Sequence[int]) -> None:
        if not page_ids:
            return
        with self._forgetting(), self._database.write("let-go") as write:
            write.reach("pages")
            sites = self._fenced_sites(write, page_ids)
            leaving = write.rows(self.sql.leaving, (self.sql.dialect.id_list(page_ids),))
            self._delete(write, sites, leaving)
            self._drop_empty(write, sites)
            sites.save()
            departed = [(row[0], row[2], row[3]) for row in leaving if row[4]]
            steps = zip(write.take_steps(len(departed)), departed, strict=True)
            write.executemany(self.sql.depart, [(id, seq, url, site) for seq, (id, url, site) in steps])

    def unfence(self, page_ids: Sequence[int]) -> None:
        if not page_ids:
            return
        with self._database.write("open-up") as write:
            write.reach("pages")
            sites = self._fenced_sites(write, page_ids)
            ids = self.sql.dialect.id_list(page_ids)
            due = write.rows(self.sql.fenced_due, (ids,))
            write.execute(self.sql.open, (ids,))
            for at, site in due:
                sites.by_id[site].pull(at)
            sites.save()

    def fenced(self) -> list[tuple[int, str]]:
        return [(id, url) for id, url in self._rows(self.sql.fenced)]

    def _fenced_sites(self, write: WriteT, page_ids: Sequence[int]) -> HeldSites[WriteT]:
        sites = self._lock_sites(write)
        rows = write.rows(self.sql.fenced_sites, (self.sql.dialect.id_list(page_ids),))
        sites.lock_numbered([site for (site,) in rows])
        return sites

    def _packed(self, write: WriteT, ids: Sequence[int]) -> list[MovedPage]:
        listed = self.sql.dialect.id_list
        rows = write.rows(self.sql.moving_pages, (listed(ids),))
        site_rows = write.rows(self.sql.moving_sites, (listed({row[0] for row in rows}),))
        sites = {facts[0]: (site_record(tuple(facts), ()), turn_at) for turn_at, *facts in site_rows}
        versions: defaultdict[int, list[Row]] = defaultdict(list)
        for page_id, *version in write.rows(self.sql.moving_versions, (listed(ids),)):
            versions[page_id].append(tuple(version))
        moved = []
        for site_id, priority, met_at, gone, *facts in rows:
            page = page_record(tuple(facts))
            contents = tuple(moved_version(row, page.sketch or b"") for row in versions[page.id])
            moved.append(MovedPage(page, *sites[site_id], priority, met_at, bool(gone), contents))
        return moved

    def _absent(self, write: WriteT, moved: Sequence[MovedPage]) -> list[MovedPage]:
        dialect = self.sql.dialect
        listed = dialect.url_list([each.page.url for each in moved])
        urls = {url for (url,) in write.rows(self.sql.there_by_url, listed)}
        listed = dialect.id_list(each.page.id for each in moved)
        ids = {id for (id,) in write.rows(self.sql.there_by_id, (listed,))}
        absent = [each for each in moved if each.page.url not in urls and each.page.id not in ids]
        return list({each.page.id: each for each in absent}.values())

    def _insert(self, write: WriteT, sites: HeldSites[WriteT], arriving: Sequence[MovedPage]) -> None:
        site = {name: each.id for name, each in sites.by_name.items()}
        page_row = self.sql.dialect.page_row
        write.executemany(self.sql.insert_page, [page_row(_found_row(each, site[each.page.site])) for each in arriving])
        visited = [moved_visit_row(each, site[each.page.site]) for each in arriving if each.page.visits]
        write.executemany(self.sql.insert_visited, visited)
        new = [(site[each.page.site], each.priority, each.page.id) for each in arriving if not each.page.visits]
        write.executemany(self.sql.insert_unvisited, new)
        versions = [(each.page.id, version) for each in arriving for version in each.versions]
        rows = [version_row(id, version.number, version.fetched_at, version.content) for id, version in versions]
        write.executemany(self.sql.insert_version, rows)
        ids = [each.page.id for each in arriving]
        write.execute(self.sql.forget_departure, (self.sql.dialect.id_list(ids),))
        brought = [(each.page.id, each.page.version) for each in arriving if each.page.version]
        write.executemany(self.sql.arrived, brought)
        self._fence_off(write, ids)
        for each in arriving:
            stored, is_new = each.page.version > 0 and not each.gone, not each.page.visits
            count_page(write, each.page.state, 1, is_new=is_new, versions=len(each.versions), stored=stored)

    def _keep_sites(self, write: WriteT, sites: HeldSites[WriteT], arriving: Sequence[MovedPage]) -> None:
        for each in arriving:
            sites.by_name[each.page.site].pages += 1
        for name, each in {each.page.site: each for each in reversed(arriving)}.items():
            site, record = sites.by_name[name], each.site
            if site.is_new:
                write.execute(self.sql.save_robots, (site.id, packed_robots(record)))
            site.admitted |= record.admitted
            site.turn_at = max(site.turn_at, each.turn_at)
            site.rest_until = max(site.rest_until, record.rest_until)
            site.changed = True
            failures = record.failures
            write.execute(self.sql.keep_site, (site.rest_until, failures, failures, record.delay, site.id))

    def _insert_documents(self, write: WriteT, arriving: Sequence[MovedPage]) -> None:
        steps = iter(write.take_steps(sum(each.page.version > 0 for each in arriving)))
        rows = []
        for each in arriving:
            page = each.page
            known = (page.etag, page.last_modified, page.body_digest, page.text_digest)
            if page.version or page.sketch is not None or any(fact is not None for fact in known):
                seq = next(steps) if page.version else None
                key = text_key(page.site, page.text_digest, gone=each.gone) if page.version else None
                rows.append((page.id, *known, page.version, each.gone, page.sketch, key, seq))
        write.executemany(self.sql.keep_document, rows)


def _found_row(moved: MovedPage, site_id: int) -> Row:
    page = moved.page
    what = (KIND_CODE[page.kind], HOW_CODE[page.how], page.depth, page.hops, moved.priority)
    return (page.id, site_id, page.url, *what, page.found_at, page.found_on)
