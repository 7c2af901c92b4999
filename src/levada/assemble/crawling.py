"""One crawl on one machine: SQLite, curl, parser children, indexer and counter around the flow's loop."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing

from levada.adapters.calm_memory import calm_memory
from levada.assemble.folder import DataFolder
from levada.assemble.follower_team import followers
from levada.assemble.following import Follower
from levada.assemble.indexer import IndexerChild
from levada.assemble.limits import store_limits
from levada.assemble.ordering import open_orders
from levada.assemble.parts import make_clock, make_fetcher, make_parser, make_policy, remember_pages
from levada.assemble.shared import is_shared
from levada.assemble.staff import changed_documents, staff
from levada.assemble.starting import add_start, limit_waits
from levada.assemble.stores import open_store
from levada.assemble.tracing import traced
from levada.errors import StoreError
from levada.flow.crawl import Crawl, CrawlPorts
from levada.flow.live import LiveBoard
from levada.flow.settings import Settings
from levada.flow.stage_rules import stage_rule
from levada.pages.urls import seed_address, site_of
from levada.ports import Faults, Fetcher
from levada.records import Found, How, Settled

__all__ = ["open_crawl", "seeds"]


def seeds(urls: Sequence[str]) -> list[Found]:
    """The addresses that a user asked for; `BadUrl` if one is none."""
    addresses = [seed_address(url) for url in urls]
    return [Found(address, site_of(address), how=How.SEED, admit=True) for address in addresses]


@asynccontextmanager
async def open_crawl(
    folder: DataFolder,
    settings: Settings,
    start: Sequence[Found],
    *,
    once: bool = False,
    max_pages: int | None = None,
    on_committed: Callable[[Sequence[Settled]], None] = lambda visits: None,
    fetcher: Fetcher | None = None,
    faults: Faults | None = None,
) -> AsyncIterator[Crawl]:
    """A crawl that is ready to run; on leaving, everything is closed and searchable."""
    # First what may be wrong in the settings: then nothing has been touched yet.
    clock, policy = make_clock(settings.clock), make_policy(settings)
    parser = make_parser(settings, settings.fetch.slots)
    stage_rule("parse", settings.stages, parser.most)
    fetch = fetcher or make_fetcher(settings)
    calm_memory()
    folder.make()
    with folder.locked(), closing(open_orders(folder, settings)) as orders:
        store = open_store(folder, settings.store, store_limits(settings), faults)
        try:
            folder.save_settings(settings)
            if not is_shared(folder):
                store.forget_leases()  # whoever held them is dead: the lock is ours
            limit_waits(store, settings, clock.now())
            add_start(start, store, clock.now())
            remember_pages(policy, store)
            indexer = followers(folder, lambda shard: IndexerChild(shard, settings.index))
            counter = followers(folder, _counter) if settings.trends.live else None

            def committed(visits: Sequence[Settled]) -> None:
                if changes := changed_documents(visits):
                    indexer.wake(changes)
                    if counter:
                        counter.wake(changes)
                on_committed(visits)

            asking, reading = traced(fetch, parser)
            ports = CrawlPorts(clock, store, store, store, store, asking, reading, policy, orders)
            try:
                yield Crawl(
                    ports,
                    settings,
                    once=once,
                    max_pages=max_pages,
                    on_committed=committed,
                    staff=staff(settings.stages, parser, indexer, counter),
                    board=LiveBoard(os.getpid(), folder.save_live, lambda: counter.balance if counter else None),
                )
            finally:
                await asking.close()
                await reading.close()
                trouble, uncounted = indexer.finish(), counter.finish() if counter else None
                folder.forget_live()
            if trouble:
                raise StoreError(f"the pages are stored, but the search index is behind: {trouble}")
            if uncounted:
                raise StoreError(f"the pages are stored, but their terms are not all counted: {uncounted}")
        finally:
            store.close()


def _counter(folder: DataFolder) -> Follower:
    from levada.assemble.counting import CountChild  # a crawl that does not count need not load it

    return CountChild(folder)
