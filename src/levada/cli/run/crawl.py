"""`levada crawl`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from levada.cli.logs import for_machines
from levada.cli.options import BESIDE, PORT, ConfigOption, DataOption, JsonOption, print_json
from levada.core.errors import LevadaError, UsageError
from levada.core.processes import module_command

if TYPE_CHECKING:
    from levada.cli.run.screen import LiveScreen, PlainLines
    from levada.collection.crawling import RunningCrawl
    from levada.core.configuration.kept import SettingChange
    from levada.core.reports import Report

INTERRUPTED = 130


@contextmanager
def served_beside(data: Path, *options: str, port: int = PORT, wanted: bool = True) -> Iterator[str]:
    """The address of a dashboard that runs meanwhile; "" if it is not wanted or cannot start."""
    if not wanted:
        yield ""
        return
    process, address = _start(data, port, options)
    if not address:
        _end(process)
        process, address = _start(data, 0, options)  # another program has that port
    try:
        yield address
    finally:
        _end(process)


def _start(data: Path, port: int, options: Sequence[str]) -> tuple[subprocess.Popen[str], str]:
    command = [*module_command("levada"), "serve", "--data", str(data), "--port", str(port), *options]
    process = subprocess.Popen(  # noqa: S603 -- ourselves
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, BESIDE: str(os.getpid())},
        start_new_session=True,  # Ctrl-C is for the crawl, which ends the dashboard itself
    )
    assert process.stdout is not None
    last = process.stdout.readline().strip().rpartition(" ")[2]
    return process, last if last.startswith(("http://", "https://")) else ""


def _end(process: subprocess.Popen[str]) -> None:
    with process:  # closes its pipe, and waits for it
        process.terminate()


def run_loop(work: Callable[[], Coroutine[None, None, Report]]) -> Report:
    """Run this to its end on uvloop, and restore the signal handlers that it replaced."""
    import uvloop

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return uvloop.run(work())
    except KeyboardInterrupt:  # so early that nothing had begun
        raise typer.Exit(INTERRUPTED) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def make_watcher(quiet: bool, hint: str = "") -> LiveScreen | PlainLines | None:
    """What shows a crawl: a live screen on a terminal, plain lines when piped, None if nothing is to be shown."""
    from levada.cli.run.screen import LiveScreen, PlainLines

    if quiet or for_machines():
        return None
    return LiveScreen(hint) if sys.stderr.isatty() else PlainLines()


async def drive(crawl: RunningCrawl, seconds: float | None = None, *, quiet: bool, hint: str = "") -> Report:
    """Run a crawl to its end, to Ctrl-C or SIGTERM, or for so many seconds, and show its progress."""
    from levada.collection.crawling import run_to_end
    from levada.core.systemd import Service

    watcher, service = make_watcher(quiet, hint), Service()

    def stop() -> None:
        service.stopping()
        crawl.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    if watcher is None:
        async with service.running():
            return await run_to_end(crawl, seconds)
    showing = asyncio.create_task(_show(crawl, watcher))
    try:
        async with service.running():
            return await run_to_end(crawl, seconds)
    finally:
        showing.cancel()
        watcher.close()


async def _show(crawl: RunningCrawl, watcher: LiveScreen | PlainLines) -> None:
    while True:
        watcher.show(crawl, time.monotonic())
        await asyncio.sleep(watcher.every)


def crawl(
    urls: Annotated[list[str] | None, typer.Argument(metavar="URL", help="Where to start.")] = None,
    data: DataOption = Path("levada-data"),
    config: ConfigOption = None,
    once: Annotated[bool, typer.Option("--once", help="Visit all that is due or newly found once, then end.")] = False,
    max_pages: Annotated[int | None, typer.Option(min=1, metavar="N", help="End after N visits.")] = None,
    scope: Annotated[
        str | None, typer.Option(metavar="sites|any", help="Stay on the start sites, or follow any link.")
    ] = None,
    delay: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Between two requests to a site.")
    ] = None,
    per_hour: Annotated[int | None, typer.Option(min=1, metavar="N", help="Budget: fetches per hour, in all.")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Open the dashboard beside it, on this machine.")] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="P", help="For --serve; another if it is taken.")
    ] = 8400,
    json: JsonOption = False,
) -> None:
    """Crawls from the URLs given, stores every page, and revisits it when that is worth it.

    Runs until Ctrl-C. The same command continues an earlier crawl, however it ended; without URLs it continues with
    the pages that the data folder holds.

    Examples:

        levada crawl https://example.org

        levada crawl example.org example.net --once --max-pages 500

        levada crawl --data news --config news.toml --per-hour 2000

        levada crawl https://example.org --serve

        levada crawl https://example.org --once --json > report.json
    """
    from levada.cli.given import given_settings, kept_words, tell_kept
    from levada.cli.logs import log_visits, tell
    from levada.cli.run.screen import summary
    from levada.collection.crawling import open_crawl
    from levada.collection.starts import check_starts, seeds
    from levada.core.folder import DataFolder

    flags = {
        "crawl.scope": ("--scope", scope),
        "politeness.delay": ("--delay", delay),
        "budget.per_hour": ("--per-hour", per_hour),
    }
    folder = DataFolder(data, given_settings(config, flags))
    start, is_new = seeds(urls or []), not folder.exists()
    if not start and is_new:
        raise UsageError("no start: name one, as in: levada crawl https://example.org")
    settings = folder.settings()

    untold: list[str] = []
    kept: list[SettingChange] = []  # by a new collection

    async def run() -> Report:
        async with open_crawl(
            folder,
            settings,
            start,
            once=once,
            max_pages=max_pages,
            on_committed=log_visits,
            on_untold=untold.append,
            on_kept=kept.extend if is_new else tell_kept,
        ) as work:
            return await drive(work, quiet=json)

    with served_beside(data, port=port, wanted=serve) as address:
        if address:
            tell(f"watch it at {address}", logging.INFO)
        report = run_loop(run)
    if json:
        print_json(report)
    else:
        print(summary(report, str(data)))
        if kept:
            print(kept_words(kept))
    for sentence in untold:
        tell(f"a notification waits, and is tried again: {sentence}", logging.WARNING)
    if report.stopped == "interrupted":
        # Ctrl-C is the regular end of a crawl without a limit; one with a limit was cut short.
        raise typer.Exit(INTERRUPTED if once or max_pages else 0)
    if report.stopped == "offline":
        raise typer.Exit(LevadaError.exit_code)
    for sentence in check_starts(data, start):
        tell(sentence, logging.WARNING)
    if untold:
        raise typer.Exit(LevadaError.exit_code)
