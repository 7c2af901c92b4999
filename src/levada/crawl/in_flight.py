"""In-flight leases: the leases that a process holds, and the bytes that it holds for them.

A lease may end before its visit does. If nobody else has visited the page, the frontier leases it to this process
again: then the visit continues under the new lease and is not repeated.
"""

from __future__ import annotations

from msgspec.structs import replace

from levada.core.records import Lease, VisitResult


class InFlightLeases:
    """The leases without a commit; `held_bytes` of their bodies wait to be parsed or committed."""

    def __init__(self) -> None:
        self.held_bytes = 0
        self._newest: dict[int, Lease] = {}  # by page
        self._sizes: dict[int, int] = {}  # by lease token

    def __len__(self) -> int:
        return len(self._newest)

    def take(self, lease: Lease) -> bool:
        """Add a lease; False if it renews the lease of a visit that is under way."""
        held = self._newest.get(lease.page.id)
        self._newest[lease.page.id] = lease
        return held is None or held.page != lease.page

    def holds(self, page_id: int) -> bool:
        """Whether this page is leased to this process and not committed yet."""
        return page_id in self._newest

    def weigh(self, lease: Lease, size: int) -> None:
        self._sizes[lease.token] = size
        self.held_bytes += size

    def close(self, lease: Lease) -> None:
        """Remove a lease; its page may have a newer one."""
        self.held_bytes -= self._sizes.pop(lease.token, 0)
        held = self._newest.get(lease.page.id)
        if held is not None and held.token == lease.token:
            del self._newest[lease.page.id]

    def renewed(self, lease: Lease) -> Lease | None:
        """The newer lease of the page, if nobody has visited it since this one."""
        newest = self._newest.get(lease.page.id)
        is_newer = newest is not None and newest.token != lease.token and newest.page == lease.page
        return newest if is_newer else None

    def under_newest(self, result: VisitResult) -> VisitResult:
        newest = self.renewed(result.lease)
        if newest is None:
            return result
        self._sizes[newest.token] = self._sizes.pop(result.lease.token, 0)
        return replace(result, lease=newest)

    def let_go(self, lease: Lease) -> Lease:
        """Remove a page; returns the lease to release."""
        return self._newest.pop(lease.page.id, lease)

    def drain(self) -> list[Lease]:
        leases = list(self._newest.values())
        self._newest.clear()
        self._sizes.clear()
        self.held_bytes = 0
        return leases
