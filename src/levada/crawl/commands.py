"""Control commands: executes them on a running crawl.

A command is marked as done after its execution: a crash in between repeats it, and a repetition changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from levada.core.commands import (
    EVERY_SITE,
    AddSeeds,
    ChangeBudget,
    CheckNow,
    Compact,
    ControlCommand,
    DesiredState,
    DropSite,
    Pause,
    Resume,
)
from levada.core.errors import BadUrl, StoreAway, StoreError, UsageError
from levada.core.records import FOREVER, DiscoveredBy, FoundUrl, Lease
from levada.core.settings import Settings
from levada.crawl.checks import CheckStep
from levada.crawl.commits import CrawlPorts
from levada.crawl.executor import StoreExecutor
from levada.crawl.in_flight import InFlightLeases
from levada.crawl.link_filter import LinkFilter
from levada.crawl.politeness import PolitenessQueue
from levada.crawl.sites import SiteCache
from levada.pages.urls import canonical, site_of

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_POLL_SECONDS = 0.4  # wall clock


def desired_state_after(command: ControlCommand, state: DesiredState) -> DesiredState:
    """The desired state after this command."""
    match command:
        case Pause():
            return DesiredState(True, state.per_hour)
        case Resume():
            return DesiredState(False, state.per_hour)
        case ChangeBudget(per_hour):
            return DesiredState(state.paused, per_hour)
        case _:
            return state


class CommandStep:
    """Executes commands. The scheduler reads the desired state from `paused` and `per_hour`."""

    def __init__(
        self,
        ports: CrawlPorts,
        settings: Settings,
        executor: StoreExecutor,
        *,
        politeness_queue: PolitenessQueue,
        link_filter: LinkFilter,
        sites: SiteCache,
        open_leases: InFlightLeases,
        checks: CheckStep,
        on_news: Callable[[], None],
        on_settings: Callable[[Settings, Settings], None],
    ) -> None:
        self.paused = False
        self.per_hour = settings.budget.per_hour
        self._commands = ports.commands
        self._ports = ports
        self._settings = settings
        self._pause = _POLL_SECONDS * settings.clock.speed
        self._executor = executor
        self._politeness_queue = politeness_queue
        self._link_filter = link_filter
        self._sites = sites
        self._open = open_leases
        self._checks = checks
        self._on_news = on_news
        self._on_settings = on_settings
        self._desired_state = DesiredState()
        self._trouble = ""

    async def begin(self) -> None:
        """Apply the stored desired state before the first fetch."""
        if self._commands is not None:
            await self._apply(await self._run(self._commands.desired_state) or DesiredState())
        await self.poll()

    async def run(self) -> None:
        """Execute commands until cancelled."""
        while self._commands is not None or self._ports.settings is not None:
            await self._ports.clock.sleep(self._pause)
            await self.poll()

    async def poll(self) -> None:
        """Take up changed settings, and execute the commands that wait."""
        await self._take_up_settings()
        if self._commands is None:
            return
        for number, command in await self._run(self._commands.pending) or []:
            try:
                await self._execute(command)
            except StoreAway as error:  # this command and those after it are tried again, in their order
                self._say(error)
                return
            await self._apply(desired_state_after(command, self._desired_state))
            await self._run(self._commands.mark_done, number, self._desired_state)
            self._on_news()

    async def _execute(self, command: ControlCommand) -> None:
        if isinstance(command, AddSeeds):
            await self._add(command.urls)
        elif isinstance(command, DropSite):
            await self._drop(command.site)
        elif isinstance(command, CheckNow):
            await self._check(command)
        elif isinstance(command, Compact):
            await self._compact()

    async def _take_up_settings(self) -> None:
        """Go on with what the collection keeps, if that changed. A change that fails leaves the crawl as it is."""
        live, before = self._ports.settings, self._settings
        now = live.poll() if live is not None else None
        if live is None or now is None:
            return
        try:
            await live.settings_changed(before, now, self._executor)
        except UsageError as error:
            log.warning("the settings of the crawl stay as they are: %s", error)
            return
        self._settings = now
        self._set_budget(self._desired_state, anew=True)
        self._on_settings(before, now)
        self._on_news()

    async def _run(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Use the command queue. An error does not stop the crawl: it is logged once and tried again."""
        try:
            answer = await self._executor.run(operation, *args, **kwargs)
        except StoreError as error:
            self._say(error)
            return None
        self._trouble = ""
        return answer

    def _say(self, error: StoreError) -> None:
        if str(error) != self._trouble:
            self._trouble = str(error)
            log.warning("commands wait: %s", error)

    async def _apply(self, state: DesiredState) -> None:
        self._set_budget(state)
        if state.paused and not self.paused:
            self.paused = True
            await self._give_back(self._politeness_queue.drain())
        self.paused = state.paused
        self._desired_state = state

    def _set_budget(self, state: DesiredState, *, anew: bool = False) -> None:
        """Have the budget of the commands, else that of the settings; `anew` tells also a policy that was replaced."""
        per_hour = self._settings.budget.per_hour if state.per_hour is None else state.per_hour
        if per_hour != self.per_hour:
            self._politeness_queue.set_budget(per_hour)
        if per_hour != self.per_hour or anew:
            self._ports.policy.set_budget(per_hour)
        self.per_hour = per_hour

    async def _add(self, urls: Iterable[str]) -> None:
        found = [seed for url in urls if (seed := self._seed(url)) is not None]
        for site in {seed.site for seed in found}:
            await self._sites.readmit(site)
            self._politeness_queue.readmit(site)
            self._link_filter.admitted.add(site)
        await self._executor.run(self._ports.frontier.add, found, [], self._ports.clock.now())

    async def _drop(self, site: str) -> None:
        self._link_filter.admitted.discard(site)
        await self._sites.drop(site)
        await self._give_back(self._politeness_queue.hold(site, FOREVER))

    async def _check(self, command: CheckNow) -> None:
        if command.site:
            site = "" if command.site == EVERY_SITE else command.site
            await self._checks.want_all(site, self._ports.clock.now(), self._look_ahead)
            return
        named = [seed for url in command.urls if (seed := self._seed(url)) is not None]
        wanted = [seed for seed in named if not (await self._sites.get(seed.site)).dropped]
        page = self._ports.frontier.page
        await self._add([each.url for each in wanted if await self._executor.run(page, each.url) is None])
        await self._checks.want([each.url for each in wanted])

    async def _look_ahead(self) -> None:
        """Apply a pause at once although a long command is being executed; it is repeated in its order."""
        if self._commands is not None:
            state = self._desired_state
            for _, command in await self._run(self._commands.pending) or []:
                state = desired_state_after(command, state)
            await self._apply(state)

    async def _compact(self) -> None:
        """Give back the pages that wait, of which some may be forgotten, and unlearn the forgotten sites."""
        await self._give_back(self._politeness_queue.drain())
        self._sites.clear()
        for site in sorted(self._link_filter.admitted):
            if await self._executor.run(self._ports.sites.site, site) is None:
                self._link_filter.admitted.discard(site)
        if self._ports.compact is not None:
            await self._executor.run(self._ports.compact)

    async def _give_back(self, waiting: Iterable[Lease]) -> None:
        leases = [self._open.let_go(lease) for lease in waiting]
        if leases:
            await self._executor.run(self._ports.frontier.release, leases)

    def _seed(self, url: str) -> FoundUrl | None:
        try:
            address = self._link_filter.rules.tidied(canonical(url))
        except BadUrl as error:
            log.warning("a seed of a command is skipped: %s", error)
            return None
        return FoundUrl(address, site_of(address), how=DiscoveredBy.SEED, admit=True)
