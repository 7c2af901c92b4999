"""The orders of a data folder: given by anybody who may write there, obeyed by the crawl that holds it."""

from __future__ import annotations

from levada.adapters.sqlite_orders import SqliteOrders
from levada.assemble.folder import DataFolder
from levada.errors import StoreError
from levada.flow.settings import Settings
from levada.orders import ChangeBudget

__all__ = ["open_orders"]


def open_orders(folder: DataFolder, settings: Settings | None = None) -> SqliteOrders:
    """To give orders; or, with the settings of a crawl that begins, to obey them.

    A budget that was ordered outlives the crawl, unless the settings name another one than they did before: then
    somebody has changed his mind since.
    """
    orders = SqliteOrders(folder.orders)
    if settings is None:
        return orders
    try:
        if orders.wishes().per_hour is not None and _before(folder) != settings.budget.per_hour:
            orders.give(ChangeBudget(None))
    except StoreError:
        orders.close()
        raise
    return orders


def _before(folder: DataFolder) -> int | None:
    """The budget of the crawl before, as its settings had it; None if nobody knows."""
    try:
        return folder.settings().budget.per_hour
    except StoreError:
        return None
