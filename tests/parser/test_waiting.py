"""Sites share the time of reading fairly, however slow the pages of some are."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import ParserDied
from levada.core.records import RawPage
from levada.parser import pool as pools
from levada.parser.pool import ParserPool
from levada.parser.waiting import SLOW, WaitingPages
from tests.parser.test_pool import ODD, in_pool


@dataclass(frozen=True)
class Page:
    site: str
    number: int


def read_by_one_child(waiting: WaitingPages[Page], seconds: dict[str, float], until: float) -> Counter[str]:
    """The pages of each site that one child reads in this time, which asks for the next as the pool does."""
    read, now = Counter[str](), 0.0
    while now < until and len(waiting):
        page = waiting.take_slow() if waiting.is_turn_of_slow else waiting.take_quick()
        assert page is not None
        now += seconds[page.site]
        read[page.site] += 1
        waiting.spent([page.site], seconds[page.site])
    return read


@given(st.lists(st.sampled_from("abcde"), max_size=100), st.sampled_from("abcde"))
def test_every_page_is_taken_once_and_those_of_a_site_in_order(sites: list[str], slow: str) -> None:
    waiting = WaitingPages[Page]()
    waiting.spent([slow], 2 * SLOW)
    for number, site in enumerate(sites):
        waiting.add(Page(site, number))
    taken = waiting.take_all()
    assert sorted(page.number for page in taken) == list(range(len(sites)))
    for site in "abcde":
        numbers = [page.number for page in taken if page.site == site]
        assert numbers == sorted(numbers)
    assert len(waiting) == 0


def test_a_site_that_burns_five_seconds_a_page_takes_half_of_the_time_and_no_more() -> None:
    waiting = WaitingPages[Page]()
    for number in range(20_000):
        waiting.add(Page("hostile", number))
        waiting.add(Page("neighbour", number))
    read = read_by_one_child(waiting, {"hostile": 5.0, "neighbour": 0.005}, until=90.0)
    assert read["hostile"] * 5.0 <= 50.0
    assert read["neighbour"] >= 8_000


def test_ten_slow_sites_share_one_half() -> None:
    waiting = WaitingPages[Page]()
    seconds = {f"slow-{n}": 1.0 for n in range(10)} | {"quick": 0.01}
    for number in range(1_000):
        for site in seconds:
            waiting.add(Page(site, number))
    read = read_by_one_child(waiting, seconds, until=15.0)
    assert read["quick"] * 0.01 >= 0.25 * 15  # until each of the ten was met once, nobody knew
    assert max(read[f"slow-{n}"] for n in range(10)) <= 2


def test_many_pages_of_one_site_do_not_keep_another_waiting() -> None:
    waiting = WaitingPages[Page]()
    for number in range(1_000):
        waiting.add(Page("large", number))
    waiting.add(Page("small", 0))
    first = [waiting.take_quick(), waiting.take_quick()]
    assert Page("small", 0) in first


def test_a_site_that_is_quick_again_waits_with_the_others() -> None:
    waiting = WaitingPages[Page]()
    waiting.spent(["a"], 1.0)
    waiting.add(Page("a", 1))
    assert waiting.is_turn_of_slow
    for _ in range(10):
        waiting.spent(["a"], 0.001)
    assert not waiting.is_turn_of_slow
    assert waiting.take_quick() == Page("a", 1)


def test_nobody_saves_up_time_by_not_needing_it() -> None:
    waiting = WaitingPages[Page]()
    waiting.spent(["slow"], 1.0)
    for _ in range(100):
        waiting.spent(["quick"], 0.2)
    for number in range(100):
        waiting.add(Page("quick", number))
        waiting.add(Page("slow", number))
    read = read_by_one_child(waiting, {"quick": 0.1, "slow": 1.0}, until=10.0)
    assert read["quick"] >= 40


def test_a_slow_page_holds_up_no_page_behind_it_in_its_child() -> None:
    async def work(pool: ParserPool) -> None:
        def page(host: str, name: str) -> RawPage:
            return RawPage(f"http://{host}/{name}", b"<p>some words</p>", "text/html")

        with pytest.raises(ParserDied):
            await pool.parse(page("hostile", "loop"))
        slow = asyncio.ensure_future(pool.parse(page("hostile", "wait")))
        await pool.parse(page("neighbour", "0"))
        quick = [pool.parse(page("neighbour", str(number))) for number in range(100)]
        answers = await asyncio.gather(*quick)
        assert len(answers) == 100
        assert not slow.done()
        slow.cancel()

    in_pool(work, lambda: ParserPool(2, cpu_seconds=0.3, program=ODD))


def test_a_child_that_is_stopped_is_ended_and_the_next_page_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "_LOOK", 0.05)
    monkeypatch.setattr(pools.ParserProcess, "has_stalled", _stalled_at_the_third_look)

    async def work(pool: ParserPool) -> None:
        await pool.parse(RawPage("http://a/0", b"<p>words</p>", "text/html"))
        (child,) = pool.pids()
        os.kill(child, signal.SIGSTOP)
        with pytest.raises(ParserDied):
            await pool.parse(RawPage("http://a/1", b"<p>words</p>", "text/html"))
        assert (await pool.parse(RawPage("http://a/2", b"<title>two</title>", "text/html"))).title == "two"

    in_pool(work, lambda: ParserPool(1))


def _stalled_at_the_third_look(child: pools.ParserProcess, now: float, seconds: float) -> bool:
    assert seconds > 60
    begun, answered, looks = child.seen
    progress = child._progress_marker.read()[0], child._answered
    child.seen = (*progress, looks + 1 if progress == (begun, answered) and child.jobs and child.is_ready else 0)
    return child.seen[2] >= 3


def test_a_child_has_stalled_if_it_neither_begins_nor_answers_a_page() -> None:
    class Still:
        jobs = (1,)
        seen = (-1, -1, 0.0)
        _answered = 7

        class _progress_marker:
            @staticmethod
            def read() -> tuple[int, float]:
                return 8, 1.0

    child = Still()
    stalled = pools.ParserProcess.has_stalled
    assert not stalled(child, 100.0, 90.0)  # type: ignore[arg-type]  # seen for the first time
    assert not stalled(child, 190.0, 90.0)  # type: ignore[arg-type]
    assert stalled(child, 190.1, 90.0)  # type: ignore[arg-type]
    child._answered = 8
    assert not stalled(child, 300.0, 90.0)  # type: ignore[arg-type]
