"""Where does a crawl start? At what a person names; a site that was dropped stays so, for the same command also
goes on after a crash."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from levada.assemble.stores import CollectionStore
from levada.flow.sitebook import is_dropped
from levada.records import Found

__all__ = ["add_start"]

log = logging.getLogger(__name__)


def add_start(start: Sequence[Found], store: CollectionStore, now: float) -> None:
    store.add(start, [], now)
    for site in sorted({each.site for each in start}):
        record = store.site(site)
        if record is not None and is_dropped(record):
            log.warning("%s was dropped and is not visited: add it in the dashboard to take it up again", site)
