"""Several schedulers share the sites of one collection, in simulated time."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.errors import StoreAway
from levada.core.records import Response
from levada.crawl.commits import CrawlPorts
from levada.crawl.distributed.ownership import BEAT, HOLD, SiteOwnership
from levada.crawl.distributed.transport import RabbitmqTransport
from levada.crawl.engine import Crawl
from levada.pages.urls import site_of
from levada.store.ownership import SLICES, Holds, shared_out, slice_of
from tests.crawl.simulated_crawl import START, World, _InlineKeeper, ema_policy, page, run_simulated, status
from tests.crawl.test_several_workers import NAMES, Several
from tests.crawl.test_several_workers import Web as TwoSites
from tests.manual_clock import ManualClock

BOUND = 10.0  # seconds in which everything that a dead scheduler owned is owned again


class Table:
    """The table of the owners, as the server keeps it; it may be away."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self.owners: list[str | None] = [None] * SLICES
        self._epochs = [0] * SLICES
        self.is_away = False

    def renew(self, name: str, released: Collection[int], seconds: float) -> Holds:
        if self.is_away:
            raise StoreAway("away")
        now = self._clock.now()
        self._until[name] = now + seconds
        self._until = {each: until for each, until in self._until.items() if until > now}
        for number in released:
            if self.owners[number] == name:
                self.owners[number] = None
        take, give = shared_out(self.owners, list(self._until), name)
        orphaned = [number for number in take if self.owners[number] is not None or not self._epochs[number]]
        for number in take:
            self.owners[number] = name
            self._epochs[number] += 1
        owned = {n: self._epochs[n] for n in range(SLICES) if self.owners[n] == name}
        return Holds(owned, give, orphaned, len(self._until))

    def leave(self, name: str) -> None:
        self._until.pop(name, None)
        self.owners = [None if owner == name else owner for owner in self.owners]


class Idle:
    """A scheduler with some requests under way."""

    def __init__(self) -> None:
        self.under_way: set[int] = set()
        self.lost: list[int] = []

    def sites_gained(self, slices: Collection[int]) -> None: ...

    def sites_lost(self, slices: Collection[int]) -> None:
        self.lost += slices

    def slices_under_way(self) -> set[int]:
        return self.under_way

    def share_changed(self, share: float) -> None: ...

    def orphans(self, slices: Collection[int]) -> None: ...


class Fleet:
    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.table = Table(self.clock)
        self._executor = _InlineKeeper()
        self.there: dict[str, tuple[SiteOwnership, Idle]] = {}

    def start(self, name: str) -> None:
        self.there[name] = SiteOwnership(self.table, name, self._executor, self.clock), Idle()

    def renew(self, name: str) -> None:
        ownership, idle = self.there[name]
        asyncio.run(ownership.renew(idle))

    def trusted(self) -> list[list[str]]:
        """Who would hand out pages now, by slice."""
        return [[name for name, (each, _) in self.there.items() if n in each.slices] for n in range(SLICES)]

    def beats(self, seconds: float, *names: str) -> None:
        for _ in range(round(seconds / BEAT)):
            self.clock.advance(BEAT)
            for name in names or tuple(self.there):
                self.renew(name)
            assert max(map(len, self.trusted())) <= 1, "two own a slice"


@given(
    st.lists(st.sampled_from(["start", "kill", "stall", "away", "beat", "beat", "beat", "wait"]), max_size=60),
    st.randoms(),
)
@settings(max_examples=60, deadline=None)
def test_no_slice_is_owned_by_two_at_once_whatever_happens(events: list[str], chance: random.Random) -> None:
    fleet, made = Fleet(), 0
    stalled: set[str] = set()
    for event in events:
        awake = sorted(fleet.there.keys() - stalled)
        if event == "start" and len(fleet.there) < 5:
            made += 1
            fleet.start(f"s{made}")
        elif event == "kill" and awake:
            del fleet.there[chance.choice(awake)]
        elif event == "stall" and awake:  # it goes on one day, and believes what it knew
            stalled ^= {chance.choice(sorted(fleet.there))}
        elif event == "away":
            fleet.table.is_away = not fleet.table.is_away
        elif event == "wait":
            fleet.clock.advance(chance.uniform(0.0, 8.0))
        else:
            fleet.clock.advance(chance.uniform(0.0, 1.5))
            for name in awake:
                fleet.renew(name)
        assert max(map(len, fleet.trusted())) <= 1
    fleet.table.is_away = False
    if fleet.there:
        fleet.beats(HOLD + 4 * BEAT)
        owned = [len(each.slices) for each, _ in fleet.there.values()]
        assert sum(owned) == SLICES, "every slice is owned once they are left in peace"
        assert max(owned) - min(owned) <= 1, "in equal shares"


def test_what_a_dead_one_owned_is_owned_again_within_the_bound() -> None:
    fleet = Fleet()
    for name in ("a", "b", "c"):
        fleet.start(name)
    fleet.beats(10.0)
    assert [len(each.slices) for each, _ in fleet.there.values()] in ([22, 21, 21], [21, 22, 21], [21, 21, 22])
    fleet.renew("b")
    del fleet.there["b"]
    fleet.beats(BOUND)
    assert sum(len(each.slices) for each, _ in fleet.there.values()) == SLICES


def test_one_that_stood_still_owns_nothing_when_it_goes_on() -> None:
    fleet = Fleet()
    fleet.start("a")
    fleet.start("b")
    fleet.beats(5.0)
    fleet.beats(BOUND, "b")  # `beats` checks that nothing is owned by two
    assert fleet.there["a"][0].slices == frozenset()
    assert len(fleet.there["b"][0].slices) == SLICES


def test_a_slice_is_given_up_only_when_its_answers_are_there() -> None:
    fleet = Fleet()
    fleet.start("a")
    fleet.beats(2.0)
    owner, idle = fleet.there["a"]
    idle.under_way = {60}
    fleet.start("b")
    fleet.beats(5.0)
    assert 60 not in owner.slices, "nothing more of it is handed out"
    assert fleet.table.owners[60] == "a", "and nobody else has it"
    assert set(range(32, SLICES)) == set(idle.lost), "what waits is given back at once"
    idle.under_way = set()
    fleet.beats(3.0)
    assert fleet.table.owners[60] == "b"


def test_one_that_cannot_renew_hands_out_nothing_before_another_may() -> None:
    fleet = Fleet()
    fleet.start("a")
    fleet.beats(2.0)
    fleet.table.is_away = True
    fleet.beats(HOLD)
    assert fleet.there["a"][0].slices == frozenset()
    assert not any(fleet.there["a"][0].owns(f"s{n}.example") for n in range(100))
    fleet.table.is_away = False
    fleet.beats(BEAT)
    assert len(fleet.there["a"][0].slices) == SLICES


@given(st.text(min_size=1, max_size=60))
def test_every_site_lies_in_one_slice(site: str) -> None:
    assert 0 <= slice_of(site) < SLICES


class Web(TwoSites):
    """Some sites, and their pages."""

    def __init__(self, settings: str, sites_: int = 12, pages: int = 5) -> None:
        sites = [f"s{number}.example" for number in range(sites_)]
        names = [str(number) for number in range(1, pages)]
        web: dict[str, Response] = {f"http://{site}/robots.txt": status(404) for site in sites}
        self.expected = [f"http://{site}/{name}" for site in sites for name in ("", *names)]
        for url in self.expected:
            web[url] = page(url, *(f"/{name}" for name in names))
        World.__init__(self, web, f"[crawl]\nsitemaps = false\n{settings}")
        self.starts = tuple(f"http://{site}/" for site in sites)


def _receiver(crawl: Crawl, transport: RabbitmqTransport) -> Callable[[bytes, bool], Awaitable[None]]:
    """What takes answers until the crawl is told to end."""

    async def receive(body: bytes, again: bool) -> None:
        if not crawl._scheduler.stopped:
            await transport.receive(body, again)

    return receive


class Controls(Several):
    """Two schedulers, each with its own ownership and answers; workers are those of `Several`."""

    def __init__(self, world: Web) -> None:
        self.table = Table(world.clock)
        super().__init__(world)
        self.controls = [self._control(name) for name in ("a", "b")]

    def _control(self, name: str) -> tuple[Crawl, RabbitmqTransport]:
        world, store = self.world, self.world.store
        ownership = SiteOwnership(self.table, name, self.executor, world.clock)
        ports = CrawlPorts(world.clock, store, store, store, ema_policy(), store, world.web)
        transport = RabbitmqTransport(NAMES, self.line.publish, ownership)
        return Crawl(ports, world.settings, transport, executor=self.executor, watch=None, alone=False), transport

    def run_both(self, seconds: float, *, kill_after: float | None = None, start_after: float = 0.0) -> None:
        async def story() -> None:
            others = []
            for fetcher in [self._fetcher() for _ in range(2)]:
                others += [fetcher.run(), self.line.work_many(NAMES.fetch, fetcher)]
            worker = self._catalog()
            others += [worker.run(), self.line.work(NAMES.catalog, worker)]
            running = [asyncio.ensure_future(each) for each in others]
            runs = []
            for number, (crawl, transport) in enumerate(self.controls):
                if number:
                    await self.world.clock.sleep(start_after)
                runs.append(asyncio.ensure_future(crawl.run()))
                running.append(asyncio.ensure_future(self.line.work(transport.answers, _receiver(crawl, transport))))
            if kill_after is not None:
                await self.world.clock.sleep(kill_after)
                self._silence(*self.controls[0])
                runs[0].cancel()
            await self.world.clock.sleep(seconds)
            for crawl, _ in self.controls:
                crawl.stop()
            await asyncio.wait(runs)
            for job in running:
                job.cancel()
            results = await asyncio.gather(*running, return_exceptions=True)
            assert [each for each in results if isinstance(each, Exception)] == []

        run_simulated(self.world.clock, story)
        self.executor.close()

    def _silence(self, crawl: Crawl, transport: RabbitmqTransport) -> None:
        """It dies: nothing of what it does from now on reaches anybody, nor does anything reach it."""

        async def nothing(*_: object) -> bool:
            return True

        transport._publish_bytes = nothing
        transport.receive = nothing  # type: ignore[method-assign, assignment]
        transport._ownership._table = Table(ManualClock())  # type: ignore[union-attr]
        crawl._scheduler._give_back = nothing  # type: ignore[method-assign, assignment]

    def assert_all_once_and_polite(self, delay: float) -> None:
        found = [self.world.store.page(url) for url in self.world.expected]
        assert [(each.visits, each.version) for each in found if each is not None] == [(1, 1)] * len(found)
        by_site = defaultdict(list)
        for at, url in self.world.web.times:
            by_site[site_of(url)].append(at)
        for site, times in by_site.items():
            assert min(later - earlier for earlier, later in pairwise(times)) >= delay - 1e-6, site


def test_two_schedulers_share_the_work_and_ask_each_site_politely() -> None:
    controls = Controls(Web("[politeness]\ndelay = 2\n"))
    controls.run_both(300.0)
    controls.assert_all_once_and_polite(2.0)
    handed_out = [transport.handed_out for _, transport in controls.controls]
    assert min(handed_out) > 0.2 * sum(handed_out)


@pytest.mark.parametrize("seconds", [0.1, 1.5])
@pytest.mark.parametrize(("delay", "kill_after"), [(2, 4.8), (2, 20.3), (20, 24.0), (20, 130.0), (20, 236.0)])
def test_the_delay_of_a_site_holds_across_a_takeover_and_nothing_is_lost(
    delay: int, kill_after: float, seconds: float
) -> None:
    controls = Controls(Web(f"[politeness]\ndelay = {delay}\n", 5, 25))
    controls.world.web.seconds = seconds  # slower than a lease expects: its pages are asked for after its end
    controls.run_both(400.0 * delay, kill_after=kill_after)
    controls.assert_all_once_and_polite(delay)


def test_the_delay_of_a_site_holds_when_another_scheduler_joins() -> None:
    controls = Controls(Web("[politeness]\ndelay = 2\n"))
    controls.run_both(400.0, start_after=4.5)
    controls.assert_all_once_and_polite(2.0)
    assert controls.controls[1][1].handed_out > 0


@pytest.mark.parametrize("kill_after", [None, 200.0])
def test_the_budget_holds_for_all_schedulers_together(kill_after: float | None) -> None:
    controls = Controls(Web("[politeness]\ndelay = 0\n[budget]\nper_hour = 360\n"))
    controls.run_both(500.0 - (kill_after or 0.0), kill_after=kill_after)
    pages = [at for at, url in controls.world.web.times if not url.endswith("robots.txt")]
    assert 0.6 * 50 <= len(pages) <= 1.15 * 50, "one in ten seconds"
