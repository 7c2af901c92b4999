"""Forgetting on several shards: every shard has every tombstone, for pages move between shards."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from levada.core.records import FoundUrl
from levada.store.base import Deleted, Retention
from levada.store.rules import is_start
from levada.store.sharded.remote import answers

if TYPE_CHECKING:
    from levada.store.base import Shard


def share_tombstones(shards: Sequence[Shard]) -> None:
    """Give every shard the tombstones of all: some are new, or their last writer died half-way."""
    every = [shard.tombstones() for shard in shards]
    key = next((key for key, _ in every if key), "")
    if not key:
        return
    union = {mark: at for _, tombstones in every for mark, at in tombstones}
    for shard, (_, known) in zip(shards, every, strict=True):
        if missing := union.keys() - {mark for mark, _ in known}:
            shard.adopt_tombstones(key, [(mark, union[mark]) for mark in sorted(missing)])


class ShardedForgetting:
    """`levada.store.base.Forgetting` over all shards, with former ones: their change log is still read."""

    _shards: list[Shard]

    @property
    def _numbered(self) -> dict[int, Shard]:
        return dict(enumerate(self._shards))

    def bury(self, urls: Sequence[str], sites: Sequence[str], at: float, key: str = "") -> str:
        known = (shard.tombstones()[0] for shard in self._shards)
        key = next((each for each in known if each), key or secrets.token_hex(16))
        for shard in self._shards:
            shard.bury(urls, sites, at, key)
        return key

    def tombstones(self) -> tuple[str, list[tuple[str, float]]]:
        share_tombstones(self._shards)
        return self._shards[0].tombstones()

    def adopt_tombstones(self, key: str, tombstones: Sequence[tuple[str, float]]) -> None:
        for shard in self._shards:
            shard.adopt_tombstones(key, tombstones)

    def lift(self, found: Sequence[FoundUrl]) -> list[str]:
        """Every shard has every tombstone: whether there is one says any of them, and all of them lift it."""
        starts = [each for each in found if is_start(each)]
        if not starts or not self.forgotten([each.url for each in starts]):
            return []
        return list(dict.fromkeys(url for shard in self._shards for url in shard.lift(starts)))

    def forgotten(self, urls: Sequence[str]) -> set[str]:
        return set().union(*answers(self._numbered, lambda _, shard: shard.forgotten(urls)).values())

    def forgotten_sites(self, sites: Sequence[str]) -> set[str]:
        return set().union(*answers(self._numbered, lambda _, shard: shard.forgotten_sites(sites)).values())

    def erase(self, urls: Sequence[str], *, only_gone: bool = False) -> Deleted:
        return sum((shard.erase(urls, only_gone=only_gone) for shard in self._shards), Deleted())

    def erase_traces(self, after: int, limit: int) -> int | None:
        """Shard after shard: `after` holds the page and the shard."""
        count = len(self._shards)
        place, last = after % count, after // count
        following = self._shards[place].erase_traces(last, limit)
        return self._next(place, following)

    def thin_out(
        self, after: int, limit: int, now: float, rules: Retention, *, site: str = "", dry_run: bool = False
    ) -> tuple[int | None, Deleted, list[str]]:
        count = len(self._shards)
        place, last = after % count, after // count
        following, dropped, expired = self._shards[place].thin_out(last, limit, now, rules, site=site, dry_run=dry_run)
        return self._next(place, following), dropped, expired

    def compact(self) -> None:
        for shard in self._shards:
            shard.compact()

    def _next(self, place: int, following: int | None) -> int | None:
        """The position after this one: the shard in the remainder, and the page on it."""
        count = len(self._shards)
        if following is not None:
            return following * count + place
        return place + 1 if place + 1 < count else None
