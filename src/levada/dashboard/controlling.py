"""What may be asked of the crawl: seeds, sites to drop, a pause, a budget. Orders that it obeys within a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from levada.dashboard.operations import Nothing, Operation
from levada.dashboard.site_facts import SiteAsk
from levada.dashboard.view import View
from levada.errors import NotFound, TooMany
from levada.orders import AddSeeds, ChangeBudget, DropSite, Order, Pause, Resume
from levada.pages.urls import seed_address, site_of

__all__ = ["CONTROLLING"]

_MOST_WAITING = 1_000  # orders: nobody seems to obey them
_MOST_SEEDS = 1_000
_Address = Annotated[str, msgspec.Meta(max_length=4096)]


class SeedsAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    urls: Annotated[list[_Address], msgspec.Meta(min_length=1, max_length=_MOST_SEEDS)]


class BudgetAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    per_hour: Annotated[int, msgspec.Meta(ge=0, le=10**9)]  # fetches; 0: no limit


class OrderAnswer(msgspec.Struct, frozen=True):
    """The order is kept, and obeyed by the crawl that runs, or by the next one."""

    order: int
    waiting: int  # orders that nobody has obeyed yet
    crawling: bool  # a crawl runs now


class WishesAnswer(msgspec.Struct, frozen=True):
    paused: bool
    per_hour: int  # fetches; 0: no limit


def _give(view: View, order: Order) -> OrderAnswer:
    view.collection()  # where nothing is stored nobody would ever obey
    with view.orders() as orders:
        waiting = len(orders.pending())
        if waiting >= _MOST_WAITING:
            raise TooMany(f"{waiting} orders wait already: start a crawl that obeys them")
        return OrderAnswer(orders.give(order), waiting + 1, view.is_crawling())


def _add(view: View, ask: SeedsAsk) -> OrderAnswer:
    addresses = [seed_address(url) for url in ask.urls]
    _refuse_full_sites(view, addresses)
    return _give(view, AddSeeds(tuple(addresses)))


def _refuse_full_sites(view: View, addresses: list[str]) -> None:
    collection = view.collection()
    most = collection.settings.crawl.max_pages_per_site
    for site in {site_of(each) for each in addresses}:
        record = collection.store.site(site)
        if record is not None and record.pages >= most:
            raise TooMany(f"{site} has {record.pages:,} pages already, and more than {most:,} are not taken")


def _drop(view: View, ask: SiteAsk) -> OrderAnswer:
    if view.collection().store.site(ask.site.lower()) is None:
        raise NotFound(f"no site {ask.site[:200]} is known")
    return _give(view, DropSite(ask.site.lower()))


def _pause(view: View, _ask: Nothing) -> OrderAnswer:
    return _give(view, Pause())


def _resume(view: View, _ask: Nothing) -> OrderAnswer:
    return _give(view, Resume())


def _spend(view: View, ask: BudgetAsk) -> OrderAnswer:
    return _give(view, ChangeBudget(ask.per_hour))


def _wishes(view: View, _ask: Nothing) -> WishesAnswer:
    settings = view.collection().settings
    with view.orders() as orders:
        wishes = orders.wishes()
    per_hour = settings.budget.per_hour if wishes.per_hour is None else wishes.per_hour
    return WishesAnswer(wishes.paused, per_hour)


def _order(
    method: str,
    path: str,
    summary: str,
    handle: Callable[[View, Any], OrderAnswer],
    asks: type[msgspec.Struct] = Nothing,
    *,
    in_body: bool = False,
) -> Operation:
    return Operation(
        method=method,
        path=path,
        summary=summary,
        handle=handle,
        asks=asks,
        in_body=in_body,
        answer=OrderAnswer,
        status=202,
        errors=(404, 409, 429),
        slow=True,
    )


CONTROLLING = [
    _order("POST", "/seeds", "Visit these addresses too, and their sites", _add, SeedsAsk, in_body=True),
    _order("DELETE", "/sites", "Visit a site no more", _drop, SiteAsk),
    _order("POST", "/pause", "Stop fetching; what is under way finishes", _pause),
    _order("POST", "/resume", "Fetch on", _resume),
    _order("PUT", "/budget", "Have so many fetches per hour", _spend, BudgetAsk, in_body=True),
    Operation(
        method="GET",
        path="/budget",
        summary="How many fetches there are, and whether the crawl is paused",
        handle=_wishes,
        answer=WishesAnswer,
        errors=(404,),
        slow=True,
    ),
]
