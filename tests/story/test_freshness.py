"""Over real HTTP, on the bundled web at 500 times its pace: is ours fresher than the paper's rule and round robin
with as many fetches, and is what it believes true?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import uvloop
from msgspec.structs import replace

from levada.assemble.crawling import open_crawl, seeds
from levada.assemble.folder import DataFolder
from levada.demo.child import serving
from levada.demo.model import World
from levada.demo.truth import Truth, fresh_at, measure, round_robin
from levada.flow.settings import Settings, load_settings
from levada.records import Outcome, Settled

PAGES, SPEED, SECONDS = 500, 500.0, 24.0


class Crawled(msgspec.Struct):
    truth: Truth
    turns: Truth  # round robin with as many fetches
    hours: float
    believed: float
    current: float


def crawled(data: Path, policy: str, per_hour: int) -> Crawled:
    """Everything once, as fast as it goes; from then on as the policy says, and counted."""
    visits: list[tuple[str, float]] = []

    def listen(committed: Sequence[Settled]) -> None:
        visits.extend(
            (each.lease.page.url, each.visit.at) for each in committed if each.visit.outcome <= Outcome.CHANGED
        )

    def settings(per_hour: int) -> Settings:
        given = load_settings(Path(web.config))
        revisit = replace(given.revisit, policy=policy)
        return replace(given, revisit=revisit, budget=replace(given.budget, per_hour=per_hour))

    async def crawl() -> tuple[float, float, float | None]:
        folder = DataFolder(data)
        async with open_crawl(folder, settings(0), seeds(web.start), once=True, on_committed=listen) as work:
            await work.run()
        async with open_crawl(folder, settings(per_hour), (), on_committed=listen) as work:
            begin = work.clock.now()
            running = asyncio.create_task(work.run())
            await asyncio.sleep(SECONDS)
            end = work.clock.now()
            believed = work.progress.beliefs.share(end)
            work.stop()
            await running
            return begin, end, believed

    with serving("--speed", str(SPEED), "--pages", str(PAGES), "--no-hostile") as web:
        begin, end, believed = uvloop.run(crawl())
    world = World.build(web.seed, web.pages)
    truth = measure(world, visits, begin, end)
    before = [(url, at) for url, at in visits if at <= begin]
    assert believed is not None
    return Crawled(
        truth,
        round_robin(world, begin, end, truth.fetches, first=before),
        (end - begin) / 3600.0,
        believed,
        fresh_at(world, visits, end),
    )


def test_ours_is_fresher_than_the_papers_rule_and_round_robin_with_as_many_fetches(tmp_path: Path) -> None:
    paper = crawled(tmp_path / "paper", "ema", 0)
    ours = crawled(tmp_path / "ours", "learned", int(paper.truth.fetches / paper.hours))
    print(
        f"fresh, by the truth: ours {ours.truth.freshness:.1%} ({ours.truth.fetches} fetches), "
        f"the paper's rule {paper.truth.freshness:.1%} ({paper.truth.fetches}), "
        f"round robin {ours.turns.freshness:.1%}; believed {ours.believed:.1%}, true {ours.current:.1%}"
    )
    assert ours.truth.fetches <= 1.02 * paper.truth.fetches
    assert ours.truth.freshness > paper.truth.freshness + 0.005
    assert ours.truth.freshness > ours.turns.freshness + 0.005
    assert abs(ours.believed - ours.current) < 0.04  # of 500 pages at one instant: two deviations are 2 points
