"""One crawl on one machine: SQLite, curl, parser children, indexer and counter around the flow's loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing, nullcontext
from functools import partial

from levada.collection.commands import open_commands
from levada.collection.components import (
    ReplaceableFetcher,
    ReplaceablePolicy,
    RunningSettings,
    learn_from_sample,
    make_fetcher,
    make_hooks,
    make_parser,
    make_policy,
    make_render_slots,
)
from levada.collection.forgetting.retention import retention_beside
from levada.collection.forgetting.unfinished import compact_for
from levada.collection.live import live_file_writer
from levada.collection.starts import add_start, forget_demo, limit_waits, reschedule, tidied
from levada.core.clock import first_of, make_clock
from levada.core.configuration.kept import SettingChange
from levada.core.errors import StoreAway, StoreError
from levada.core.folder import DataFolder
from levada.core.processes import FreedMemory, tune_allocator
from levada.core.protocols import Faults, Fetcher
from levada.core.records import FoundUrl, VisitResult
from levada.core.reports import Report
from levada.core.settings import Settings
from levada.crawl.commits import CrawlPorts
from levada.crawl.engine import Crawl
from levada.crawl.local_transport import LocalTransport
from levada.engines.opentelemetry import traced
from levada.follow.index import IndexerChild, spans_shards
from levada.follow.process import Follower, ShardFollowers, followers
from levada.scale.autoscaler import stage_rule, stages_after_fetch
from levada.search.hybrid.embedding import open_embedder
from levada.store.opening import open_store, place_if_new, store_limits, unreachable
from levada.store.workplace import is_shared, share

Following = Follower | ShardFollowers
RunningCrawl = Crawl
"""A crawl that is ready to run, or runs, for those who show it."""

log = logging.getLogger(__name__)

_LOOK_FOR_HOOKS = 1.0  # seconds between two looks at whether anybody wants to be told of changes
_LOOK = 0.25  # seconds between two looks at whether there is anything to do


def _stored_bytes(visit: VisitResult) -> int:
    return 0 if visit.version is None else len(visit.version.content_zstd)


def open_followers(folder: DataFolder, settings: Settings) -> tuple[Following, Following | None]:
    """What indexes the documents of a crawl, and, with `trends.live`, what counts their terms."""
    indexer = followers(folder, lambda shard: IndexerChild(shard, settings.index, hybrid=settings.search.hybrid))
    if not settings.trends.live:
        return indexer, None
    from levada.follow.counter import CountChild

    return indexer, followers(folder, CountChild)


_FREED_AFTER = 16 * 1024 * 1024  # bytes of pages, after which freed memory goes back to the kernel
_OF_A_VISIT, _UNPACKED = 32 * 1024, 8  # bytes: of a visit, and for each byte of what it stores


def _offer(folder: DataFolder, settings: Settings) -> Callable[[Settings], None]:
    """Let machines without this folder serve the collection, where servers hold all of it; returns what to call with
    settings that changed."""
    if not spans_shards(settings.index.engine):
        return lambda now: None
    place_if_new(folder, settings.store)
    share(folder, settings)
    return partial(share, folder)


@asynccontextmanager
async def open_crawl(
    folder: DataFolder,
    settings: Settings,
    start: Sequence[FoundUrl],
    *,
    once: bool = False,
    max_pages: int | None = None,
    only: Sequence[str] | None = None,
    on_committed: Callable[[Sequence[VisitResult]], None] = lambda visits: None,
    on_untold: Callable[[str], None] | None = None,
    on_kept: Callable[[Sequence[SettingChange]], None] = lambda changes: None,
    fetcher: Fetcher | None = None,
    faults: Faults | None = None,
) -> AsyncIterator[Crawl]:
    """A crawl that is ready to run; on leaving, everything is closed and searchable, and notifications are sent.

    `on_untold` is called with each notification that could not be sent, and why; else they are logged. `on_kept` is
    called with the settings that the collection keeps from now on.
    """
    # First what may be wrong in the settings: then nothing has been touched yet.
    clock, policy = make_clock(settings.clock), ReplaceablePolicy(make_policy(settings))
    parser = make_parser(settings, settings.fetch.slots)
    stage_rule("parse", settings.stages, parser.most, settings.plugins)
    open_embedder(settings)
    hooks = make_hooks(settings)
    slots = make_render_slots(settings)
    own = ReplaceableFetcher(fetcher or make_fetcher(settings, folder=folder, parser=parser, slots=slots))
    tune_allocator()
    folder.make()
    options = settings.plugins.get(settings.store.engine)
    with (
        folder.locked(),
        nullcontext(_offer(folder, settings)) as published,
        closing(open_commands(folder, settings)) as commands,
        closing(open_store(folder, settings.store, store_limits(settings), faults, options)) as store,
    ):
        if not is_shared(folder):
            store.forget_leases()  # whoever held them is dead: the lock is ours
        reschedule(folder, store, settings, clock.now())
        on_kept(folder.save_settings(settings))
        forget_demo(folder)
        limit_waits(store, settings, clock.now())
        add_start(tidied(start, settings), store, clock.now())
        learn_from_sample(policy, store)
        indexer, counter = open_followers(folder, settings)
        freed = FreedMemory(_FREED_AFTER)

        def committed(visits: Sequence[VisitResult]) -> None:
            freed.passed(_OF_A_VISIT * len(visits) + _UNPACKED * sum(map(_stored_bytes, visits)))
            if changes := _changed_documents(visits):
                indexer.wake(changes)
                if counter:
                    counter.wake(changes)
            on_committed(visits)

        asking, reading = traced(own, parser)
        own_fetcher = None if fetcher else own
        running = RunningSettings(folder, settings, store, own_fetcher, parser, policy, clock, published, slots=slots)
        compact = partial(compact_for, folder, store, indexer.wake)
        ports = CrawlPorts(
            clock, store, store, store, policy, store, asking, commands, running, lambda: bool(store.away), compact
        )
        stages = stages_after_fetch(settings.stages, parser, indexer, counter, settings.plugins, slots)
        transport = LocalTransport(reading, on_committed=committed, stage_pools=stages, hooks=hooks)
        board = live_file_writer(folder, lambda: counter.balance if counter else None)
        stopping = asyncio.Event()
        telling = asyncio.create_task(_tell(folder, settings, stopping))
        try:
            yield Crawl(
                ports,
                settings,
                transport,
                once=once,
                max_pages=max_pages,
                only=only,
                board=board,
                beside=retention_beside(store, settings, clock),
            )
        finally:
            await asking.close()
            await reading.close()
            trouble, uncounted = indexer.finish(), counter.finish() if counter else None
            folder.forget_live()
            stopping.set()
            for untold in await telling:
                (on_untold or _log_untold)(untold)
        if once and (missing := unreachable(store)):
            raise StoreAway(f"the pages of the other shards are stored, and {missing[0]}")
        if trouble:
            raise StoreError(f"the pages are stored, but the search index is behind: {trouble}")
        if uncounted:
            raise StoreError(f"the pages are stored, but their terms are not all counted: {uncounted}")


async def _tell(folder: DataFolder, settings: Settings, stopping: asyncio.Event) -> list[str]:
    """Tell of changes while the crawl runs, once somebody wants to be told; returns what could not be sent."""
    while not (settings.notify.notifiers or folder.hooks.exists()):
        if stopping.is_set():
            return []
        await first_of(stopping, asyncio.sleep(_LOOK_FOR_HOOKS))
    from levada.collection.notifications import notify_beside

    return await notify_beside(folder.path, stopping)


def _log_untold(sentence: str) -> None:
    log.warning("a notification waits: %s", sentence)


def _changed_documents(visits: Sequence[VisitResult]) -> int:
    """How many of these visits give the index and the counts something to do."""
    return sum(
        each.version is not None or (each.lease.page.version > 0 and each.state is not each.lease.page.state)
        for each in visits
    )


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
