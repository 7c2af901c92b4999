"""The demo's story: crawl the bundled web for a while, then say how it went, against the truth."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from levada.assemble.counting import latest_change, measure_balance, open_trends
from levada.assemble.crawling import open_crawl, seeds
from levada.assemble.folder import DataFolder
from levada.assemble.searching import open_search
from levada.cli.beside import served_beside
from levada.cli.demo_doing import doing
from levada.cli.demo_folder import clear, mark, stop_hurrying
from levada.cli.demo_shards import ShardStory, shard_story
from levada.cli.demo_warm import WarmStory, warm_story
from levada.cli.running import make_watcher, run_loop, watch
from levada.cli.screen import LiveScreen, Watcher
from levada.clock import SystemClock
from levada.demo.child import Web, serving
from levada.demo.gazette import is_issue
from levada.demo.model import World
from levada.demo.truth import Truth, first_visits, fresh_at, measure, round_robin
from levada.flow.balance import CountReport
from levada.flow.progress import Report
from levada.flow.settings import DAY, Settings, load_settings
from levada.flow.trending import Trend, trend_query, trending
from levada.ports import Documents
from levada.records import Outcome, Settled
from levada.searching import Hits, Query

__all__ = ["Story", "changed_page", "crawl_web", "look_closer"]

QUESTION = "istanbul"
TRENDS = 4


class Story(msgspec.Struct, frozen=True):
    web: Web
    report: Report
    levada: Truth
    round_robin: Truth
    current: float  # share of the stored pages that are so in the end, by the truth
    hits: Hits
    changed: str  # a page that was seen to change, with what it said before; "" if there is none
    folder: str
    trends: tuple[Trend, ...] = ()
    counting: CountReport = CountReport()
    shards: ShardStory | None = None
    warm: WarmStory | None = None
    question: str = QUESTION

    def summary(self) -> dict[str, Any]:
        report: dict[str, Any] = msgspec.to_builtins(self.report)
        return report | {
            "freshness": {"levada": self.levada.freshness, "round_robin": self.round_robin.freshness},
            "fetches": {"levada": self.levada.fetches, "round_robin": self.round_robin.fetches},
            "changes": {"happened": self.levada.changes, "caught": self.levada.caught},
            "current_at_end": {"true": self.current, "believed": self.report.believed_current},
            "search": {"query": self.question, "total": self.hits.total},
            "trends": msgspec.to_builtins(self.trends),
            "counting": msgspec.to_builtins(self.counting),
            "shards": msgspec.to_builtins(self.shards),
            "warm": msgspec.to_builtins(self.warm),
            "data": self.folder,
        }


class _Seen:
    """What the crawl met, and when it was over."""

    def __init__(self, origin: float) -> None:
        self.visits: list[tuple[str, float]] = []
        self.changed: set[str] = set()
        self.ended = origin, SystemClock().now()  # there and here

    def listen(self, settled: Sequence[Settled]) -> None:
        for each in settled:
            url, outcome = each.lease.page.url, each.visit.outcome
            if outcome <= Outcome.CHANGED:
                self.visits.append((url, each.visit.at))
            if outcome is Outcome.CHANGED:
                self.changed.add(url)


def crawl_web(data: Path, seconds: float, options: Sequence[str], *, quiet: bool, serve: bool = False) -> Story:
    """The crawl, and the truth about it; what takes longer is left to `look_closer`."""
    folder = DataFolder(data)
    clear(folder)
    with ExitStack() as busy:
        with serving(*options) as web, served_beside(folder, "--capture", wanted=serve) as address:
            if address:
                print(f"watch it at {address}", file=sys.stderr)
            seen = _Seen(web.origin)

            async def crawl() -> Report:
                settings = _shown_whole(load_settings(Path(web.config)))
                async with open_crawl(folder, settings, seeds(web.start), on_committed=seen.listen) as work:
                    mark(folder, settings)
                    report = await watch(work, _watcher(quiet), seconds)
                    seen.ended = work.clock.now(), SystemClock().now()
                    busy.enter_context(doing("indexing what came last, and asking the web for the truth", quiet))
                    return report

            with _signals_kept():
                report = run_loop(crawl)
        stop_hurrying(folder, *seen.ended)
        return _by_the_truth(folder, web, report, seen)


def look_closer(story: Story, quiet: bool) -> Story:
    """The counting, the shards and the warm map, which take some seconds."""
    folder, seed = DataFolder(Path(story.folder)), story.web.seed
    with doing("counting the terms once more", quiet):
        trends, counting = _counted(folder)
    with doing("spreading a copy over shards, twice", quiet):
        shards = shard_story(folder, seed)
    with doing("warming a map of the pages", quiet):
        warm = warm_story(folder, seed)
    return replace(story, trends=trends, counting=counting, shards=shards, warm=warm)


def changed_page(documents: Documents, urls: Iterable[str]) -> str:
    """The shortest of these addresses of which two versions are kept, so that they can be compared."""
    ordered = sorted(urls, key=lambda url: (len(url), url))
    return next((url for url in ordered if len(documents.versions(url)) > 1), "")


def _by_the_truth(folder: DataFolder, web: Web, report: Report, seen: _Seen) -> Story:
    world, visits = World.build(web.seed, web.pages), seen.visits
    first, last = web.origin, web.origin + 1.0
    if visits:
        first, last = visits[0][1], max(at for _, at in visits)
    ours = measure(world, visits, first, last)
    turns = round_robin(world, first, last, ours.fetches, first=first_visits(visits))
    current = _current_at(world, visits, seen.ended[0])
    with open_search(folder) as (collection, index):
        hits = index.search(Query(QUESTION, limit=2, now=collection.clock.now()))
        changed = changed_page(collection.store, filter(world.find, seen.changed))  # not a sitemap, nor a feed
    return Story(web, report, ours, turns, current, hits, changed, str(folder.path))


def _current_at(world: World, visits: Sequence[tuple[str, float]], now: float) -> float:
    stored = [page for url, _ in first_visits(visits) if (page := world.find(url))]
    issued = len({url for url, _ in visits if is_issue(url)})  # these never change
    share = fresh_at(world, visits, now, stored) if stored else 0.0
    return (share * len(stored) + issued) / max(1, len(stored) + issued)


def _counted(folder: DataFolder) -> tuple[tuple[Trend, ...], CountReport]:
    """What grew on that day, and how the stream that says so would have been shared out by each method."""
    with open_trends(folder) as (collection, counts, _):
        query = trend_query(latest_change(collection), DAY, collection.settings.trends.window)
        return tuple(trending(counts, query, TRENDS)), measure_balance(collection, ("key", "partial"))


@contextmanager
def _signals_kept() -> Iterator[None]:
    """The loop leaves its own handlers behind, and Ctrl-C would end nothing any more."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watcher(quiet: bool) -> Watcher | None:
    watcher = make_watcher(quiet)
    if isinstance(watcher, LiveScreen):
        watcher.hint = "Ctrl-C ends it early"
    return watcher


def _shown_whole(settings: Settings) -> Settings:
    """Every stage at work, and with somewhere to grow, also on a machine of two cores."""
    children = max(2, (os.cpu_count() or 2) - 1)
    return replace(
        settings,
        trends=replace(settings.trends, live=True),
        parse=replace(settings.parse, children=children),
    )
