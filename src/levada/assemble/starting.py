"""Where does a crawl start? At what a person names, who wants those sites even if they were dropped before."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from levada.assemble.stores import CollectionStore
from levada.flow.sitebook import is_dropped
from levada.orders import AddSeeds, DropSite
from levada.ports import Orders, Sites
from levada.records import Found

__all__ = ["add_start"]

log = logging.getLogger(__name__)


def add_start(start: Sequence[Found], store: CollectionStore, orders: Orders, now: float) -> None:
    store.add(start, [], now)
    dropped = _dropped({each.site for each in start}, store, orders)
    for site in sorted(dropped):
        log.warning("%s was dropped: it is named as a start, and taken up again", site)
    if dropped:
        # As an order, which is obeyed after one to drop the site that still waits.
        orders.give(AddSeeds(tuple(each.url for each in start if each.site in dropped)))


def _dropped(named: set[str], sites: Sites, orders: Orders) -> set[str]:
    """Those of the sites that are dropped, or about to be."""
    stored = {site for site in named if (record := sites.site(site)) is not None and is_dropped(record)}
    return stored | {order.site for _, order in orders.pending() if isinstance(order, DropSite)} & named
