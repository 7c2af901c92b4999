"""Levada's own loop: with a queue for a frontier and a plain reading, or (`--store`) whole, store and index too."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import uvloop
from queue_frontier import QueueFrontier

from levada.collection.components import make_fetcher, make_policy
from levada.collection.crawling import open_crawl
from levada.collection.starts import seeds
from levada.core.clock import make_clock
from levada.core.folder import DataFolder
from levada.core.processes import tune_allocator
from levada.core.reports import Report
from levada.core.settings import (
    CrawlSettings,
    FetchSettings,
    GuardSettings,
    ParseSettings,
    PolitenessSettings,
    Settings,
)
from levada.crawl.commits import CrawlPorts
from levada.crawl.engine import Crawl
from levada.crawl.local_transport import LocalTransport
from levada.parser.pool import ParserPool

LEAN_CHILD = str(Path(__file__).parent / "lean_child.py")


def settings_for(starts: list[str]) -> Settings:
    """As many exchanges at once as the peer may make, and no delay; everything else as it comes."""
    return Settings(
        guard=GuardSettings(allow=tuple(start.removeprefix("http://").rstrip("/") for start in starts)),
        politeness=PolitenessSettings(delay=0, max_concurrent=16),
        fetch=FetchSettings(slots=64),
        parse=ParseSettings(children=1),
        crawl=CrawlSettings(sitemaps=False),
    )


async def in_memory(starts: list[str]) -> Report:
    tune_allocator()
    settings = settings_for(starts)
    clock = make_clock(settings.clock)
    store = QueueFrontier()
    store.add(seeds(starts), [], clock.now())
    fetcher, parser = make_fetcher(settings), ParserPool(1, program=[LEAN_CHILD])
    ports = CrawlPorts(clock, store, store, store, make_policy(settings), store, fetcher)
    try:
        return await Crawl(ports, settings, LocalTransport(parser), once=True, watch=None).run()
    finally:
        await fetcher.close()
        await parser.close()


async def on_disk(starts: list[str], folder: Path) -> Report:
    async with open_crawl(DataFolder(folder), settings_for(starts), seeds(starts), once=True) as crawl:
        return await crawl.run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("starts", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = on_disk(options.starts, Path(folder)) if options.store else in_memory(options.starts)
        report = uvloop.run(work)
    print(json.dumps({"pages": report.new}))


if __name__ == "__main__":
    main()
