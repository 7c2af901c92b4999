"""A crawl whose bodies cannot be written waits, and goes on when they can; it ends if told to, or waited enough."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from levada.core.errors import BodiesAway, StoreError
from levada.core.records import VisitResult
from levada.core.settings import BodiesSettings, Settings
from levada.crawl.commits import CommitPorts, Commits
from levada.crawl.executor import StoreExecutor
from levada.crawl.link_filter import LinkFilter
from levada.store.memory import MemoryStore
from levada.testing.store.visits import first, leased
from tests.crawl.simulated_crawl import ema_policy
from tests.manual_clock import ManualClock


class AwayStore(MemoryStore):
    """A store whose bodies are away for so many commits."""

    def __init__(self, away: float, error: StoreError | None = None) -> None:
        super().__init__()
        self.refused = away
        self.error = error or BodiesAway("s3://bucket cannot be reached now")

    def commit(self, visits: Sequence[VisitResult]) -> list[bool]:
        if self.refused > 0:
            self.refused -= 1
            raise self.error
        return super().commit(visits)


async def committed(store: AwayStore, clock: ManualClock, wait: float = 3600.0, ending: bool = False) -> list[bool]:
    """What became of two visits, while the clock runs as fast as it is asked to."""
    settings, accepted = Settings(bodies=BodiesSettings(wait=wait)), list[bool]()
    ports = CommitPorts(clock, store, store, store, ema_policy())
    executor = StoreExecutor()
    commits = Commits(
        ports, settings, executor, LinkFilter(settings.crawl, ()), lambda batch, kept: accepted.extend(kept)
    )
    for lease in leased(store, 2, seconds=1e9):
        commits.put(first(lease, 1.0, f"text {lease.page.id}"))
    running = asyncio.create_task(commits.run())
    try:
        while not (running.done() or accepted):
            await asyncio.sleep(0)
            if ending and clock.now() > 10.0:
                commits.finish()
            if (wake := clock.next_wake()) is not None:
                clock.advance(wake - clock.now())
        commits.finish()
        await running
    finally:
        executor.close()
    return accepted


def test_it_waits_says_so_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    store, clock = AwayStore(20), ManualClock()
    assert asyncio.run(committed(store, clock)) == [True, True]
    assert store.stats(1.0).stored == 2
    said = [record.message for record in caplog.records]
    assert said == [
        "s3://bucket cannot be reached now: the crawl waits, and goes on when it is back",
        "the place of the bodies is back: the crawl goes on",
    ]
    assert clock.now() < 20 * 15.0 + 1


def test_it_ends_when_it_has_waited_enough() -> None:
    store, clock = AwayStore(float("inf")), ManualClock()
    with pytest.raises(BodiesAway):
        asyncio.run(committed(store, clock, wait=60.0))
    assert 60.0 <= clock.now() < 61.0
    assert store.stats(1.0).stored == 0


def test_it_does_not_hold_up_a_crawl_that_is_stopped() -> None:
    clock = ManualClock()
    with pytest.raises(BodiesAway):
        asyncio.run(committed(AwayStore(float("inf")), clock, ending=True))
    assert clock.now() < 60.0


def test_a_refusal_ends_it_at_once() -> None:
    clock = ManualClock()
    with pytest.raises(StoreError, match="refuses access"):
        asyncio.run(committed(AwayStore(float("inf"), StoreError("s3://bucket refuses access")), clock))
    assert clock.now() < 1.0
