"""The obeying step: what somebody outside asks of a crawl that runs, is done, once.

An order is marked as obeyed after it was: a crash in between repeats it, and repeating one changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import ParamSpec, Protocol, TypeVar

from levada.errors import BadUrl, StoreError
from levada.flow.agenda import Agenda
from levada.flow.holding import OpenLeases
from levada.flow.settings import Settings
from levada.flow.sieve import LinkSieve
from levada.flow.sitebook import SiteBook
from levada.flow.storekeeper import Storekeeper
from levada.orders import AddSeeds, ChangeBudget, DropSite, Order, Pause, Resume, Wishes
from levada.pages.urls import canonical, site_of
from levada.ports import Clock, Frontier, Orders, RevisitPolicy
from levada.records import FOREVER, Found, How, Lease

__all__ = ["ObeyingPorts", "ObeyingStep", "wishes_after"]

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_LOOK = 0.4  # seconds of the wall between two looks


class ObeyingPorts(Protocol):
    """What of the world is needed to obey."""

    @property
    def clock(self) -> Clock: ...

    @property
    def frontier(self) -> Frontier: ...

    @property
    def policy(self) -> RevisitPolicy: ...

    @property
    def orders(self) -> Orders | None: ...


def wishes_after(order: Order, wishes: Wishes) -> Wishes:
    """What holds once this order is obeyed."""
    match order:
        case Pause():
            return Wishes(True, wishes.per_hour)
        case Resume():
            return Wishes(False, wishes.per_hour)
        case ChangeBudget(per_hour):
            return Wishes(wishes.paused, per_hour)
        case _:
            return wishes


class ObeyingStep:
    """Holds what is wished now: `paused` and `per_hour` are read by the loop that leases and fetches."""

    def __init__(
        self,
        ports: ObeyingPorts,
        settings: Settings,
        keeper: Storekeeper,
        *,
        agenda: Agenda,
        sieve: LinkSieve,
        sites: SiteBook,
        open_leases: OpenLeases,
        on_news: Callable[[], None],
    ) -> None:
        self.paused = False
        self.per_hour = settings.budget.per_hour
        self._orders = ports.orders
        self._budget = settings.budget
        self._clock = ports.clock
        self._pause = _LOOK * settings.clock.speed
        self._frontier = ports.frontier
        self._policy = ports.policy
        self._keeper = keeper
        self._agenda = agenda
        self._sieve = sieve
        self._sites = sites
        self._open = open_leases
        self._on_news = on_news
        self._wishes = Wishes()
        self._trouble = ""

    async def begin(self) -> None:
        """What was wished before this crawl began holds from its first fetch on."""
        if self._orders is not None:
            await self._fulfil(await self._asked(self._orders.wishes) or Wishes())
            await self.look()

    async def run(self) -> None:
        """Until cancelled."""
        while self._orders is not None:
            await self._clock.sleep(self._pause)
            await self.look()

    async def look(self) -> None:
        """Obey whatever is there."""
        if self._orders is None:
            return
        for number, order in await self._asked(self._orders.pending) or []:
            await self._obey(order)
            await self._fulfil(wishes_after(order, self._wishes))
            await self._asked(self._orders.obeyed, number, self._wishes)
            self._on_news()

    async def _asked(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Orders that cannot be read or marked hold nobody up: it is said once, and tried again."""
        try:
            answer = await self._keeper.run(operation, *args, **kwargs)
        except StoreError as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                log.warning("orders wait: %s", error)
            return None
        self._trouble = ""
        return answer

    async def _obey(self, order: Order) -> None:
        match order:
            case AddSeeds(urls):
                await self._add(urls)
            case DropSite(site):
                await self._drop(site)
            case _:
                pass

    async def _fulfil(self, wishes: Wishes) -> None:
        per_hour = self._budget.per_hour if wishes.per_hour is None else wishes.per_hour
        if per_hour != self.per_hour:
            self.per_hour = per_hour
            self._agenda.set_budget(per_hour)
            self._policy.afford(per_hour)
        if wishes.paused and not self.paused:
            self.paused = True
            await self._give_back(self._agenda.drain())
        self.paused = wishes.paused
        self._wishes = wishes

    async def _add(self, urls: Iterable[str]) -> None:
        found = [seed for url in urls if (seed := _seed(url)) is not None]
        for site in {seed.site for seed in found}:
            await self._sites.take_up(site)
            self._agenda.take_up(site)
            self._sieve.admitted.add(site)
        await self._keeper.run(self._frontier.add, found, [], self._clock.now())

    async def _drop(self, site: str) -> None:
        self._sieve.admitted.discard(site)
        await self._sites.drop(site)
        await self._give_back(self._agenda.hold(site, FOREVER))

    async def _give_back(self, waiting: Iterable[Lease]) -> None:
        leases = [self._open.let_go(lease) for lease in waiting]
        if leases:
            await self._keeper.run(self._frontier.release, leases)


def _seed(url: str) -> Found | None:
    try:
        address = canonical(url)
    except BadUrl as error:
        log.warning("an order names no address: %s", error)
        return None
    return Found(address, site_of(address), how=How.SEED, admit=True)
