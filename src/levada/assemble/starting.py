"""Where does a crawl start? At what a person names; a site that was dropped stays so, for the same command also
goes on after a crash."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from levada.assemble.limits import store_limits
from levada.assemble.stores import CollectionStore
from levada.flow.settings import DAY, Settings
from levada.flow.sitebook import is_dropped
from levada.records import Found

__all__ = ["add_start", "limit_waits"]

_SPREAD = 1.1  # so much longer may last what doubles (`flow.retry`)

log = logging.getLogger(__name__)


def add_start(start: Sequence[Found], store: CollectionStore, now: float) -> None:
    store.add(start, [], now)
    for site in sorted({each.site for each in start}):
        record = store.site(site)
        if record is not None and is_dropped(record):
            log.warning("%s was dropped and is not visited: add it in the dashboard to take it up again", site)


def limit_waits(store: CollectionStore, settings: Settings, now: float) -> None:
    """What a clock that was ahead has planned, or a ceiling that was higher, is due now."""
    revisit, rest = settings.revisit, settings.politeness.max_rest
    longest = max(revisit.ceiling, revisit.max_retry, rest, DAY, store_limits(settings).delay)
    sites = store.limit_waits(now, now + _SPREAD * longest)
    if sites:
        of = "1 site" if sites == 1 else f"{sites:,} sites"
        log.warning("what was to wait longer than the settings allow, on %s, is due now: was the clock wrong?", of)
