"""How much a store keeps of a crawl, by its settings."""

from __future__ import annotations

from levada.adapters.limits import StoreLimits
from levada.flow.settings import Settings

__all__ = ["store_limits"]


def store_limits(settings: Settings) -> StoreLimits:
    """No more pages of a site are leased than its delay and its budget let us ask for."""
    per_hour = settings.budget.per_site_per_hour
    return StoreLimits(
        keep_versions=settings.store.keep_versions,
        max_pages_per_site=settings.crawl.max_pages_per_site,
        new_share=settings.store.new_share,
        delay=max(settings.politeness.delay, 3600.0 / per_hour if per_hour else 0.0),
    )
