"""Running a crawl to its end."""

from __future__ import annotations

import asyncio

from levada.core.reports import Report
from levada.crawl.engine import Crawl

RunningCrawl = Crawl
"""A crawl that is ready to run, or runs, for those who show it."""

_LOOK = 0.25  # seconds between two looks at whether there is anything to do


async def run_to_end(crawl: Crawl, seconds: float | None = None) -> Report:
    """Run until the crawl is done or stopped, or for so many seconds of the wall clock.

    A crawl that never stored a page and knows of none that it has not tried is done, and so is one that knows of no
    page at all.
    """
    loop = asyncio.get_running_loop()
    limit = loop.call_later(seconds, crawl.stop, "limit") if seconds is not None else None
    giving_up, run = asyncio.create_task(_give_up(crawl)), asyncio.ensure_future(crawl.run())
    try:
        return await asyncio.shield(run)
    except asyncio.CancelledError:  # stop in good order: leases are given back, gathered visits are committed
        crawl.stop()
        await run
        raise
    finally:
        giving_up.cancel()
        if limit is not None:
            limit.cancel()


async def _give_up(crawl: Crawl) -> None:
    unknown = crawl.stats  # until it is looked at for the first time
    while True:
        await asyncio.sleep(_LOOK)
        stats = crawl.stats
        if stats is not unknown and not (stats.versions or stats.unvisited or stats.leased):
            crawl.stop("done")
