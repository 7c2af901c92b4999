"""Visits brought forward: signals of servers, change hints of sitemaps and feeds, and replanning.

The policy decides how far a source is trusted; the store only ever brings a visit forward.

Replanning: a visit is planned at the current price. When the price falls (a larger budget, the end of the first
pass, pages that are gone), the planned visits are too late, and fetches would be left over until every page was
visited once more. Then all pages are planned again, in small slices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf

import msgspec

from levada.core.protocols import ChangeHints, Clock, PageSample, RevisitPolicy
from levada.core.records import ChangeHint, PageKind, PageRecord, ParsedPage, Response, Signals
from levada.crawl.executor import StoreExecutor

_SIGNAL_SOURCE = {PageKind.SITEMAP: Signals.SITEMAP, PageKind.FEED: Signals.FEED}
_ON_TIME = 0.9  # of the planned interval
_CLOCKS_DIFFER = 3600.0  # seconds: a date further ahead than this is false
_CHEAPER = 0.8  # share of the price at the last pass that makes another worth it
_WORTH_WRITING = 0.95  # share of the time left: a smaller gain is not worth the write
_SLICE = 500  # pages at a time: commits of visits go in between


def signals_of(page: PageRecord, response: Response, at: float) -> Signals:
    """The hints before this visit and the signals of its answer, to be compared with the outcome."""
    signals = page.told
    if signals and page.interval and page.history and at < page.history[-1].at + _ON_TIME * page.interval:
        signals |= Signals.EARLY
    if response.status == 304:
        return signals | Signals.NOT_MODIFIED
    modified = response.header("last-modified")
    # A 304 was due by the tag, or by the date if there is none (RFC 9110, 13.2.2).
    held, sent = (page.etag, response.header("etag")) if page.etag else (page.last_modified, modified)
    if held and sent == held:
        signals |= Signals.SAME_TAG
    if modified:
        signals |= Signals.DATED
        if page.last_modified and modified != page.last_modified:
            signals |= Signals.DATE_MOVED
    return signals


def hints_of(parsed: ParsedPage, now: float, tidied: Callable[[str], str] = lambda url: url) -> tuple[ChangeHint, ...]:
    """The dates that a sitemap or a feed states for its pages."""
    source = _SIGNAL_SOURCE.get(parsed.kind)
    if source is None:
        return ()
    return tuple(
        ChangeHint(tidied(link.url), link.lastmod, source)
        for link in parsed.marked
        if link.lastmod is not None and 0.0 < link.lastmod <= now + _CLOCKS_DIFFER
    )


class ChangeHintStep(msgspec.Struct, frozen=True):
    """Brings the visits of pages forward that a sitemap or feed says changed."""

    hints: ChangeHints
    policy: RevisitPolicy
    executor: StoreExecutor
    floor: Callable[[PageRecord], float] = lambda page: 0.0  # seconds between two visits of a page, by its rule

    async def __call__(self, hints: Sequence[ChangeHint]) -> int:
        """Take the hints; returns how many of the pages are stored in an older version."""
        outdated = 0
        for start in range(0, len(hints), _SLICE):
            part = hints[start : start + _SLICE]
            signals = {hint.url: hint.said for hint in part}
            pages = await self.executor.run(self.hints.outdated, part)
            sooner = [(page, signals[page.url], self._when(page, page.told | signals[page.url])) for page in pages]
            if sooner:
                await self.executor.run(self.hints.bring_forward, sooner)
            outdated += len(sooner)
        return outdated

    def _when(self, page: PageRecord, said: Signals) -> float | None:
        wanted = self.policy.visit_after_hint(page, said)
        return wanted if wanted is None else max(wanted, earliest_visit(page, self.floor))


def earliest_visit(page: PageRecord, floor: Callable[[PageRecord], float]) -> float:
    """When the floor of its rule lets a page be visited again."""
    return page.history[-1].at + floor(page) if page.history and floor(page) else 0.0


@dataclass
class ReplanningStep:
    """Replans all pages when the price has fallen, with a `pause` in seconds between two slices.

    The sample may be of a store with a thread of its own (`reading`).
    """

    page_sample: PageSample
    hints: ChangeHints
    policy: RevisitPolicy
    executor: StoreExecutor
    clock: Clock
    pause: float
    floor: Callable[[PageRecord], float] = lambda page: 0.0
    reading: StoreExecutor | None = None

    async def run(self) -> None:
        """Replan until cancelled, if the policy has a price.

        The first pass comes at once, because the price at which pages were planned is not stored.
        """
        then = inf
        while price := self.policy.price():
            if price < _CHEAPER * then:
                await self.everything()
                then = 0.0
            then = max(then, price)  # one that rose may fall again
            await self.clock.sleep(10 * self.pause)

    async def everything(self) -> int:
        """Replan all pages; returns how many visits were brought forward."""
        pages = self.page_sample.sample(1)
        moved = 0
        reading = self.reading or self.executor
        while part := await reading.run(lambda: list(islice(pages, _SLICE))):
            sooner = [each for page in part if (each := self._sooner(page)) is not None]
            if sooner:
                await self.executor.run(self.hints.bring_forward, sooner)
            moved += len(sooner)
            await self.clock.sleep(self.pause)
        return moved

    def _sooner(self, page: PageRecord) -> tuple[PageRecord, Signals, float] | None:
        wanted = self.policy.visit_after_hint(page, page.told)
        if wanted is None or page.next_visit is None or page.failures:
            return None
        wanted = max(wanted, earliest_visit(page, self.floor))
        left = page.next_visit - self.clock.now()
        if left <= 0 or wanted - self.clock.now() > _WORTH_WRITING * left:
            return None
        return page, Signals.NOTHING, wanted
