"""The demo: crawls the bundled web, measures how fresh the collection was, spreads it over shards and warms a map.

The bundled web knows every change, so the run is compared with the actual freshness, and with a crawler that visits
in turn with as many fetches.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from levada.bulk.maps import Map
from levada.collection.crawling import RunningCrawl, open_crawl, run_to_end
from levada.collection.search import open_search
from levada.collection.shards import ReshardOptions, apply_shards, shards_queried
from levada.collection.starts import seeds
from levada.collection.trends import compare_groupings, find_trends
from levada.collection.view import CollectionView
from levada.collection.warm_map import CARDS, WarmPages, maps_of, warm, warm_request
from levada.core.balance import CountReport
from levada.core.clock import SystemClock
from levada.core.errors import MissingExtra
from levada.core.folder import DataFolder
from levada.core.protocols import Documents
from levada.core.records import Outcome, VisitResult
from levada.core.reports import Report
from levada.core.search_records import Hits, Query, Trend
from levada.core.settings import Settings, load_settings
from levada.demo.actual import ActualFreshness, first_visits, fresh_at, measure, round_robin
from levada.demo.child import Web, serving
from levada.demo.folder import clear, mark, stop_hurrying
from levada.demo.gazette import is_issue
from levada.demo.world import DemoWorld
from levada.sharding.advice import Advice, advise
from levada.sharding.page_keys import page_values, site_filter
from levada.sharding.queries import AllOf, Condition, QueryEntry
from levada.sharding.sample import Sample
from levada.sharding.workload import LogStatistics

SHARDS = 4
QUESTIONS = 120
_MOST_PAGES = 3_000
_FIELDS = ("site", "section", "url")


class DemoQuestion(msgspec.Struct, frozen=True):
    """A question to the collection: a search if it has a text, else the page itself."""

    text: str
    url: str
    named: bool = False  # the search names the page's site


class ShardCost(msgspec.Struct, frozen=True):
    key: str
    shards_per_query: float
    one_shard: float  # share of the questions that a single shard answers
    pages: tuple[int, ...]


class ShardStory(msgspec.Struct, frozen=True):
    questions: int
    before: ShardCost
    after: ShardCost
    why: str
    moved: int
    seconds: float


def shard_story(folder: DataFolder, seed: int) -> ShardStory | None:
    """Ask a copy of the collection on shards a seeded mix of questions, before and after a key is advised.

    None where too little is stored.
    """
    with tempfile.TemporaryDirectory(prefix="levada-shards-") as scratch:
        copy = DataFolder(Path(scratch))
        shutil.copy(folder.database, copy.database)
        placed = apply_shards(copy, ReshardOptions(SHARDS, "url"))
        pages, questions = _questions(copy, seed)
        if not questions:
            return None
        before = _ask(copy, questions, "hash(url)", placed.pages)
        advice = _advised(questions, pages)
        moved = apply_shards(copy, ReshardOptions(placement=advice.chosen.placement))
        after = _ask(copy, questions, str(advice.chosen.placement.key), moved.pages)
    return ShardStory(len(questions), before, after, next(iter(advice.why), ""), moved.moved, moved.seconds)


def _questions(folder: DataFolder, seed: int) -> tuple[list[str], list[DemoQuestion]]:
    """The stored pages, and what is asked of them."""
    chance = Random(seed)
    with closing(CollectionView(folder.path)) as view:
        titles = {each.url: each.title for each in islice(view.collection().store.scan(), _MOST_PAGES)}
    pages = sorted(titles)
    drawn = [chance.choice(pages) for _ in range(QUESTIONS)] if len(pages) >= SHARDS else []
    return pages, [_question(url, titles[url], chance) for url in drawn]


def _question(url: str, title: str, chance: Random) -> DemoQuestion:
    """A question about a page: most name a site, some want a known page, a few want words on any site."""
    kind, met = chance.random(), re.findall(r"\w+", title.lower())
    if kind < 0.25 or not met:
        return DemoQuestion("", url)
    word = chance.choice(met)
    named = kind < 0.85
    return DemoQuestion(f"{word} site:{page_values(url)['site']}" if named else word, url, named)


def _ask(folder: DataFolder, questions: Sequence[DemoQuestion], key: str, pages: tuple[int, ...]) -> ShardCost:
    asked = shards_queried(folder, [Query(each.text, limit=10) if each.text else each.url for each in questions])
    return ShardCost(key, sum(asked) / len(asked), asked.count(1) / len(asked), pages)


def _advised(questions: Sequence[DemoQuestion], pages: Sequence[str]) -> Advice:
    asked = [_as_query(each) for each in questions]
    sample = Sample([page_values(url) for url in pages], _FIELDS, "url")
    return advise(asked, LogStatistics.of(asked), sample, SHARDS, immutable=_FIELDS)


def _as_query(question: DemoQuestion) -> QueryEntry:
    values = page_values(question.url)
    if not question.text:
        by_value = tuple(Condition(field, "eq", (values[field],)) for field in _FIELDS)
        return QueryEntry("levada.pages", "find", source="search", filter=AllOf(by_value))
    named = site_filter([values["site"]]) if question.named else None
    return QueryEntry("levada.pages", "find", source="search", filter=named)


_LOOKUPS = 5_000
_MOST_LOOKUPS = 5_000


class WarmStory(msgspec.Struct, frozen=True):
    pages: int
    pages_per_second: float  # into the map
    map_lookups: float  # per second, from the map alone
    checked_lookups: float  # as the server looks up: the card is compared with the store
    store_lookups: float


def warm_story(folder: DataFolder, seed: int) -> WarmStory | None:
    """Fill a map of the pages and read it; None where nothing is stored, or maps in files are not installed."""
    try:
        warmed = warm(folder, warm_request(folder), lambda status: None)
    except MissingExtra:
        return None
    with (
        closing(CollectionView(folder.path)) as view,
        closing(WarmPages(folder, SystemClock())) as pages,
        Map.open(str(maps_of(folder)), CARDS) as plain,
    ):
        store = view.collection().store
        known = [page.url for page in islice(store.sample(1), _MOST_LOOKUPS)]
        if not known:
            return None
        asked = Random(seed).choices(known, k=_LOOKUPS)
        return WarmStory(
            warmed.pages,
            warmed.pages_per_second,
            _rate(asked, plain.get),
            _rate(asked, pages.summary),
            _rate(asked, lambda url: (store.page(url), store.versions(url))),
        )


def _rate(asked: Sequence[str], look: Callable[[str], object]) -> float:
    clock = SystemClock()
    began = clock.monotonic()
    for url in asked:
        look(url)
    return len(asked) / max(1e-6, clock.monotonic() - began)


QUESTION = "istanbul"
TRENDS = 4


class DemoRun(msgspec.Struct, frozen=True):
    web: Web
    report: Report
    levada: ActualFreshness
    round_robin: ActualFreshness
    current: float  # share of the stored pages that is current in the end
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

    def listen(self, result: Sequence[VisitResult]) -> None:
        for each in result:
            url, outcome = each.lease.page.url, each.visit.outcome
            if outcome <= Outcome.CHANGED:
                self.visits.append((url, each.visit.at))
            if outcome is Outcome.CHANGED:
                self.changed.add(url)


def crawl_web(
    data: Path,
    seconds: float,
    options: Sequence[str],
    *,
    drive: Callable[[RunningCrawl, float], Coroutine[None, None, Report]] = run_to_end,
    run: Callable[[Callable[[], Coroutine[None, None, Report]]], Report] = lambda work: asyncio.run(work()),
    on_step: Callable[[str], None] = lambda what: None,
) -> DemoRun:
    """Crawl the bundled web into a folder for so many seconds, and measure the result; `look_closer` does the rest.

    `drive` runs the crawl to its end, `run` runs the event loop, and `on_step` is told what is done after it.
    """
    folder = DataFolder(data)
    clear(folder)
    with serving(*options) as web:
        seen = _Seen(web.origin)

        async def crawl() -> Report:
            settings = _shown_whole(load_settings(Path(web.config)))
            async with open_crawl(folder, settings, seeds(web.start), on_committed=seen.listen) as work:
                mark(folder, settings)
                report = await drive(work, seconds)
                seen.ended = work.clock.now(), SystemClock().now()
                on_step("indexing what came last, and asking the web for its changes")
                return report

        report = run(crawl)
    stop_hurrying(folder, *seen.ended)
    return _against_actual(folder, web, report, seen)


def look_closer(story: DemoRun, on_step: Callable[[str], None] = lambda what: None) -> DemoRun:
    """The trends, the shards and the warm map, which take some seconds."""
    path, seed = Path(story.folder), story.web.seed
    on_step("counting the terms once more")
    trends, counting = tuple(find_trends(path, limit=TRENDS).trends), compare_groupings(path)
    on_step("spreading a copy over shards, twice")
    shards = shard_story(DataFolder(path), seed)
    on_step("warming a map of the pages")
    return replace(story, trends=trends, counting=counting, shards=shards, warm=warm_story(DataFolder(path), seed))


def changed_page(documents: Documents, urls: Iterable[str]) -> str:
    """The shortest of these addresses of which two versions are kept, so that they can be compared."""
    ordered = sorted(urls, key=lambda url: (len(url), url))
    return next((url for url in ordered if len(documents.versions(url)) > 1), "")


def _against_actual(folder: DataFolder, web: Web, report: Report, seen: _Seen) -> DemoRun:
    world, visits = DemoWorld.build(web.seed, web.pages), seen.visits
    first, last = web.origin, web.origin + 1.0
    if visits:
        first, last = visits[0][1], max(at for _, at in visits)
    ours = measure(world, visits, first, last)
    turns = round_robin(world, first, last, ours.fetches, first=first_visits(visits))
    current = current_share(world, visits, seen.ended[0])
    with open_search(folder) as (collection, index):
        hits = index.search(Query(QUESTION, limit=2, now=collection.clock.now()))
        changed = changed_page(collection.store, filter(world.find, seen.changed))  # not a sitemap, nor a feed
    return DemoRun(web, report, ours, turns, current, hits, changed, str(folder.path))


def current_share(world: DemoWorld, visits: Sequence[tuple[str, float]], now: float) -> float:
    """The share of the stored pages that is current at `now`, after these visits (address, time)."""
    stored = [page for url, _ in first_visits(visits) if (page := world.find(url))]
    issued = len({url for url, _ in visits if is_issue(url)})  # these never change
    share = fresh_at(world, visits, now, stored) if stored else 0.0
    return (share * len(stored) + issued) / max(1, len(stored) + issued)


def _shown_whole(settings: Settings) -> Settings:
    """The settings with every stage at work and room to grow, also on a machine of two cores."""
    children = max(2, (os.cpu_count() or 2) - 1)
    return replace(
        settings,
        trends=replace(settings.trends, live=True),
        parse=replace(settings.parse, children=children),
    )
