"""Commits of visits: decide the outcome, commit it, and follow up on what it means for other pages.

A commit costs as much for one visit as for fifty, so visits are gathered for a moment; while one batch is written,
the next one gathers. The number of leased pages bounds how many can gather.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

import msgspec

from levada.core.errors import BodiesAway, LevadaError, StoreAway
from levada.core.protocols import (
    ChangeHints,
    Clock,
    CommandQueue,
    Fetcher,
    Frontier,
    PageSample,
    RevisitPolicy,
    Sites,
)
from levada.core.reasons import Reason
from levada.core.records import PageRecord, PageState, Signals, VisitResult
from levada.core.settings import Settings
from levada.crawl.change_hints import ChangeHintStep
from levada.crawl.duplicates import DuplicateStep, left_out
from levada.crawl.executor import StoreExecutor
from levada.crawl.hooks import PageHooks
from levada.crawl.link_filter import LinkFilter
from levada.crawl.outcome import MOST_LINKS, OutcomeRules
from levada.crawl.visits import Visited

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0  # seconds of the wall between two tries to write bodies

FollowUp = Callable[[], Coroutine[None, None, bool]]

_HOLDS_NOTHING = frozenset({PageState.ELSEWHERE, PageState.GONE, PageState.REFUSED, PageState.FAILED})


class CommitPorts(msgspec.Struct, frozen=True):
    """What a process needs to commit visits."""

    clock: Clock
    frontier: Frontier
    sites: Sites
    hints: ChangeHints
    policy: RevisitPolicy


class LiveSettings(Protocol):
    """The settings of a collection while a crawl runs on it."""

    def poll(self) -> Settings | None:
        """The settings to go on with, if they changed since the last look."""
        ...

    async def settings_changed(self, before: Settings, now: Settings, executor: StoreExecutor) -> None:
        """Make the other ports work by the new settings: fetcher, policy, store."""
        ...


class Overview(msgspec.Struct, frozen=True):
    """A connection of its own for what looks at the whole collection: leases and commits do not wait for it."""

    frontier: Frontier
    executor: StoreExecutor


class CrawlPorts(CommitPorts, frozen=True):
    """What a crawl needs of the outside world."""

    page_sample: PageSample
    fetcher: Fetcher
    commands: CommandQueue | None = None
    settings: LiveSettings | None = None
    is_partial: Callable[[], bool] = lambda: False  # a shard is away: its pages are leased when it is back
    compact: Callable[[], None] | None = None  # makes the store's files small; on the thread of the store
    overview: Overview | None = None


class Commits:
    """Decides and commits visits, in the process of the crawl or in a worker elsewhere.

    `put` adds a visit result to the next commit; `on_committed` gets the results and whether each was accepted.
    `hooks` get the visits that stored a page. `gathers` tells whether others are to come; without it, each commit
    waits for them for the time of the settings.
    """

    def __init__(
        self,
        ports: CommitPorts,
        settings: Settings,
        executor: StoreExecutor,
        link_filter: LinkFilter,
        on_committed: Callable[[Sequence[VisitResult], Sequence[bool]], None],
        hooks: PageHooks | None = None,
        gathers: Callable[[], bool] | None = None,
    ) -> None:
        self._ports = ports
        self._executor = executor
        self._link_filter = link_filter
        self._on_committed = on_committed
        self._gathers = gathers
        self._hooks = hooks
        self._outcome_rules = OutcomeRules(settings, ports.policy, link_filter)
        self._without_duplicates = DuplicateStep(ports.frontier, executor, self._outcome_rules, settings.crawl)
        self._take_hints = ChangeHintStep(ports.hints, ports.policy, executor, self._outcome_rules.own_floor)
        self.settings_changed(settings)
        self._gathered: deque[VisitResult] = deque()
        self._news = asyncio.Event()
        self._ending = False

    def settings_changed(self, settings: Settings) -> None:
        """Decide and gather by these from now on."""
        self._outcome_rules.settings_changed(settings)
        self._without_duplicates.settings_changed(settings.crawl)
        self._batch = settings.store.batch
        self._gather_seconds = settings.store.gather_seconds * settings.clock.speed
        self._speed = settings.clock.speed
        self._patience = settings.bodies.wait * settings.clock.speed

    def __len__(self) -> int:
        return len(self._gathered)

    async def decide(self, visited: Visited) -> VisitResult:
        """The result of a visit; the record of the page that it names canonical is part of the decision."""
        fetched = visited.fetched
        try:
            canonical = visited.parsed.canonical if visited.parsed is not None else None
            if canonical:
                canonical = self._link_filter.rules.tidied(canonical)
            rival = None
            if canonical and canonical != fetched.lease.page.url:
                with suppress(StoreAway):  # as if nothing were known of it yet
                    rival = await self._executor.run(self._ports.frontier.page, canonical)
            return self._outcome_rules.decide(visited, rival)
        except LevadaError:
            raise  # the store failed: this is not the fault of the page
        except Exception:
            log.exception("deciding on %s", fetched.lease.page.url)
            return self._outcome_rules.trouble(fetched.lease, fetched.at, Reason.INTERNAL)

    def put(self, result: VisitResult) -> None:
        self._gathered.append(result)
        self._news.set()

    def look_again(self) -> None:
        """Commit what has gathered, unless others are still to come."""
        self._news.set()

    def finish(self) -> None:
        """Commit what has gathered, then end `run`."""
        self._ending = True
        self._news.set()

    async def run(self) -> None:
        """Commit batches until `finish`. An error of the store ends the crawl."""
        while self._gathered or not self._ending:
            await self._news.wait()
            if not self._ending and len(self._gathered) < self._batch:
                if self._gathers is None:
                    await self._ports.clock.sleep(self._gather_seconds)
                elif self._gathers():
                    self._news.clear()
                    continue
            batch = [self._gathered.popleft() for _ in range(min(self._batch, len(self._gathered)))]
            if not self._gathered:
                self._news.clear()
            if batch:
                await self._commit(batch)
        if self._hooks is not None:
            await asyncio.to_thread(self._hooks.close)

    async def _commit(self, decided: Sequence[VisitResult]) -> None:
        batch, deferred = await self._without_duplicates(decided)
        for result in [each for each in batch if each.more]:
            try:
                await self._add_links(result)
            except StoreAway as error:  # its page is visited again, and brings the links again
                log.debug("not stored: %s: %s", result.lease.page.url, error)
                batch = [each for each in batch if each is not result]
                self._link_filter.withdraw(result.found)
                self._on_committed([result], [False])
        if deferred:
            self._gathered.extendleft(reversed(deferred))
            self._news.set()
        accepted = await self._accepted(batch)
        for result, is_stored in zip(batch, accepted, strict=True):
            if is_stored:
                self._link_filter.stored(result.found)
            else:
                self._link_filter.withdraw(result.found)
        if self._hooks is not None:
            self._hooks.put([result for result, is_stored in zip(batch, accepted, strict=True) if is_stored])
        self._on_committed(batch, accepted)

    async def _accepted(self, batch: Sequence[VisitResult]) -> list[bool]:
        """Commit; wait while the place of the bodies cannot be reached, until the crawl ends or has waited enough."""
        clock, began, pause = self._ports.clock, self._ports.clock.monotonic(), _FIRST_PAUSE * self._speed
        while True:
            try:
                accepted = await self._executor.run(self._ports.frontier.commit, batch)
            except BodiesAway as error:
                waited = clock.monotonic() - began
                if self._ending or waited >= self._patience:
                    raise
                if pause == _FIRST_PAUSE * self._speed:
                    log.warning("%s: the crawl waits, and goes on when it is back", error)
                await clock.sleep(min(pause, max(0.0, self._patience - waited)))
                pause = min(2 * pause, _LONGEST_PAUSE * self._speed)
            else:
                if pause > _FIRST_PAUSE * self._speed:
                    log.warning("the place of the bodies is back: the crawl goes on")
                return accepted

    async def _add_links(self, result: VisitResult) -> None:
        """Add the links of a page that has very many, some at a time.

        They are stored before their page is: a crawl that is killed in between visits the page again.
        """
        page, at = result.lease.page, result.visit.at
        for start in range(0, len(result.more), MOST_LINKS):
            links = result.more[start : start + MOST_LINKS]
            found, refused = self._link_filter.select(page, links, (), result.nofollow)
            await self._executor.run(self._ports.frontier.add, found, refused, at, found_on=page.id)
            self._link_filter.stored(found)

    def follow_up(self, result: VisitResult, at: float) -> FollowUp | None:
        """The work that a committed visit causes for other pages, whose rechecks are due at `at`.

        None for most visits. Called and awaited, it returns whether a page is due earlier now.
        """
        was = result.lease.page
        if result.state is not PageState.LIVE:
            self._ports.policy.estimates.forget(was)
        pages = self._outcome_rules.canonicals.after(result)
        moved = was.version > 0 and was.state is PageState.LIVE
        address = result.leads_to if moved else None
        if result.hints or pages or address or result.proves:
            return partial(self._follow, result, pages, address, at)
        return None

    async def _follow(self, result: VisitResult, pages: Sequence[PageRecord], address: str | None, at: float) -> bool:
        """Recheck the pages that were set aside for a canonical page without content, or like one that is worth it.

        If a stored page now leads to `address`, recheck that one too if it has no content: it may have moved there.
        """
        outdated = await self._take_hints(result.hints)
        again = list(pages)
        if result.proves:
            site, now = result.lease.page.site, self._ports.clock.now()
            alike = await self._executor.run(lambda: list(left_out(self._ports.frontier, site, result.proves, now)))
            again += alike
        if address is not None:
            with suppress(StoreAway):
                there = await self._executor.run(self._ports.frontier.page, address)
                if there is not None and there.state in _HOLDS_NOTHING:
                    again.append(there)
        if again:
            due = [(page, Signals.NOTHING, at) for page in again]
            await self._executor.run(self._ports.hints.bring_forward, due)
        return bool(outdated or again)
