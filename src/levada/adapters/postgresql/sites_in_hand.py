"""Who may touch a site now? The transaction that holds its row, under which all of its pages is read and written.

Whoever writes locks the sites that it needs before it looks at their pages. Locks are taken in the order of the
sites' numbers, and sites that are new are added before any lock is taken, in the order of their names: so nobody
waits in a circle. A lease takes only sites that nobody holds at that moment, and never waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from levada.adapters.page_rows import Row
from levada.adapters.postgresql.database import Write
from levada.errors import StoreLocked

__all__ = ["SiteInHand", "SitesInHand"]

_COLUMNS = "id, site, admitted, pages, rest_until, delay, turn_at, taken, due_at, numbered FROM sites"
_TRIES = 5
_NAMED = "SELECT id FROM sites WHERE site = ANY(%s::text[])"
_LOCK_NAMED = f"SELECT {_COLUMNS} WHERE id = ANY(ARRAY({_NAMED})) ORDER BY id FOR NO KEY UPDATE"
_LOCK_NUMBERED = f"SELECT {_COLUMNS} WHERE id = ANY(%s::bigint[]) ORDER BY id FOR NO KEY UPDATE"
_LOCK_DUE = f"""SELECT {_COLUMNS} WHERE due_at <= %s ORDER BY due_at, taken, id
    LIMIT %s OFFSET %s FOR NO KEY UPDATE SKIP LOCKED"""
_KNOWN = "SELECT site FROM sites WHERE site = ANY(%s::text[])"
_NUMBERS = "SELECT nextval('site_numbers') FROM generate_series(1, %s)"
_ADD = """INSERT INTO sites (id, site) SELECT * FROM unnest(%s::bigint[], %s::text[])
    ON CONFLICT (site) DO NOTHING RETURNING site"""
_KEEP = """UPDATE sites SET admitted = %s, pages = %s, turn_at = %s, taken = %s, due_at = %s, numbered = %s
    WHERE id = %s"""


@dataclass
class SiteInHand:
    id: int
    site: str
    admitted: bool
    pages: int
    rest_until: float
    delay: float | None
    turn_at: float
    taken: int
    due_at: float | None
    numbered: int  # pages; never fewer than it has
    changed: bool = False
    is_new: bool = False  # made by this transaction, which has not come to what names it first

    def pull(self, at: float) -> None:
        """A page became due: the site's turn comes no later, but never before its time."""
        turn = max(at, self.turn_at, self.rest_until)
        if self.due_at is None or self.due_at > turn:
            self.due_at, self.changed = turn, True

    def set_turn(self, earliest: float | None) -> None:
        """Say anew when the site's next page may be had."""
        due = None if earliest is None else max(earliest, self.turn_at, self.rest_until)
        if due != self.due_at:
            self.due_at, self.changed = due, True


class SitesInHand:
    """The sites that one transaction holds, as they will be when it is committed."""

    def __init__(self, write: Write) -> None:
        self.by_id: dict[int, SiteInHand] = {}
        self.by_name: dict[str, SiteInHand] = {}
        self._write = write
        self._new: set[str] = set()

    def add_missing(self, names: Collection[str]) -> None:
        """Sites that are not there yet are made, numbered in the order of `names`. Before any lock."""
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

    def take_named(self, names: Sequence[str]) -> None:
        """Hold these, made now where they are missing."""
        missing = names
        for _ in range(_TRIES):  # more than one only if a site went, its pages having moved, before we held it
            if not missing:
                return
            self.add_missing(missing)
            self.lock_named(missing)
            missing = [name for name in missing if name not in self.by_name]
        raise StoreLocked(f"the site {missing[0][:80]!r} goes whenever it is written to: try again")

    def lock_named(self, names: Iterable[str]) -> None:
        self._take(self._write.rows(_LOCK_NAMED, (sorted(names),)))

    def lock_numbered(self, ids: Iterable[int], *, wait: bool = True) -> list[int]:
        """The ids of those that are held from now on; without `wait`, those that nobody else held."""
        sql = _LOCK_NUMBERED if wait else f"{_LOCK_NUMBERED} SKIP LOCKED"
        return [site.id for site in self._take(self._write.rows(sql, (sorted(ids),)))]

    def lock_due(self, now: float, limit: int, offset: int) -> list[SiteInHand]:
        """Those whose turn has come and whom nobody else holds, in order."""
        return self._take(self._write.rows(_LOCK_DUE, (now, limit, offset)))

    def drop(self, site: SiteInHand) -> None:
        """It has no page left, and goes with this transaction."""
        del self.by_id[site.id], self.by_name[site.site]
        self._write.execute("DELETE FROM sites WHERE id = %s", (site.id,))
        self._write.count("sites", -1)

    def save(self) -> None:
        changed = [site for site in self.by_id.values() if site.changed]
        self._write.executemany(
            _KEEP,
            [
                (each.admitted, each.pages, each.turn_at, each.taken, each.due_at, each.numbered, each.id)
                for each in changed
            ],
        )
        for site in changed:
            site.changed = False

    def _take(self, rows: Sequence[Row]) -> list[SiteInHand]:
        for row in rows:
            if row[0] not in self.by_id:
                site = SiteInHand(*row)
                site.is_new = site.site in self._new
                self.by_id[site.id] = self.by_name[site.site] = site
        return [self.by_id[row[0]] for row in rows]
