"""Site locks: the transaction that holds a site's row may read and write all of its pages.

A transaction locks the sites that it needs before it reads their pages. It takes the locks in the order of the
sites' numbers, and adds new sites before any lock, in the order of their names, so there is no deadlock. A lease
takes only sites that are not locked at that moment, and never waits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from levada.core.errors import StoreLocked
from levada.store.postgresql.database import PostgresqlWrite
from levada.store.rows import Row
from levada.store.sql.base import HeldSite, HeldSites

_COLUMNS = "id, site, admitted, pages, rest_until, delay, turn_at, taken, due_at, numbered FROM sites"
_TRIES = 5
_NAMED = "SELECT id FROM sites WHERE site = ANY(%s::text[])"
_LOCK_NAMED = f"SELECT {_COLUMNS} WHERE id = ANY(ARRAY({_NAMED})) ORDER BY id FOR NO KEY UPDATE"
_LOCK_NUMBERED = f"SELECT {_COLUMNS} WHERE id = ANY(%s::bigint[]) ORDER BY id FOR NO KEY UPDATE"
# `levada.store.ownership.slice_of`; None: sites of all slices.
IN_SLICES = """(%(slices)s::bigint[] IS NULL
    OR get_byte(sha256(convert_to(site, 'UTF8')), 0) %% 64 = ANY(%(slices)s::bigint[]))"""
_LOCK_DUE = f"""WITH locked AS MATERIALIZED (
        SELECT {_COLUMNS} WHERE due_at <= %s AND id = ANY(%s::bigint[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED),
    noted AS MATERIALIZED (
        SELECT set_config('levada.locked', coalesce(array_agg(id)::text, '{{}}'), true) locked FROM locked)
    SELECT noted.locked, l.* FROM noted LEFT JOIN locked l ON true"""
KNOWN_SITES = "SELECT site FROM sites WHERE site = ANY(%s::text[])"
# Numbered in the order of their names here, added in the order of the names themselves: no two transactions wait for
# each other.
_ADD = """WITH numbered AS MATERIALIZED (
        SELECT nextval('site_numbers') id, site FROM (
            SELECT site FROM unnest(%s::text[]) WITH ORDINALITY listed(site, place) ORDER BY place) ordered)
    INSERT INTO sites (id, site) SELECT id, site FROM numbered ORDER BY site
    ON CONFLICT (site) DO NOTHING RETURNING site"""
_KEEP = """UPDATE sites SET admitted = %s, pages = %s, turn_at = %s, taken = %s, due_at = %s, numbered = %s
    WHERE id = %s"""


class LockedSites(HeldSites[PostgresqlWrite]):
    """The sites that one transaction has locked, as they will be when it is committed."""

    def add_missing(self, names: Collection[str]) -> None:
        """Create missing sites, numbered in the order of `names`, before any lock."""
        if names:
            known = {site for (site,) in self._write.rows(KNOWN_SITES, (list(names),))}
            self.ask_new([name for name in names if name not in known])()

    def ask_new(self, names: Sequence[str]) -> Callable[[], None]:
        """Create these sites with the next answer, unless others do; what is returned takes it."""
        asked = self._write.ask(_ADD, (list(names),)) if names else list

        def take() -> None:
            added = [site for (site,) in asked()]
            self._new.update(added)
            self._write.count("sites", len(added))

        return take

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
        self.ask_named(names)()

    def ask_named(self, names: Iterable[str]) -> Callable[[], None]:
        asked = self._write.ask(_LOCK_NAMED, (sorted(names),))
        return lambda: self._take_all(asked())

    def lock_numbered(self, ids: Iterable[int], *, wait: bool = True) -> list[int]:
        """Without `wait`, lock only sites that no other transaction holds."""
        sql = _LOCK_NUMBERED if wait else f"{_LOCK_NUMBERED} SKIP LOCKED"
        return [site.id for site in self._take(self._write.rows(sql, (sorted(ids),)))]

    def ask_due(self, ids: Sequence[int], now: float) -> Callable[[], None]:
        """Lock those of these sites whose turn has come and that no other transaction holds, with the next answer.
        The statements after it read their numbers as the setting `levada.locked`."""
        asked = self._write.ask(_LOCK_DUE, (now, sorted(ids)))
        return lambda: self._take_all([row[1:] for row in asked() if row[1] is not None])

    def _take_all(self, rows: list[Row]) -> None:
        self._take(rows)

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
