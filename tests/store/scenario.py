"""A short scenario that passes every write of a store; run again after a crash, it continues."""

from __future__ import annotations

from levada.core.reasons import Reason
from levada.core.records import ChangeHint, Lease, Refusal, Signals, SiteRecord, VisitResult
from levada.store.base import Store, StoreLimits
from levada.testing.store.visits import changed, failed, first, gone, links, unchanged

__all__ = ["STORY_LIMITS", "tell"]

STORY_LIMITS = StoreLimits(max_pages_per_site=6, keep_versions=2, known_urls=100)


def tell(store: Store) -> None:
    store.add(links("a", 4), [Refusal("http://a/x", "a", Reason.ROBOTS)], 0.0)
    store.save(SiteRecord("a", admitted=True, failures=1, delay=0.0))
    for round_number in range(3):
        _visit_all(store, round_number)
        _hear_of_changes(store)
        store.release(store.lease(_now(store), 1, 60.0))
        store.lease(_now(store), 1, 60.0)
        store.forget_leases()
    store.limit_waits(0.0, 30.0)


def _now(store: Store) -> float:
    """Late enough for whatever is there to be due, also what a killed teller had leased."""
    return (store.stats(0.0).next_due or 0.0) + 1000.0


def _visit_all(store: Store, round_number: int) -> None:
    now = _now(store)
    store.commit([_visit(lease, now, f"text {lease.page.id} {round_number}") for lease in store.lease(now, 10, 60.0)])


def _hear_of_changes(store: Store) -> None:
    """A sitemap names pages that are to be visited soon: some of them before their time."""
    due = store.stats(0.0).next_due or 0.0
    hints = [ChangeHint(found.url, due + 1000.0, Signals.SITEMAP) for found in links("a", 6)]
    store.bring_forward([(page, Signals.SITEMAP, due - 1.0) for page in store.outdated(hints)])


def _visit(lease: Lease, now: float, text: str) -> VisitResult:
    if lease.page.version == 0:
        return first(lease, now, text, (*links("a", 8), *links("b", 1)))
    if lease.page.id % 4 == 0:
        return gone(lease, now, next_visit=now + 60.0)
    if lease.page.id % 4 == 1:
        return unchanged(lease, now)
    return failed(lease, now) if lease.page.id % 4 == 2 else changed(lease, now, text)
