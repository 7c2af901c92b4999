"""A crawl with somebody watching: the event loop, Ctrl-C, the live screen or plain lines."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence

import typer

from levada.assemble.crawling import open_crawl
from levada.assemble.folder import DataFolder
from levada.cli.logs import for_machines, log_visits
from levada.cli.screen import LiveScreen, PlainLines, Watcher, summary
from levada.flow.crawl import Crawl
from levada.flow.progress import Report
from levada.flow.settings import Settings
from levada.records import Found

__all__ = ["make_watcher", "run_crawl", "run_loop", "watch"]

INTERRUPTED = 130
_LOOK = 0.25  # seconds between two looks at whether there is anything to do


def run_crawl(
    folder: DataFolder,
    settings: Settings,
    start: Sequence[Found],
    *,
    once: bool = False,
    max_pages: int | None = None,
    quiet: bool = False,
) -> Report:
    watcher = make_watcher(quiet)

    async def crawl() -> Report:
        async with open_crawl(
            folder, settings, start, once=once, max_pages=max_pages, on_committed=log_visits
        ) as work:
            return await _unless_hopeless(work, watch(work, watcher))

    report = run_loop(crawl)
    if not quiet:
        print(summary(report, str(folder.path)))
    return report


def run_loop(work: Callable[[], Coroutine[None, None, Report]]) -> Report:
    import uvloop

    try:
        return uvloop.run(work())
    except KeyboardInterrupt:  # so early that nothing had begun
        raise typer.Exit(INTERRUPTED) from None


def make_watcher(quiet: bool) -> Watcher | None:
    if quiet or for_machines():
        return None
    return LiveScreen() if sys.stderr.isatty() else PlainLines()


async def watch(work: Crawl, watcher: Watcher | None, seconds: float | None = None) -> Report:
    """Run a crawl to its end, to Ctrl-C, or for so many seconds of the wall, and show how it goes."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, work.stop)
    if seconds is not None:
        loop.call_later(seconds, work.stop, "limit")
    if watcher is None:
        return await work.run()
    showing = asyncio.create_task(_show(work, watcher))
    try:
        return await work.run()
    finally:
        showing.cancel()
        watcher.close()


async def _show(work: Crawl, watcher: Watcher) -> None:
    while True:
        watcher.show(work, time.monotonic())
        await asyncio.sleep(watcher.every)


async def _unless_hopeless(work: Crawl, run: Coroutine[None, None, Report]) -> Report:
    """A crawl that never stored a page, and knows of none that it has not tried, is over: nobody waits for it.

    So is one that knows of no page at all.
    """
    giving_up = asyncio.create_task(_give_up(work))
    try:
        return await run
    finally:
        giving_up.cancel()


async def _give_up(work: Crawl) -> None:
    unknown = work.standing  # until it is looked at for the first time
    while True:
        await asyncio.sleep(_LOOK)
        standing = work.standing
        if standing is not unknown and not (standing.versions or standing.unvisited or standing.leased):
            work.stop("done")
