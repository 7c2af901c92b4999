"""What do we hold just now, under which lease, and how heavy is it?

A lease may end before its visit does. If nobody else visited the page meanwhile, the frontier leases it to us
again: then the visit goes on under the new lease, and is not made twice.
"""

from __future__ import annotations

from msgspec.structs import replace

from levada.records import Lease, Settled

__all__ = ["OpenLeases"]


class OpenLeases:
    """Leased and not yet committed; `held_bytes` of their bodies wait to be parsed or committed."""

    def __init__(self) -> None:
        self.held_bytes = 0
        self._newest: dict[int, Lease] = {}  # by page
        self._sizes: dict[int, int] = {}  # by lease token

    def __len__(self) -> int:
        return len(self._newest)

    def take(self, lease: Lease) -> bool:
        """Hold this page; False if its visit is on its way already, under a lease that this one renews."""
        held = self._newest.get(lease.page.id)
        self._newest[lease.page.id] = lease
        return held is None or held.page != lease.page

    def weigh(self, lease: Lease, size: int) -> None:
        self._sizes[lease.token] = size
        self.held_bytes += size

    def close(self, lease: Lease) -> None:
        """This lease is over; its page may be held under a newer one."""
        self.held_bytes -= self._sizes.pop(lease.token, 0)
        held = self._newest.get(lease.page.id)
        if held is not None and held.token == lease.token:
            del self._newest[lease.page.id]

    def renewed(self, lease: Lease) -> Lease | None:
        """The newer lease of a page that nobody has visited since this one."""
        newest = self._newest.get(lease.page.id)
        is_newer = newest is not None and newest.token != lease.token and newest.page == lease.page
        return newest if is_newer else None

    def under_newest(self, settled: Settled) -> Settled:
        newest = self.renewed(settled.lease)
        if newest is None:
            return settled
        self._sizes[newest.token] = self._sizes.pop(settled.lease.token, 0)
        return replace(settled, lease=newest)

    def let_go(self, lease: Lease) -> Lease:
        """Hold this page no longer; the lease to give back."""
        return self._newest.pop(lease.page.id, lease)

    def drain(self) -> list[Lease]:
        leases = list(self._newest.values())
        self._newest.clear()
        self._sizes.clear()
        self.held_bytes = 0
        return leases
