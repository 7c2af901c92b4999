"""Checks: pages visited now, whatever their plans say, and what the visits met.

If no crawl runs in the folder, a short one visits the pages. If one runs, in this process or another, it gets a control
command, visits them before all others, and its results are read from the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING

import msgspec

from levada.collection.addresses import dropped_words, out_of_scope_words, outside_hours, spellings
from levada.collection.commands import open_commands
from levada.collection.diff import diff_of
from levada.collection.events import CheckResult, PageEvent, PageOutcome, page_event
from levada.collection.starts import seeds, tidied
from levada.core.commands import EVERY_SITE, CheckNow, Pause, Resume
from levada.core.durations import relative
from levada.core.errors import NotFound, Refused, StoreLocked, UsageError
from levada.core.reasons import Reason
from levada.core.records import PageKind, PageRecord, PlanSelection, VisitResult
from levada.crawl.outcome import PASSING
from levada.pages.urls import site_of
from levada.store.reading import OpenedCollection

if TYPE_CHECKING:
    from levada.collection.collection import Collection
    from levada.collection.view import CollectionView

OnProgress = Callable[[int, int, str], None]
"""Called with how many pages are done, how many there are, and what is being done."""

_LOOK = 0.25  # seconds between two looks at what the crawl has done
_GONE_AFTER = 20  # looks without a sign of the crawl, after which it has ended
_MOST_OF_SITE = 1_000_000
_AT_ONCE = 500

_stepped: list[tuple[Path, int]] = []  # folders and threads; appending and removing are atomic


def no_progress(done: int, total: int, what: str) -> None:
    """Show nothing."""


@contextmanager
def stepped_crawl(path: Path) -> Iterator[None]:
    """Hold that a crawl in this folder goes on only while this thread waits for its next event."""
    stepped = path.absolute(), get_ident()
    _stepped.append(stepped)
    try:
        yield
    finally:
        _stepped.remove(stepped)


def _must_go_on(path: Path) -> None:
    """Raise if the crawl in this folder stands still while this thread does anything else."""
    if (path.absolute(), get_ident()) in _stepped:
        raise StoreLocked(
            f"the crawl in {path} waits for this thread to take its next event: check pages in another thread, or "
            "with check_later()"
        )


def check_command(reader: OpenedCollection, urls: Sequence[str], site: str, every: bool) -> CheckNow:
    """What a user wants checked; raises if it is nothing, or may not be visited."""
    if sum(map(bool, (urls, site, every))) != 1:
        raise UsageError("name either pages, or a site, or every page")
    _must_not_pause(reader)
    if every:
        return CheckNow(site=EVERY_SITE)
    if site:
        name = site.lower()
        if reader.store.site(name) is None:
            raise NotFound(f"no site {site[:200]} is known: 'levada crawl https://{site[:200]}' starts with it")
        must_be_askable(reader, f"https://{name}/")
        return CheckNow(site=name)
    addresses = tuple(dict.fromkeys(_address(reader, url) for url in urls))
    for address in addresses:
        must_be_askable(reader, address)
        page = reader.store.page(address)
        if page is not None and (words := out_of_scope_words(reader, page)):
            raise Refused(f"{address} {words}")
    return CheckNow(addresses)


def must_be_askable(reader: OpenedCollection, address: str) -> None:
    """Raise if the site is dropped or asked to be left alone, or if the crawl is paused.

    A backoff after failures is no obstacle: a page that a user wants is tried once, and an answer ends the backoff.
    """
    site, now = reader.store.site(site_of(address)), reader.clock.now()
    if site is not None and site.dropped:
        raise Refused(dropped_words(address))
    if words := outside_hours(reader, site_of(address)):
        raise Refused(words)
    if site is not None and site.rest_until > now and not site.failures:
        raise Refused(f"{site.site} asked to be left alone: asked again {relative(site.rest_until, now)}")
    _must_not_pause(reader)


def check_notes(reader: OpenedCollection, command: CheckNow) -> list[str]:
    """Sentences about sites that are tried although they rest."""
    names = [command.site] if command.site else sorted({site_of(url) for url in command.urls})
    now, notes = reader.clock.now(), []
    for name in names:
        site = reader.store.site(name)
        if name != EVERY_SITE and outside_hours(reader, name):
            continue
        if site is not None and now < site.rest_until and site.failures:
            again = relative(site.rest_until, now)
            notes.append(f"{name} rests after {site.failures} failures in a row, until {again}: tried once now")
    return notes


def _must_not_pause(reader: OpenedCollection) -> None:
    with closing(open_commands(reader.folder)) as commands:
        paused = commands.desired_state().paused
        for _, command in commands.pending():
            paused = isinstance(command, Pause) or (paused and not isinstance(command, Resume))
    if paused:
        raise Refused(f"the crawl in {reader.folder.path} is paused: resume it first")


def _address(reader: OpenedCollection, url: str) -> str:
    """The address at which the page is known, or would be."""
    known = next((page for each in spellings(url) if (page := reader.store.page(each))), None)
    return known.url if known else tidied(seeds([url]), reader.settings)[0].url


async def checked(
    collection: Collection, view: Callable[[], CollectionView], command: CheckNow, on_progress: OnProgress
) -> AsyncGenerator[CheckResult, None]:
    """The results, each as it comes. Of a site or of all pages, unchanged ones are only counted."""
    run = _Checking(collection, view, command, on_progress)
    while not run.is_done:
        async for result in run.by_own_crawl():
            yield result
        if not run.is_done:
            async for result in run.beside_a_crawl():
                yield result


class _Checking:
    def __init__(
        self,
        collection: Collection,
        view: Callable[[], CollectionView],
        command: CheckNow,
        on_progress: OnProgress,
    ) -> None:
        self.is_done = False
        self._collection = collection
        self._view = view
        self._site = "" if command.site == EVERY_SITE else command.site
        self._command = command
        self._show = on_progress
        self._left = dict.fromkeys(command.urls)

    async def by_own_crawl(self) -> AsyncGenerator[CheckResult, None]:
        """Visit what is left by a crawl of our own; nothing happens if a crawl runs already."""
        only = self._own_pages()
        total = len(only) if only is not None else self._reader().store.count_planned(PlanSelection(), self._now())
        if only is None:
            self._submit()
        met: asyncio.Queue[VisitResult | None] = asyncio.Queue()

        def committed(visits: Sequence[VisitResult]) -> None:
            for each in visits:
                met.put_nowait(each)

        start = seeds([url for url in self._left if self._reader().store.page(url) is None]) if self._left else []
        crawling = self._collection.crawling(start, once=only is None, only=only, on_committed=committed)
        try:
            work = await crawling.__aenter__()
        except StoreLocked:
            _must_go_on(self._view().folder.path)
            return
        self.is_done = True
        wanted, done = set(only or ()), 0
        try:
            run = asyncio.ensure_future(work.run())
            run.add_done_callback(lambda _: met.put_nowait(None))
            try:
                while (result := await met.get()) is not None:
                    url = result.lease.page.url
                    if wanted and url not in wanted:
                        continue
                    done += 1
                    self._left.pop(url, None)
                    self._show(done, max(done, total), "visiting")
                    event = page_event(result)
                    if self._command.urls or _is_news(event, result.lease.page.reason):
                        yield self._result(event)
            finally:
                work.stop()
                report = await run
        finally:
            await crawling.__aexit__(None, None, None)
        for url in self._left:
            must_be_askable(self._reader(), url)
            if report.stopped == "offline":
                raise Refused(f"{url} was not visited: nothing answers, the network seems to be down")
            raise StoreLocked(f"{url} is being visited by another process, or its site just was: try again")

    async def beside_a_crawl(self) -> AsyncGenerator[CheckResult, None]:
        """Have the running crawl visit what is left; ends early if that crawl ends."""
        before = {url: self._visits(url) for url in self._left}
        at, places = self._now(), self._collection.feed().newest()
        selection = PlanSelection(self._site)
        total = len(self._left) or self._reader().store.count_planned(selection, at)
        number = self._submit()
        absent = 0
        told: set[str] = set()
        while absent < _GONE_AFTER:
            live = self._collection.live()
            absent = 0 if live is not None else absent + 1
            if self._command.urls:
                for url in [url for url in self._left if self._visits(url) > before[url]]:
                    del self._left[url]
                    event = self._met(url)
                    is_stored = event.outcome in (PageOutcome.NEW, PageOutcome.CHANGED)
                    is_told = not is_stored or url in self._changes(places)
                    yield self._result(msgspec.structs.replace(event, told=is_told))
                done = total - len(self._left)
                self.is_done = not self._left
            else:
                for change in self._changes(places):
                    if change not in told:
                        told.add(change)
                        yield self._result(self._met(change))
                waiting = self._reader().store.count_planned(PlanSelection(self._site, until=at), self._now())
                done = max(0, total - waiting)
                self.is_done = not waiting and not self._is_pending(number)
            offline = live is not None and live.offline is not None
            self._show(done, total, "the network seems to be down" if offline else "the crawl visits them first")
            if self.is_done:
                break
            await asyncio.sleep(_LOOK)
        if self.is_done and not self._command.urls:
            for url in self._failing(at):
                event = self._met(url)
                if url not in told and event.outcome is PageOutcome.FAILED:
                    yield self._result(event)

    def _own_pages(self) -> list[str] | None:
        """The pages to visit; None: all that are due, which all are by then."""
        if self._command.urls:
            return list(self._left)
        if not self._site:
            return None
        store, site = self._reader().store, self._site
        return [url for way in ("https", "http") for url in store.urls_like(f"{way}://{site}/", _MOST_OF_SITE)]

    def _submit(self) -> int:
        command = self._command
        if self._left:
            command = msgspec.structs.replace(command, urls=tuple(self._left))
        return self._view().submit(command).number

    def _is_pending(self, number: int) -> bool:
        with closing(open_commands(self._reader().folder)) as commands:
            return any(each <= number for each, _ in commands.pending())

    def _changes(self, places: tuple[int, ...]) -> Iterable[str]:
        """The pages that changed since then; the log is short, for only this crawl has written to it."""
        place, more = places, True
        while more:
            page = self._collection.feed().read(place, _AT_ONCE)
            place, more = page.after, page.more
            yield from (change.url for _, change in page.changes if self._site in ("", change.site))

    def _failing(self, at: float) -> Iterable[str]:
        """The pages whose visits after `at` stored nothing."""
        selection, after = PlanSelection(self._site, later_than=at, failing=True), 0
        while pages := self._reader().store.planned(selection, after, _AT_ONCE):
            after = pages[-1].id
            yield from (page.url for page in pages if page.kind is PageKind.PAGE)

    def _reader(self) -> OpenedCollection:
        return self._view().collection()

    def _now(self) -> float:
        return self._reader().clock.now()

    def _visits(self, url: str) -> int:
        page = self._reader().store.page(url)
        return page.visits if page is not None else 0

    def _met(self, url: str) -> PageEvent:
        store = self._reader().store
        page = store.page(url)
        if page is None:
            raise NotFound(f"{url} was deleted meanwhile")
        return _event_of(page, next((each.title for each in store.versions(url)), ""))

    def _result(self, event: PageEvent) -> CheckResult:
        reader, changed = self._reader(), event.outcome is PageOutcome.CHANGED
        page = reader.store.page(event.url)
        diff = diff_of(reader.store, page) if changed and page is not None else None
        return CheckResult(event.url, event.outcome, event.reason, changed, diff, event)


def _is_news(event: PageEvent, before: Reason | None) -> bool:
    """Whether the page is not as it was, or could not be visited. A sitemap or a feed is no page that anybody reads."""
    if event.kind is not PageKind.PAGE:
        return False
    return event.outcome in (PageOutcome.NEW, PageOutcome.CHANGED, PageOutcome.FAILED) or event.reason is not before


def _event_of(page: PageRecord, title: str) -> PageEvent:
    """The last visit of a page, as far as its record tells. The number of links is not kept."""
    last = page.history[-1] if page.history else None
    at = last.at if last is not None else page.found_at  # of a visit that failed, the time is not kept
    outcome = _outcome_of(page)
    compared = outcome in (PageOutcome.NEW, PageOutcome.CHANGED, PageOutcome.UNCHANGED)
    return PageEvent(
        url=page.url,
        outcome=outcome,
        at=at,
        reason=page.reason,
        title=title if outcome in (PageOutcome.NEW, PageOutcome.CHANGED) else "",
        similarity=last.similarity if compared and last is not None else 1.0,
        kind=page.kind,
        leads_to=page.leads_to,
        next_visit=page.next_visit,
    )


def _outcome_of(page: PageRecord) -> PageOutcome:
    """What the last visit of a page met; its record shows that."""
    reason = page.reason
    if reason in (Reason.REDIRECTED, Reason.DUPLICATE):
        return PageOutcome.MOVED
    if reason is Reason.GONE:
        return PageOutcome.GONE
    if page.failures:
        return PageOutcome.FAILED if reason in PASSING else PageOutcome.REFUSED
    last = page.history[-1].outcome if page.history else None
    known = {0: PageOutcome.NEW, 1: PageOutcome.UNCHANGED, 2: PageOutcome.CHANGED}
    return known.get(int(last), PageOutcome.UNCHANGED) if last is not None else PageOutcome.UNCHANGED
