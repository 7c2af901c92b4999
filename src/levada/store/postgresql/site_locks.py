"""Site locks: the transaction that holds a site's row may read and write all of its pages.

A transaction locks the sites that it needs before it reads their pages. It takes the locks in the order of the
sites' numbers, and adds new sites before any lock, in the order of their names, so there is no deadlock. A lease
takes only sites that are not locked at that moment, and never waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from levada.core.errors import StoreLocked
from levada.store.postgresql.database import PostgresqlWrite
from levada.store.sql.base import HeldSite, HeldSites

_COLUMNS = "id, site, admitted, pages, rest_until, delay, turn_at, taken, due_at, numbered FROM sites"
_TRIES = 5
_NAMED = "SELECT id FROM sites WHERE site = ANY(%s::text[])"
_LOCK_NAMED = f"SELECT {_COLUMNS} WHERE id = ANY(ARRAY({_NAMED})) ORDER BY id FOR NO KEY UPDATE"
_LOCK_NUMBERED = f"SELECT {_COLUMNS} WHERE id = ANY(%s::bigint[]) ORDER BY id FOR NO KEY UPDATE"
# `levada.store.ownership.slice_of`; None: sites of all slices.
IN_SLICES = """(%(slices)s::bigint[] IS NULL
    OR get_byte(sha256(convert_to(site, 'UTF8')), 0) %% 64 = ANY(%(slices)s::bigint[]))"""
_LOCK_DUE = f"""SELECT {_COLUMNS} WHERE due_at <= %(now)s AND {IN_SLICES} ORDER BY due_at, taken, id
    LIMIT %(limit)s OFFSET %(offset)s FOR NO KEY UPDATE SKIP LOCKED"""
_KNOWN = "SELECT site FROM sites WHERE site = ANY(%s::text[])"
_NUMBERS = "SELECT nextval('site_numbers') FROM generate_series(1, %s)"
_ADD = """INSERT INTO sites (id, site) SELECT * FROM unnest(%s::bigint[], %s::text[])
    ON CONFLICT (site) DO NOTHING RETURNING site"""
_KEEP = """UPDATE sites SET admitted = %s, pages = %s, turn_at = %s, taken = %s, due_at = %s, numbered = %s
    WHERE id = %s"""


class LockedSites(HeldSites[PostgresqlWrite]):
    """The sites that one transaction has locked, as they will be when it is committed."""

    def add_missing(self, names: Collection[str]) -> None:
        """Create missing sites, numbered in the order of `names`, before any lock."""
        if not names:
            return
        known = {site for (site,) in self._write.rows(_KNOWN, (list(names),))}
        missing = [name for name in names if name not in known]
        if not missing:
            return
        numbers = [id for (id,) in self._write.rows(_NUMBERS, (len(missing),))]
        ordered = sorted(zip(missing, numbers, strict=True))
        added = self._write.rows(_ADD, ([id for _, id in ordered], [name for name, _ in ordered]))
        self._new.update(site for (site,) in added)
        self._write.count("sites", len(added))

    def take_named(self, names: Collection[str]) -> None:
        missing = list(names)
        # more than one try only if a site was deleted, because its pages moved, before we locked it
        for _ in range(_TRIES):
            if not missing:
                return
            self.add_missing(missing)
            self.lock_named(missing)
            missing = [name for name in missing if name not in self.by_name]
        raise StoreLocked(f"the site {missing[0][:80]!r} is deleted whenever it is written to: try again")

    def lock_named(self, names: Iterable[str]) -> None:
        self._take(self._write.rows(_LOCK_NAMED, (sorted(names),)))

    def lock_numbered(self, ids: Iterable[int], *, wait: bool = True) -> list[int]:
        """Without `wait`, lock only sites that no other transaction holds."""
        sql = _LOCK_NUMBERED if wait else f"{_LOCK_NUMBERED} SKIP LOCKED"
        return [site.id for site in self._take(self._write.rows(sql, (sorted(ids),)))]

    def lock_due(self, now: float, limit: int, offset: int, slices: list[int] | None = None) -> list[HeldSite]:
        """Lock the sites whose turn has come and that no other transaction holds, in order."""
        bounds = {"now": now, "limit": limit, "offset": offset, "slices": slices}
        return self._take(self._write.rows(_LOCK_DUE, bounds))

    def drop(self, site: HeldSite) -> None:
        del self.by_id[site.id], self.by_name[site.site]
        self._write.execute("DELETE FROM sites WHERE id = %s", (site.id,))
        self._write.count("sites", -1)

    def save(self) -> None:
        rows = [
            (each.admitted, each.pages, each.turn_at, each.taken, each.due_at, each.numbered, each.id)
            for each in self.changed()
        ]
        self._write.executemany(_KEEP, rows)
