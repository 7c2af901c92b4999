"""Politeness and budget hold, and no page is lost, whatever comes in which order."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.records import DiscoveredBy, Lease, PageKind, PageRecord, PageState
from levada.core.site_rules.pace import SitePaces
from levada.crawl.politeness import BudgetPacer, PolitenessQueue

EVER = float("inf")


def lease(number: int, site: str, expires_at: float = EVER) -> Lease:
    url = f"http://{site}/{number}"
    record = PageRecord(number, url, site, PageKind.PAGE, PageState.NEW, DiscoveredBy.LINK, 0, 0, 0.0)
    return Lease(record, number, expires_at)


class Driver:
    """Takes whatever may be taken, and ends requests after as long as it is told."""

    def __init__(self, politeness_queue: PolitenessQueue) -> None:
        self.politeness_queue = politeness_queue
        self.now = 0.0
        self.starts: list[tuple[float, str]] = []
        self.taken: list[int] = []
        self.most_at_once: Counter[str] = Counter()
        self._under_way: list[tuple[float, str]] = []

    def run(self, seconds: list[float]) -> None:
        """Until nothing waits; the n-th request takes `seconds[n % len]`."""
        while len(self.politeness_queue) or self._under_way:
            self._take_all(seconds)
            self._move_on()

    def _take_all(self, seconds: list[float]) -> None:
        while (taken := self.politeness_queue.take(self.now)) is not None:
            site = taken.page.site
            self.taken.append(taken.page.id)
            self.starts.append((self.now, site))
            self._under_way.append((self.now + seconds[len(self.taken) % len(seconds)], site))
            at_once = sum(each == site for _, each in self._under_way)
            self.most_at_once[site] = max(self.most_at_once[site], at_once)

    def _move_on(self) -> None:
        ready = self.politeness_queue.next_ready()
        moments = [end for end, _ in self._under_way] + ([ready] if ready is not None else [])
        assert moments or not len(self.politeness_queue), "pages wait, and nothing will ever happen"
        self.now = max(self.now, min(moments, default=self.now))
        for ended in [each for each in self._under_way if each[0] <= self.now]:
            self._under_way.remove(ended)
            self.politeness_queue.finished(ended[1], self.now)

    def times(self, site: str | None = None) -> list[float]:
        return [at for at, where in self.starts if site is None or where == site]


sites = st.sampled_from(["a", "b", "c"])
lines = st.lists(sites, min_size=1, max_size=40)
durations = st.lists(st.floats(0.0, 20.0), min_size=1, max_size=5)


@given(lines, durations, st.floats(0.0, 10.0), st.integers(1, 3))
def test_a_site_is_asked_no_more_often_and_no_more_at_once_than_is_polite(
    line: list[str], seconds: list[float], delay: float, at_once: int
) -> None:
    politeness_queue = PolitenessQueue(SitePaces(delay=delay), at_once)
    for number, site in enumerate(line):
        politeness_queue.put(lease(number, site))
    driver = Driver(politeness_queue)
    driver.run(seconds)
    assert sorted(driver.taken) == list(range(len(line)))
    assert all(most <= at_once for most in driver.most_at_once.values())
    for site in set(line):
        assert all(later - sooner >= delay - 1e-9 for sooner, later in pairwise(driver.times(site)))


@given(lines, durations, st.integers(1, 500), st.integers(1, 500))
def test_budgets_hold_over_any_window(line: list[str], seconds: list[float], per_hour: int, per_site: int) -> None:
    politeness_queue = PolitenessQueue(SitePaces(per_hour=per_site), 10, per_hour=per_hour)
    for number, site in enumerate(line):
        politeness_queue.put(lease(number, site))
    driver = Driver(politeness_queue)
    driver.run(seconds)
    assert len(driver.taken) == len(line)
    for window in (60.0, 600.0, 3600.0, 7200.0):
        assert _most_within(driver.times(), window) <= 1 + per_hour * window / 3600 * 1.000001
        for site in set(line):
            assert _most_within(driver.times(site), window) <= 1 + per_site * window / 3600 * 1.000001


def _most_within(times: list[float], window: float) -> int:
    return max(sum(start <= at < start + window for at in times) for start in times)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), sites, st.floats(1.0, 50.0)),
        st.tuples(st.just("take"), sites, st.just(0.0)),
        st.tuples(st.just("finish"), sites, st.just(0.0)),
        st.tuples(st.just("postpone"), sites, st.just(0.0)),
        st.tuples(st.just("hold"), sites, st.floats(0.0, 30.0)),
        st.tuples(st.just("delay"), sites, st.floats(0.0, 10.0)),
        st.tuples(st.just("wait"), sites, st.floats(0.0, 20.0)),
        st.tuples(st.just("drain"), sites, st.just(0.0)),
    ),
    max_size=80,
)


@given(steps)
@settings(max_examples=300)
def test_every_page_comes_out_exactly_once_whatever_happens(plan: list[tuple[str, str, float]]) -> None:
    politeness_queue = PolitenessQueue(SitePaces(delay=1.0), 2, per_hour=3600, most_idle=1)
    now, number = 0.0, 0
    out: list[int] = []
    under_way: list[Lease] = []
    for what, site, value in plan:
        if what == "put":
            politeness_queue.put(lease(number, site, now + value))
            number += 1
        elif what == "take" and (taken := politeness_queue.take(now)) is not None:
            under_way.append(taken)
        elif what == "finish" and under_way:
            done = under_way.pop(0)
            out.append(done.page.id)
            politeness_queue.finished(done.page.site, now)
        elif what == "postpone" and under_way:
            politeness_queue.postpone(under_way.pop(0), now)
        elif what == "hold":
            out += [each.page.id for each in politeness_queue.hold(site, now + value)]
        elif what == "delay":
            politeness_queue.set_delay(site, value)
        elif what == "drain":
            out += [each.page.id for each in politeness_queue.drain()]
        now += value if what == "wait" else 0.0
        out += [each.page.id for each in politeness_queue.stale()]
        waiting = sum(length for _, length, _ in politeness_queue.lengths())
        assert waiting == len(politeness_queue) == number - len(out) - len(under_way)
    out += [each.page.id for each in (*under_way, *politeness_queue.drain())]
    assert sorted(out) == list(range(number))


def test_a_site_that_was_held_is_asked_again_only_afterwards() -> None:
    politeness_queue = PolitenessQueue(SitePaces(delay=1.0), 1)
    politeness_queue.put(lease(1, "a"))
    politeness_queue.put(lease(2, "b"))
    assert [each.page.id for each in politeness_queue.hold("a", 100.0)] == [1]
    politeness_queue.put(lease(1, "a"))
    driver = Driver(politeness_queue)
    driver.run([0.1])
    assert driver.starts == [(0.0, "b"), (100.0, "a")]


def test_a_page_that_is_postponed_is_the_next_of_its_site_after_the_delay() -> None:
    politeness_queue = PolitenessQueue(SitePaces(delay=2.0), 2)
    for number in (1, 2):
        politeness_queue.put(lease(number, "a"))
    first = politeness_queue.take(0.0)
    assert first is not None
    politeness_queue.set_delay("a", 10.0)
    politeness_queue.postpone(first, 5.0)
    driver = Driver(politeness_queue)
    driver.run([0.1])
    assert driver.taken == [1, 2]
    assert driver.times() == [15.0, 25.0]


def test_pages_whose_lease_ended_while_they_waited_are_not_asked_for() -> None:
    politeness_queue = PolitenessQueue(SitePaces(delay=10.0), 1)
    for number in range(5):
        politeness_queue.put(lease(number, "a", expires_at=15.0))
    politeness_queue.put(lease(9, "b", expires_at=15.0))
    driver = Driver(politeness_queue)
    driver.run([0.1])
    assert sorted(driver.taken) == [0, 1, 9]
    assert sorted(each.page.id for each in politeness_queue.stale()) == [2, 3, 4]


def test_a_site_that_asks_for_less_than_our_own_delay_gets_our_own() -> None:
    politeness_queue = PolitenessQueue(SitePaces(delay=5.0), 1)
    politeness_queue.set_delay("a", 1.0)
    politeness_queue.put(lease(1, "a"))
    politeness_queue.put(lease(2, "a"))
    driver = Driver(politeness_queue)
    driver.run([0.0])
    assert driver.times() == [0.0, 5.0]


def test_sites_that_are_idle_are_forgotten() -> None:
    politeness_queue = PolitenessQueue(SitePaces(delay=1.0), 1, most_idle=10)
    driver = Driver(politeness_queue)
    for number in range(1000):
        politeness_queue.put(lease(number, f"site{number}"))
        driver.run([0.0])
        driver.now += 2.0
    assert len(politeness_queue._lines) <= 11


@given(st.lists(st.floats(0.0, 100.0), max_size=50), st.floats(1.0, 5.0))
def test_a_quiet_time_is_not_saved_up_beyond_the_burst(waits: list[float], burst: float) -> None:
    pacer = BudgetPacer(360.0, burst)
    now, times = 0.0, list[float]()
    for wait in waits:
        now += wait
        if pacer.ready_at() <= now:
            pacer.spend(now)
            times.append(now)
    for window in (10.0, 100.0, 1000.0):
        assert max((sum(start <= at < start + window for at in times) for start in times), default=0) <= (
            window / 10.0 + burst + 1e-6
        )


def test_no_budget_means_no_wait() -> None:
    pacer = BudgetPacer(0)
    pacer.spend(5.0)
    assert pacer.ready_at() < 0.0
