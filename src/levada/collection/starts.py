"""Start URLs of a crawl, and waits that a wrong clock left behind."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from levada.core.records import DiscoveredBy, FoundUrl
from levada.core.settings import DAY, Settings
from levada.pages.urls import seed_address, site_of
from levada.store.base import Store
from levada.store.opening import store_limits

_SPREAD = 1.1  # so much longer may last what doubles (`flow.retry`)

log = logging.getLogger(__name__)


def seeds(urls: Sequence[str]) -> list[FoundUrl]:
    """The addresses that a user asked for; `BadUrl` if one is none."""
    addresses = [seed_address(url) for url in urls]
    return [FoundUrl(address, site_of(address), how=DiscoveredBy.SEED, admit=True) for address in addresses]


def add_start(start: Sequence[FoundUrl], store: Store, now: float) -> int:
    """Hold the start URLs; how many were new."""
    new = store.add(start, [], now)
    for site in sorted({each.site for each in start}):
        record = store.site(site)
        if record is not None and record.dropped:
            log.warning("%s was dropped and is not visited: add it in the dashboard to take it up again", site)
    return new


def limit_waits(store: Store, settings: Settings, now: float) -> None:
    """What a clock that was ahead has planned, or a ceiling that was higher, is due now."""
    revisit, rest = settings.revisit, settings.politeness.max_backoff
    longest = max(revisit.ceiling, revisit.max_retry, rest, DAY, store_limits(settings).delay)
    sites = store.limit_waits(now, now + _SPREAD * longest)
    if sites:
        of = "1 site" if sites == 1 else f"{sites:,} sites"
        log.warning("what was to wait longer than the settings allow, on %s, is due now: was the clock wrong?", of)
