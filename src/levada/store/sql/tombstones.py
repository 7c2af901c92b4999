"""Tombstones: what was forgotten, as one transaction sees it."""

from __future__ import annotations

from collections.abc import Iterable

from levada.core.hashing import tombstone
from levada.core.records import FoundUrl
from levada.pages.urls import site_of
from levada.store.rules import is_start
from levada.store.sql.base import Asked, Write
from levada.store.sql.statements import Statements


class Tombstones:
    """The tombstones, as one transaction sees them. Where nothing was ever forgotten, one lookup answers all."""

    def __init__(self, write: Write, sql: Statements) -> None:
        self._write = write
        self._sql = sql
        self._key: str | None = None
        self._asked: Asked | None = None
        self._known: dict[str, bool] = {}

    @property
    def key(self) -> str:
        if self._key is None:
            self.ask_key()
            assert self._asked is not None
            rows = self._asked()
            self._key = rows[0][0] if rows else ""
        return self._key

    def ask_key(self) -> None:
        """Ask for the key with the next answer."""
        if self._asked is None:
            self._asked = self._write.ask(self._sql.tombstone_key)

    def look_up_again(self, key: str, found: Iterable[FoundUrl]) -> None:
        """Look up what may have been forgotten since; `key` was read by another statement of this transaction."""
        pairs = [(each.url, each.site) for each in found]
        self._key = key
        for pair in pairs:
            for name in pair:
                self._known.pop(name, None)
        self.look_up(pairs)

    def look_up(self, named: Iterable[tuple[str, str]]) -> None:
        """Look up URLs with their sites, all at once."""
        pairs = iter(named)
        first = next(pairs, None)  # without any, not even the key is asked for
        if first is None or not self.key:
            return
        names = {name for pair in (first, *pairs) for name in pair} - self._known.keys()
        if not names:
            return
        marks = {tombstone(self.key, name): name for name in names}
        asked = self._sql.dialect.name_list(sorted(marks))
        there = {mark for (mark,) in self._write.rows(self._sql.buried, (asked,))}
        self._known |= {name: mark in there for mark, name in marks.items()}

    def cover(self, url: str, site: str = "") -> bool:
        """Whether this URL or its site is forgotten."""
        if not self.key:
            return False
        pair = url, site or site_of(url)
        self.look_up([pair])
        return any(self._known[name] for name in pair)

    def lift(self, found: Iterable[FoundUrl]) -> list[str]:
        """Remove the tombstones of the start URLs among these, and of their sites; returns the URLs that had one."""
        starts = [each for each in found if is_start(each)]
        if not starts or not self.key:
            return []
        lifted = [each.url for each in starts if self.cover(each.url, each.site)]
        names = sorted({name for each in starts for name in (each.url, each.site)})
        marks = [tombstone(self.key, name) for name in names if self._known[name]]
        if marks:
            self._write.execute(self._sql.exhume, (self._sql.dialect.name_list(marks),))
            self._known |= dict.fromkeys(names, False)
        return lifted
