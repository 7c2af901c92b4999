"""Levada's own loop: with a queue for a frontier and a plain reading, or (`--store`) whole, store and index too."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import uvloop
from queue_frontier import QueueFrontier

from levada.adapters.calm_memory import calm_memory
from levada.adapters.parser_pool import ParserPool
from levada.assemble.crawling import open_crawl, seeds
from levada.assemble.folder import DataFolder
from levada.assemble.parts import make_clock, make_fetcher, make_policy
from levada.flow.crawl import Crawl, CrawlPorts
from levada.flow.progress import Report
from levada.flow.settings import (
    CrawlSettings,
    FetchSettings,
    GuardSettings,
    ParseSettings,
    PolitenessSettings,
    Settings,
)

LEAN_CHILD = str(Path(__file__).parent / "lean_child.py")


def settings_for(starts: list[str]) -> Settings:
    """As many exchanges at once as the peer may make, and no delay; everything else as it comes."""
    return Settings(
        guard=GuardSettings(allow=tuple(start.removeprefix("http://").rstrip("/") for start in starts)),
        politeness=PolitenessSettings(delay=0, at_once=16),
        fetch=FetchSettings(slots=64),
        parse=ParseSettings(children=1),
        crawl=CrawlSettings(sitemaps=False),
    )


async def in_memory(starts: list[str]) -> Report:
    calm_memory()
    settings = settings_for(starts)
    clock = make_clock(settings.clock)
    store = QueueFrontier()
    store.add(seeds(starts), [], clock.now())
    fetcher, parser = make_fetcher(settings), ParserPool(1, program=[LEAN_CHILD])
    ports = CrawlPorts(clock, store, store, store, store, fetcher, parser, make_policy(settings))
    try:
        return await Crawl(ports, settings, once=True, watched=False).run()
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
