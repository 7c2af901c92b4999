"""Page hooks: called once for each stored page, and none of them can hurt the crawl."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from threading import Event

import pytest

from levada.core import plugins
from levada.core.clock import SystemClock
from levada.core.protocols import PageHook
from levada.core.records import Lease, Outcome, RawPage, Response, StoredPage, VisitResult
from levada.core.settings import Settings
from levada.crawl.commits import CommitPorts, Commits
from levada.crawl.distributed.catalog_worker import CatalogWorker
from levada.crawl.distributed.messages import pack
from levada.crawl.executor import StoreExecutor
from levada.crawl.hooks import PageHooks, stored_page
from levada.crawl.link_filter import LinkFilter
from levada.crawl.visits import Fetched, Visited
from levada.pages.parse import parse_page
from levada.store.memory import MemoryStore
from levada.testing.store.visits import changed, first, links, unchanged
from tests.crawl.simulated_crawl import ema_policy

KEY = "crawl.hooks:hook"


@pytest.fixture(autouse=True)
def no_failures_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_failures", {})


class Hook:
    def __init__(self, act: Callable[[StoredPage], object] = lambda page: None) -> None:
        self.seen: list[StoredPage] = []
        self._act = act

    def after_page(self, page: StoredPage) -> None:
        self._act(page)
        self.seen.append(page)


def visits(count: int) -> Iterator[VisitResult]:
    store = MemoryStore()
    store.add(links("a.test", count), [], 0.0)
    for lease in store.lease(0.0, count, 60.0):
        yield first(lease, 1.0, f"text of {lease.page.url}")


def run(hooks: PageHooks, *batches: list[VisitResult]) -> None:
    for batch in batches:
        hooks.put(batch)
    hooks.close()


def test_a_hook_sees_each_stored_page_once_and_in_order() -> None:
    hook, stored = Hook(), list(visits(5))
    run(PageHooks({"hook": hook}), stored[:2], stored[2:])
    assert hook.seen == [stored_page(each) for each in stored]
    page = hook.seen[0]
    assert (page.url, page.site, page.version, page.outcome) == ("http://a.test/0", "a.test", 1, Outcome.FIRST)
    assert (page.title, page.text, page.status) == ("Text Of Http://A.Test/0", "text of http://a.test/0", 200)
    assert plugins.failures() == {}


def test_a_visit_that_stored_nothing_is_not_for_hooks() -> None:
    (one,) = visits(1)
    hook = Hook()
    run(PageHooks({"hook": hook}), [unchanged(one.lease, 2.0), changed(one.lease, 3.0, "new words")])
    assert [page.outcome for page in hook.seen] == [Outcome.CHANGED]


def fails(page: StoredPage) -> None:
    if page.url.endswith(("1", "3")):
        raise KeyError("no such thing")


def leaves(page: StoredPage) -> None:
    raise SystemExit(3)


def test_a_hook_that_raises_is_counted_said_once_and_called_again(caplog: pytest.LogCaptureFixture) -> None:
    failing, leaving, good = Hook(fails), Hook(leaves), Hook()
    run(PageHooks({"hook": failing, "leaving": leaving, "good": good}), list(visits(5)))
    assert [page.url[-1] for page in failing.seen] == ["0", "2", "4"]
    assert len(good.seen) == 5
    assert plugins.failures() == {KEY: 2, "crawl.hooks:leaving": 5}
    assert sum("crawl.hooks:hook failed (KeyError" in record.message for record in caplog.records) == 1


def test_a_hook_that_hangs_is_turned_off_and_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    never = Event()
    hanging, good = Hook(lambda page: never.wait()), Hook()
    with caplog.at_level(logging.WARNING):
        run(PageHooks({"hook": hanging, "good": good}, seconds=0.05), list(visits(3)))
    assert (len(hanging.seen), len(good.seen)) == (0, 3)
    assert plugins.failures() == {KEY: 1}
    assert [record.message for record in caplog.records] == [
        "plugin: crawl.hooks:hook failed (no answer within 0.05 s); it is turned off for this run"
    ]
    never.set()


def test_a_hook_that_is_async_would_do_nothing_and_is_counted() -> None:
    class Async:
        async def after_page(self, page: StoredPage) -> None:
            raise AssertionError("nobody awaits it")

    hook: PageHook = Async()  # type: ignore[assignment]
    run(PageHooks({"hook": hook}), list(visits(2)))
    assert plugins.failures() == {KEY: 2}


def test_pages_that_a_slow_hook_has_no_room_for_are_left_out_and_counted() -> None:
    free = Event()
    hook = Hook(lambda page: free.wait())
    hooks, stored = PageHooks({"hook": hook}, most_waiting=3), list(visits(10))
    hooks.put(stored)
    free.set()
    hooks.close()
    assert len(hook.seen) + plugins.failures()[KEY] == 10
    assert 3 <= len(hook.seen) <= 4


def ports(store: MemoryStore) -> CommitPorts:
    return CommitPorts(SystemClock(), store, store, store, ema_policy())


def test_only_what_the_store_accepted_reaches_the_hooks() -> None:
    store, hook, settings = MemoryStore(), Hook(), Settings()
    store.add(links("a.test", 2), [], 0.0)
    (old, _) = store.lease(0.0, 2, 1.0)
    leases = store.lease(5.0, 2, 60.0)  # the first ones ended

    async def story() -> None:
        filter = LinkFilter(settings.crawl, ())
        hooks = PageHooks({"hook": hook})
        commits = Commits(ports(store), settings, StoreExecutor(), filter, lambda batch, accepted: None, hooks)
        for lease in (old, *leases):
            commits.put(first(lease, 6.0, f"text {lease.token}"))
        commits.finish()
        await commits.run()

    asyncio.run(story())
    assert sorted(page.text for page in hook.seen) == sorted(f"text {lease.token}" for lease in leases)


def visited(lease: Lease) -> Visited:
    raw = RawPage(lease.page.url, f"<p>The ferry to {lease.page.url}".encode(), "text/html")
    fetched = Fetched(lease, SystemClock().now(), Response(lease.page.url, 200))
    return Visited(fetched, b"digest", parse_page(raw))


def test_hooks_run_in_the_catalog_worker_once_for_each_page() -> None:
    store, hook = MemoryStore(), Hook()
    store.add(links("a.test", 3), [], 0.0)
    leases = store.lease(SystemClock().now(), 3, 600.0)
    (message,) = pack("c", map(visited, leases))

    async def story() -> None:
        hooks = PageHooks({"hook": hook})
        worker = CatalogWorker(ports(store), Settings(), "c", StoreExecutor(), hooks)
        running = asyncio.create_task(worker.run())
        await worker(message, False)
        await worker(message, True)  # the broker repeats itself
        running.cancel()
        await asyncio.to_thread(hooks.close)

    asyncio.run(story())
    assert sorted(page.url for page in hook.seen) == [f"http://a.test/{n}" for n in range(3)]
