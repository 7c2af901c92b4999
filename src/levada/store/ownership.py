"""Slices of sites, and the table of those who own them: several schedulers share the sites of one collection.

Every site lies in one of 64 slices, by a hash of its name, and every slice has one owner at most.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Protocol

import msgspec

SLICES = 64


@lru_cache(maxsize=50_000)
def slice_of(site: str) -> int:
    """The slice of a site; `IN_SLICES` in `levada.store.postgresql.site_locks` is the same in SQL."""
    return sha256(site.encode("utf-8", "replace")).digest()[0] % SLICES


class Holds(msgspec.Struct, frozen=True):
    """The table after a renewal, as the one who renewed sees it."""

    owned: Mapping[int, int]  # slice: epoch
    give: Collection[int] = ()  # those of them that are more than its share
    orphaned: Collection[int] = ()  # those that it has taken from one that is gone
    schedulers: int = 1  # that are there


class OwnershipTable(Protocol):
    """The owners of the slices of one collection. Each call is one transaction, after those before it."""

    def renew(self, name: str, released: Collection[int], seconds: float) -> Holds:
        """Renew the hold of this scheduler, let go of what it released, and take what it should have."""
        ...

    def leave(self, name: str) -> None:
        """End the hold of this scheduler now: nothing that it handed out is still to be fetched."""
        ...


def shared_out(owners: Sequence[str | None], there: Sequence[str], name: str) -> tuple[list[int], list[int]]:
    """Which slices `name` should take and give up, of all slices and their owners, and those who are there.

    All shares differ by one slice at most. What nobody owns who is there is taken at once, up to the share; nothing
    is taken from one who is there: whoever has more than its share gives it up.
    """
    others = sorted(there)
    place = others.index(name)
    share = len(owners) // len(others) + (place < len(owners) % len(others))
    mine = [number for number, owner in enumerate(owners) if owner == name]
    free = [number for number, owner in enumerate(owners) if owner not in others]
    return free[: max(0, share - len(mine))], mine[share:]


class SlicesInMemory:
    """The part of `MemoryStore` that knows which slices are leased from."""

    _leases: dict[int, Any]
    _by_id: dict[int, Any]
    _slices: frozenset[int] | None = None

    def own(self, slices: frozenset[int] | None) -> None:
        self._slices = slices

    def end_leases_by(self, slices: frozenset[int], latest: float) -> None:
        for id, lease in self._leases.items():
            if lease.live and slice_of(self._by_id[id].site.record.site) in slices:
                lease.expires_at = min(lease.expires_at, latest)

    def _is_owned(self, site: str) -> bool:
        return self._slices is None or slice_of(site) in self._slices
