"""The demo's story: crawl the bundled web for a while, then say how it went, against the truth."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from levada.assemble.counting import latest_change, measure_balance, open_trends
from levada.assemble.crawling import open_crawl, seeds
from levada.assemble.folder import DataFolder
from levada.assemble.searching import open_search
from levada.assemble.warming import maps_of
from levada.cli.beside import served_beside
from levada.cli.demo_shards import ShardStory, shard_story, told_shards
from levada.cli.demo_warm import WarmStory, told_warm, warm_story
from levada.cli.running import make_watcher, run_loop, watch
from levada.cli.trends_print import balance_line
from levada.demo.child import Web, serving
from levada.demo.gazette import is_issue
from levada.demo.model import World
from levada.demo.truth import Truth, first_visits, fresh_at, measure, round_robin
from levada.errors import UsageError
from levada.flow.balance import CountReport
from levada.flow.progress import Report
from levada.flow.settings import DAY, Settings, load_settings
from levada.flow.trending import Trend, trend_query, trending
from levada.records import Outcome, Settled
from levada.searching import Hits, Query

__all__ = ["Story", "tell", "told"]

QUESTION = "istanbul"
TRENDS = 4


class Story(msgspec.Struct, frozen=True):
    web: Web
    report: Report
    levada: Truth
    round_robin: Truth
    current: float  # share of the stored pages that are so in the end, by the truth
    hits: Hits
    changed: str  # a page that was seen to change
    folder: str
    trends: tuple[Trend, ...] = ()
    counting: CountReport = CountReport()
    shards: ShardStory | None = None
    warm: WarmStory | None = None

    def summary(self) -> dict[str, Any]:
        report: dict[str, Any] = msgspec.to_builtins(self.report)
        return report | {
            "freshness": {"levada": self.levada.freshness, "round_robin": self.round_robin.freshness},
            "fetches": {"levada": self.levada.fetches, "round_robin": self.round_robin.fetches},
            "changes": {"happened": self.levada.changes, "caught": self.levada.caught},
            "current_at_end": {"true": self.current, "believed": self.report.believed_current},
            "search": {"query": QUESTION, "total": self.hits.total},
            "trends": msgspec.to_builtins(self.trends),
            "counting": msgspec.to_builtins(self.counting),
            "shards": msgspec.to_builtins(self.shards),
            "warm": msgspec.to_builtins(self.warm),
            "data": self.folder,
        }


def tell(data: Path, seconds: float, options: Sequence[str], *, quiet: bool, serve: bool = False) -> Story:
    folder = DataFolder(data)
    _clear(folder)
    with serving(*options) as web, served_beside(folder, "--capture", wanted=serve) as address:
        if address:
            print(f"watch it at {address}", file=sys.stderr)
        visits: list[tuple[str, float]] = []
        changed = ["URL"]
        ended = [web.origin]

        def listen(settled: Sequence[Settled]) -> None:
            visits.extend((each.lease.page.url, each.visit.at) for each in settled if _saw_content(each))
            changed.extend(each.lease.page.url for each in settled if each.visit.outcome is Outcome.CHANGED)

        async def crawl() -> Report:
            settings = _shown_whole(load_settings(Path(web.config)))
            async with open_crawl(folder, settings, seeds(web.start), on_committed=listen) as work:
                report = await watch(work, make_watcher(quiet), seconds)
                ended.append(work.clock.now())
                return report

        report = run_loop(crawl)
    world = World.build(web.seed, web.pages)
    first, last = web.origin, web.origin + 1.0
    if visits:
        first, last = visits[0][1], max(at for _, at in visits)
    ours = measure(world, visits, first, last)
    turns = round_robin(world, first, last, ours.fetches, first=first_visits(visits))
    stored = [page for url, _ in first_visits(visits) if (page := world.find(url))]
    issued = len({url for url, _ in visits if is_issue(url)})  # these never change
    current = fresh_at(world, visits, ended[-1], stored) if stored else 0.0
    current = (current * len(stored) + issued) / max(1, len(stored) + issued)
    with open_search(folder) as (collection, index):
        hits = index.search(Query(QUESTION, limit=2, now=collection.clock.now()))
    trends, counting = _counted(folder)
    shards, warm = shard_story(folder, web.seed), warm_story(folder, web.seed)
    return Story(web, report, ours, turns, current, hits, changed[-1], str(data), trends, counting, shards, warm)


def _counted(folder: DataFolder) -> tuple[tuple[Trend, ...], CountReport]:
    """What grew on that day, and how the stream that says so would have been shared out by each method."""
    with open_trends(folder) as (collection, counts, _):
        query = trend_query(latest_change(collection), DAY, collection.settings.trends.window)
        return tuple(trending(counts, query, TRENDS)), measure_balance(collection, ("key", "partial"))


def _shown_whole(settings: Settings) -> Settings:
    """Every stage at work, and with somewhere to grow, also on a machine of two cores."""
    children = max(2, (os.cpu_count() or 2) - 1)
    return replace(
        settings,
        trends=replace(settings.trends, live=True),
        parse=replace(settings.parse, children=children),
    )


def told(story: Story) -> None:
    """At most some 25 lines that stay on the screen."""
    console = Console(highlight=False, soft_wrap=True)  # a command can be copied, however long
    report, ours, turns = story.report, story.levada, story.round_robin
    hours = report.seconds / 3600
    console.print(
        f"[bold]{report.pages:,} pages[/] stored, of a web of {ours.pages:,}, its hostile corner and a gazette; "
        f"{report.fetched:,} fetches in "
        f"{hours:.1f} hours of its time ({report.seconds / story.web.speed:.0f} s here)."
    )
    console.print(f"Changes: {ours.changes:,} happened, [bold]{ours.caught:,} caught[/].")
    gain = ours.freshness - turns.freshness
    console.print(
        f"Fresh, by the truth: [bold green]{ours.freshness:.1%}[/] of the time; round robin with as many fetches "
        f"({turns.fetches:,}): {turns.freshness:.1%} ({100 * gain:+.1f} points)."
    )
    believed = "nothing" if report.believed_current is None else f"{report.believed_current:.1%}"
    console.print(
        f"Current in the end: believed [bold]{believed}[/] of the stored pages, by the truth {story.current:.1%}."
    )
    _refusals(console, report)
    if report.stages:
        console.print(_staffed(report), markup=False)
    console.print(f"\nA search for [bold]{QUESTION}[/]: {story.hits.total} pages, first of all")
    for hit in story.hits.hits:
        console.print(
            Text.assemble("  ", (hit.title, "bold"), "  ", (hit.url, "dim")), no_wrap=True, overflow="ellipsis"
        )
    if story.trends:
        grown = ", ".join(f"{each.term} ({each.language}, {each.now} of {each.changes})" for each in story.trends)
        console.print(f"Trending, by the changes that added it: {grown}.", markup=False)
    if story.counting.records:
        console.print(balance_line(story.counting), markup=False)
    if story.shards:
        console.print(told_shards(story.shards), markup=False)
    if story.warm:
        console.print(told_warm(story.warm), markup=False)
    console.print("\nNow try:")
    for command in (
        f'search "words" --data {story.folder}',
        f"trends --data {story.folder}",
        f"diff {story.changed} --data {story.folder}",
        f"why {story.changed} --data {story.folder}",
        f"why --budget --data {story.folder}",
        f"export --jsonl --data {story.folder} --out pages.jsonl",
        f"serve --data {story.folder}",
        "crawl https://example.org",
    ):
        console.print(f"  levada {command}", markup=False)


def _staffed(report: Report) -> str:
    """How each stage grew and shrank."""
    said = (
        f"{each.name} {each.least} to {each.most} (mean {each.mean:.1f}, {each.decisions} decisions)"
        for each in report.stages
    )
    return f"Workers: {', '.join(said)}."


def _refusals(console: Console, report: Report) -> None:
    for name, counts in (("Refused", report.refused), ("Failed", report.failed)):
        said = ", ".join(f"{reason} {number}" for reason, number in counts.items())
        console.print(f"{name}: {said or 'nothing'}.", markup=False)


def _saw_content(settled: Settled) -> bool:
    return settled.visit.outcome <= Outcome.CHANGED


def _clear(folder: DataFolder) -> None:
    """The collection of an earlier demo goes; anything that is not one stays, and is an error."""
    folder.must_be_folder()
    if not folder.path.exists() or not any(folder.path.iterdir()):
        return
    if not folder.exists():
        raise UsageError(f"{folder.path} holds something that is no collection: name another folder with --data")
    with folder.locked():
        for shard in folder.path.glob("shard-*"):
            shutil.rmtree(shard, ignore_errors=True)
        shutil.rmtree(folder.index, ignore_errors=True)
        shutil.rmtree(maps_of(folder), ignore_errors=True)
        for name in ("levada.db*", "trends.db*", "orders.db*", "live.*", "placement.*"):
            for part in folder.path.glob(name):
                part.unlink()
