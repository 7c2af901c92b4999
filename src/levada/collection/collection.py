"""The public class `Collection`: adds crawling, checking and control commands to read access."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, closing, contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from levada.collection.commands import Receipt
from levada.collection.site_rules.configured import ConfiguredCollection, new_runner, refuse_running_loop
from levada.core.commands import AddSeeds, ChangeBudget, CheckNow, DropSite, Pause, Resume
from levada.core.errors import NotFound, StoreLocked, UsageError
from levada.core.folder import DataFolder
from levada.core.records import FoundUrl, VisitResult
from levada.core.settings import CrawlSettings, Settings

if TYPE_CHECKING:
    from levada.collection.checking import OnProgress
    from levada.collection.events import CheckResult, PageEvent
    from levada.collection.forgetting.run import ForgetReport
    from levada.collection.notifications import Notifications
    from levada.collection.storage.backup import BackupReport
    from levada.core.reports import Report
    from levada.crawl.engine import Crawl

T = TypeVar("T")


class Collection(ConfiguredCollection):
    """The pages of one folder: crawl them, search them, ask what changed.

    Opens the collection in `folder`, or creates one; with `create=False` a missing one raises `NotFound`. Without
    `settings`, those stored with the collection are used. Several threads may share an instance; a crawl and other
    processes may use the same folder at the same time.

    >>> with levada.Collection("news", settings) as news:
    ...     news.stats().stored > 0
    True
    """

    def __init__(
        self, folder: str | PathLike[str] = "levada-data", settings: Settings | None = None, *, create: bool = True
    ) -> None:
        super().__init__(DataFolder(Path(folder)), settings)
        if not create:
            self._folder.must_exist()
        elif not self._folder.exists():
            self._folder.make()
            self._add((), settings or Settings())

    def __enter__(self) -> Collection:
        return self

    # Start URLs

    def add(self, *urls: str, **rules: Any) -> int:
        """Add start URLs and admit their sites; returns how many URLs were new.

        `rules` are keys of `[[site]]` for the sites of these URLs (`include`, `exclude`, `folders`, `depth`...), or of
        the section [crawl] (`scope`, `max_depth`...); both are stored with the collection. A dropped site is admitted
        again. A running crawl picks up the URLs and the rules of their sites within a second, but those of [crawl]
        cannot change here while it runs.

        >>> news.add(start, exclude=["*.pdf", "/archive/*"], max_depth=5)
        0
        """
        self._must_be_open()
        from levada.collection.site_rules.changes import notes_on_starts, rules_for_starts
        from levada.collection.starts import seeds, tidied
        from levada.core.site_rules.section import RULE_TYPES

        found, known = seeds(urls), CrawlSettings.__struct_fields__
        if wrong := next((name for name in rules if name not in known and name not in RULE_TYPES), None):
            raise UsageError(f"add() has no rule {wrong!r}: known: {', '.join((*known, *RULE_TYPES))}")
        of_sites = {name: value for name, value in rules.items() if name in RULE_TYPES}
        of_crawl = {f"crawl.{name}": value for name, value in rules.items() if name not in RULE_TYPES}
        changes = rules_for_starts(self.settings, found, of_sites)
        found = tidied(found, self.settings.replace(changes))
        notes_on_starts(self.settings.replace(changes), found)
        if changes:
            self.change_settings(changes)
        settings = self.settings.replace(of_crawl)
        try:
            return self._add(found, settings if of_crawl or self._settings else None)
        except StoreLocked:
            if of_crawl or not self._folder.exists():
                raise
            self._view().submit(AddSeeds(tuple(each.url for each in found)))
            return sum(self._reader().store.page(each.url) is None for each in found)

    def _add(self, found: Sequence[FoundUrl], settings: Settings | None) -> int:
        from levada.core.clock import make_clock
        from levada.store.opening import open_store, store_limits

        held = settings or self.settings
        with self._folder.locked():
            if settings is not None:
                self._keep(settings)
            with closing(open_store(self._folder, held.store, store_limits(held))) as store:
                for record in [record for name in {each.site for each in found} if (record := store.site(name))]:
                    if record.dropped:
                        store.save(msgspec.structs.replace(record, admitted=True, rest_until=0.0, failures=0))
                return store.add(found, [], make_clock(held.clock).now())

    # Crawling

    def crawl(self, *, once: bool = False, seconds: float | None = None, max_pages: int | None = None) -> Report:
        """Crawl until Ctrl-C, until nothing is due (`once`), for `seconds`, or for `max_pages` visits.

        >>> report = news.crawl(once=True)
        >>> report.stopped
        'done'
        """
        return self._run(lambda: self._crawled(once, seconds, max_pages, interruptible=True), "acrawl")

    async def acrawl(self, *, once: bool = False, seconds: float | None = None, max_pages: int | None = None) -> Report:
        """Like `crawl`, in a running event loop. Cancelling it stops the crawl cleanly.

        >>> asyncio.run(news.acrawl(once=True)).stopped
        'done'
        """
        return await self._crawled(once, seconds, max_pages)

    def events(
        self, *, once: bool = False, seconds: float | None = None, max_pages: int | None = None
    ) -> Generator[PageEvent, None, Report]:
        """Crawl, and yield an event for each visit after it is stored. Leaving the loop stops the crawl cleanly.

        The crawl runs in the calling thread, and only while the caller waits for the next event.

        >>> count = news.add(other)
        >>> for event in news.events():
        ...     print(event.outcome)
        ...     break
        new
        """
        self._must_be_open()
        refuse_running_loop("aevents")
        return self._events(once, seconds, max_pages)

    def _events(self, once: bool, seconds: float | None, max_pages: int | None) -> Generator[PageEvent, None, Report]:
        from levada.collection.checking import stepped_crawl

        reports: list[Report] = []
        with stepped_crawl(self.path), new_runner() as runner:
            told = self._told(once, seconds, max_pages, reports)
            try:
                while (event := runner.run(_next(told))) is not None:
                    yield event
            finally:
                runner.run(told.aclose())
        return reports[0]

    async def aevents(
        self, *, once: bool = False, seconds: float | None = None, max_pages: int | None = None
    ) -> AsyncGenerator[PageEvent, None]:
        """Like `events`, in a running event loop. Use `contextlib.aclosing` if you leave the loop early.

        >>> async def watch():
        ...     return [event.outcome.value async for event in news.aevents(once=True)]
        >>> count = news.add(other)
        >>> "new" in asyncio.run(watch())
        True
        """
        async with aclosing(self._told(once, seconds, max_pages, [])) as told:
            async for event in told:
                yield event

    async def _told(
        self, once: bool, seconds: float | None, max_pages: int | None, reports: list[Report]
    ) -> AsyncGenerator[PageEvent, None]:
        from levada.collection.crawling import run_to_end
        from levada.collection.events import page_event

        told: asyncio.Queue[PageEvent | None] = asyncio.Queue()

        def committed(visits: Sequence[VisitResult]) -> None:
            for result in visits:
                told.put_nowait(page_event(result))

        async with self.crawling(once=once, max_pages=max_pages, on_committed=committed) as work:
            run = asyncio.ensure_future(run_to_end(work, seconds))
            run.add_done_callback(lambda _: told.put_nowait(None))
            try:
                while (event := await told.get()) is not None:
                    yield event
            finally:
                work.stop()
                reports.append(await run)

    @asynccontextmanager
    async def crawling(
        self,
        start: Sequence[FoundUrl] = (),
        *,
        once: bool = False,
        max_pages: int | None = None,
        only: Sequence[str] | None = None,
        on_committed: Callable[[Sequence[VisitResult]], None] = lambda visits: None,
    ) -> AsyncIterator[Crawl]:
        """A crawl that is ready to `run()`, for example to show its progress. On exit, all pages are searchable.

        >>> async def crawl():
        ...     async with news.crawling(once=True) as work:
        ...         return (await work.run()).stopped
        >>> asyncio.run(crawl())
        'done'
        """
        from levada.collection.crawling import open_crawl

        self._must_be_open()
        if not start and not self._reader().store.stats(0.0).known:
            raise UsageError(f"no page is known in {self.path}: add a start URL first")
        async with open_crawl(
            self._folder,
            self.settings,
            start,
            once=once,
            max_pages=max_pages,
            only=only,
            on_committed=on_committed,
        ) as work:
            yield work

    async def _crawled(
        self, once: bool, seconds: float | None, max_pages: int | None, *, interruptible: bool = False
    ) -> Report:
        from levada.collection.crawling import run_to_end

        async with self.crawling(once=once, max_pages=max_pages) as work:
            with _stopped_by_signal(work) if interruptible else nullcontext():
                return await run_to_end(work, seconds)

    def check(self, url: str) -> CheckResult:
        """Visit one page now, whatever its plan says, within politeness and robots.txt. A new URL is added first.

        If a crawl runs, in this process or another, it visits the page before all others. In a loop over `events` the
        crawl waits for the loop: there it raises `StoreLocked`; check in another thread, or use `check_later`.

        >>> check = news.check(start)
        >>> print(check.outcome)
        unchanged
        """
        return self._run(lambda: self.acheck(url), "acheck")

    async def acheck(self, url: str) -> CheckResult:
        """Like `check`, in a running event loop.

        >>> asyncio.run(news.acheck(start)).changed
        False
        """
        command = self._check_command((url,), "", False)
        async with aclosing(self._checked(command, None)) as results:
            return await anext(results)

    def check_all(
        self, *urls: str, site: str = "", every: bool = False, on_progress: OnProgress | None = None
    ) -> Iterator[CheckResult]:
        """Visit these pages now, or all pages of a site, or with `every` all there are; yields each result.

        If a crawl runs, in this process or another, it visits them before all others. Of a site, or of all pages,
        only those are yielded that did not stay as they were.

        >>> [str(check.outcome) for check in news.check_all(start)]
        ['unchanged']
        """
        command = self._check_command(urls, site, every)
        refuse_running_loop("acheck_all")
        with new_runner() as runner:
            results = self._checked(command, on_progress)
            try:
                while (result := runner.run(_next(results))) is not None:
                    yield result
            finally:
                runner.run(results.aclose())

    async def acheck_all(
        self, *urls: str, site: str = "", every: bool = False, on_progress: OnProgress | None = None
    ) -> AsyncGenerator[CheckResult, None]:
        """Like `check_all`, in a running event loop. Use `contextlib.aclosing` if you leave the loop early.

        >>> async def check():
        ...     return [str(check.outcome) async for check in news.acheck_all(start)]
        >>> asyncio.run(check())
        ['unchanged']
        """
        async with aclosing(self._checked(self._check_command(urls, site, every), on_progress)) as results:
            async for result in results:
                yield result

    def check_later(self, *urls: str, site: str = "", every: bool = False) -> Receipt:
        """Have the running crawl, or the next one, visit these pages before all others, without waiting for it.

        >>> news.check_later(start).waiting
        1
        """
        return self._view().submit(self._check_command(urls, site, every))

    def check_notes(self, *urls: str, site: str = "") -> list[str]:
        """Sentences about sites that a check tries although they rest after failures.

        >>> news.check_notes(start)
        []
        """
        from levada.collection.checking import check_notes

        return check_notes(self._reader(), self._check_command(urls, site, not (urls or site)))

    def _check_command(self, urls: Sequence[str], site: str, every: bool) -> CheckNow:
        from levada.collection.checking import check_command

        return check_command(self._reader(), urls, site, every)

    def _checked(self, command: CheckNow, on_progress: OnProgress | None) -> AsyncGenerator[CheckResult, None]:
        from levada.collection.checking import checked, no_progress

        return checked(self, self._view, command, on_progress or no_progress)

    def forget(
        self,
        *urls: str,
        site: str = "",
        older_than: str | float | None = None,
        versions_beyond: int | None = None,
        retention: bool = False,
        out_of_scope: bool = False,
        dry_run: bool = False,
        on_progress: Callable[[int, int, str], None] = lambda done, total, doing: None,
    ) -> ForgetReport:
        """Delete pages, a site or old versions for good, and keep the pages and the site from coming back.

        `older_than` takes seconds or `"90d"`; it and `versions_beyond` go with `site` or alone. `retention` applies
        the rules of the settings; `out_of_scope`: the pages that the rules keep out, of `site` or of all. Without
        anything named, it finishes a forget that was interrupted. A crawl may run.

        >>> news.forget(start).pages
        1
        """
        from levada.collection.forgetting.run import forget, wanted
        from levada.collection.site_rules.scope import urls_out_of_scope

        self._must_be_open()
        if out_of_scope:
            is_alone = not (urls or retention or older_than is not None or versions_beyond is not None)
            urls, site = urls_out_of_scope(self._reader(), site, is_alone=is_alone), ""
        what = wanted(urls, site, older_than, versions_beyond, retention=retention)
        return forget(self.path, what, dry_run=dry_run, on_progress=on_progress)

    @property
    def notifications(self) -> Notifications:
        """Who is told of changes, by mail, Apprise or webhook: add, test, pause and remove them, and see the log.

        >>> news.notifications.log()
        []
        """
        from levada.collection.notifications import Notifications

        return Notifications(self._view())

    # Keeping it

    def backup(self, path: str | PathLike[str], *, force: bool = False, keys_only: bool = False) -> BackupReport:
        """Save the whole collection in one file, also while it is crawled, and read the file back.

        `levada.restore` puts it into a new folder. The file holds passwords of notifications: it is for its owner
        alone. With `keys_only`, texts and bodies that lie outside of the database stay where they are.

        >>> news.backup("news.backup").verified
        True
        """
        from levada.collection.storage.backup import back_up

        self._must_be_open()
        return back_up(self._folder, Path(path), force=force, keys_only=keys_only)

    # Control commands

    def pause(self) -> Receipt:
        """Stop fetching until `resume`; visits in progress are finished.

        >>> news.pause().waiting
        1
        """
        return self._view().submit(Pause())

    def resume(self) -> Receipt:
        """Continue after `pause`.

        >>> news.resume().crawling
        False
        """
        return self._view().submit(Resume())

    def set_budget(self, per_hour: int | None) -> Receipt:
        """Set the fetches per hour from now on. 0: no limit; None: as in the settings.

        >>> news.set_budget(None).number > 0
        True
        """
        if per_hour is not None and not 0 <= per_hour <= 10**9:
            raise UsageError(f"per_hour must be from 0 (no limit) to 1,000,000,000, not {per_hour}")
        return self._view().submit(ChangeBudget(per_hour))

    def drop_site(self, site: str) -> Receipt:
        """Stop visiting a site (host, and port if it has one). Its stored pages stay.

        >>> news.drop_site("nowhere.example")
        Traceback (most recent call last):
        levada.core.errors.NotFound: no site nowhere.example is known
        """
        if self._reader().store.site(site.lower()) is None:
            raise NotFound(f"no site {site[:200]} is known")
        return self._view().submit(DropSite(site.lower()))


async def _next(events: AsyncGenerator[T, None]) -> T | None:
    return await anext(events, None)


@contextmanager
def _stopped_by_signal(work: Crawl) -> Iterator[None]:
    """Let Ctrl-C stop the crawl cleanly. Only the main thread may handle signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, loop = signal.getsignal(signal.SIGINT), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, work.stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
