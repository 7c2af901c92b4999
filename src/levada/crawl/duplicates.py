"""Duplicates: which new pages of a batch have the text of a page that is stored, or nearly.

    new pages of a batch --texts, sites--> store --originals, near-duplicate runs--> what to commit instead

The store is the only memory, and it is asked when visits are committed. So a crawl that was restarted, or a second
worker, decides as one that never stopped. One batch is decided after another, and the copy of a page that is in the
same batch waits for the next one: then its original is stored, or not. Workers that commit at the same moment are
kept apart by the store (`VisitResult.is_original`).

Where very many pages of a URL pattern have brought nothing new, hardly any more of them are fetched
(`pages_of_traps`). One that brings something proves the others worth a visit: then those that were left out are
visited after all. If that is lost with a process, they wait for their next turn.

Duplicates are those of one site: a page of another site may show the same text for good reasons, or to push the
original out. Of a page of which a rule selects or ignores parts, equal parts do not make a duplicate; nor do equal
main texts that are a few words of a large page, because the pages may differ in the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from zlib import crc32

from msgspec.structs import replace

from levada.core.protocols import Frontier
from levada.core.reasons import Reason
from levada.core.records import (
    DiscoveredBy,
    Lease,
    PageKind,
    PageRecord,
    PageText,
    PlanSelection,
    VisitResult,
)
from levada.core.settings import CrawlSettings
from levada.crawl.executor import StoreExecutor
from levada.crawl.outcome import OutcomeRules
from levada.pages.change import compares_part, is_noindex, shows_part, text_part
from levada.pages.urls import NearDuplicateRuns, TrapLimits, may_run_on, path_pattern

_FEW_WORDS = 20  # pages with fewer words are alike by nature
_PROBED = 16  # of as many pages of a trap one is fetched
_WALKED_AT_ONCE = 200


class DuplicateStep:
    """Turns the visits of duplicates into those that lead to their original, or are refused."""

    def __init__(
        self, frontier: Frontier, executor: StoreExecutor, rules: OutcomeRules, settings: CrawlSettings
    ) -> None:
        self._frontier = frontier
        self._executor = executor
        self._rules = rules
        self.settings_changed(settings)

    def settings_changed(self, settings: CrawlSettings) -> None:
        self._limits = trap_limits(settings)

    async def __call__(self, batch: Sequence[VisitResult]) -> tuple[list[VisitResult], list[VisitResult]]:
        """What to commit now, and what to decide again after that."""
        texts = [text for result in batch if (text := _compared_text(result))]
        sites = sorted({result.lease.page.site for result in batch if _is_new(result)})
        if not sites:
            return list(batch), []
        originals, runs = await self._executor.run(self._known, texts, sites)
        return self.decide(batch, originals, {site: runs.get(site, b"") for site in sites})

    def _known(self, texts: Sequence[PageText], sites: Sequence[str]) -> tuple[dict[PageText, str], dict[str, bytes]]:
        urls = zip(texts, self._frontier.originals(texts), strict=True)
        return {text: url for text, url in urls if url is not None}, self._frontier.near_runs(sites)

    def decide(
        self, batch: Sequence[VisitResult], originals: Mapping[PageText, str], near_runs: Mapping[str, bytes]
    ) -> tuple[list[VisitResult], list[VisitResult]]:
        """The same from what is stored: the page of each text, and the near-duplicate runs of each site."""
        ready, deferred = [], []
        runs = {site: NearDuplicateRuns(packed, self._limits) for site, packed in near_runs.items()}
        taken: set[PageText] = set()  # by pages of this batch
        for result in batch:
            page, text = result.lease.page, _compared_text(result)
            original = originals.get(text) if text else None
            if original is not None and original != page.url:
                ready.append(self._rules.copy_of(result, original))
            elif text in taken:
                deferred.append(result)
            elif _is_new(result):
                decided = self._after_near_runs(result, runs[page.site])
                if text is not None and decided is not None and decided.version is not None and not _hidden(decided):
                    taken.add(text)
                    decided = replace(decided, is_original=True)
                ready.append(decided)
            else:
                ready.append(result)
        return ready, deferred

    def _after_near_runs(self, result: VisitResult, runs: NearDuplicateRuns) -> VisitResult:
        version = result.version
        if version is None or not version.sketch or shows_part(result.text_digest):
            return result
        url = result.lease.page.url
        was_hopeless = runs.is_hopeless(url)
        reason = runs.observe(url, version.sketch, version.gist)
        decided = self._rules.in_near_run(result) if reason else result
        proves = path_pattern(url) if was_hopeless and not runs.is_hopeless(url) else ""
        return replace(decided, near_runs=runs.packed(), proves=proves)


def trap_limits(settings: CrawlSettings) -> TrapLimits:
    return TrapLimits(max_length=settings.max_url_length, max_depth=settings.max_depth, run=settings.near_duplicate_run)


def pages_of_traps(frontier: Frontier, leases: Sequence[Lease], settings: CrawlSettings) -> set[int]:
    """The ids of those leased pages that need no visit, because so many with such URLs have brought nothing new.

    A few are visited nevertheless, another few at their next turn: they tell whether that has changed. Which ones are
    left out depends on when they are leased.
    """
    doubtful = [lease.page for lease in leases if _may_be_of_trap(lease.page)]
    if not doubtful:
        return set()
    packed = frontier.near_runs(sorted({page.site for page in doubtful}))
    limits = trap_limits(settings)
    runs = {site: NearDuplicateRuns(each, limits) for site, each in packed.items()}
    return {page.id for page in doubtful if page.site in runs and runs[page.site].is_hopeless(page.url)}


def left_out(frontier: Frontier, site: str, pattern: str, now: float) -> Iterator[PageRecord]:
    """The pages of a URL pattern that were not fetched, because it was hopeless."""
    after = 0
    while pages := frontier.planned(PlanSelection(site, later_than=now, failing=True), after, _WALKED_AT_ONCE):
        after = pages[-1].id
        for page in pages:
            if page.reason is Reason.TRAP and path_pattern(page.url) == pattern:
                yield page


def _may_be_of_trap(page: PageRecord) -> bool:
    if page.version or page.kind is not PageKind.PAGE or page.how is DiscoveredBy.SEED or not may_run_on(page.url):
        return False
    is_probe = crc32(f"{page.visits} {page.url}".encode("utf-8", "replace")) % _PROBED == 0
    return not is_probe and (not page.visits or page.reason in (Reason.TRAP, Reason.NEAR_DUPLICATES))


def _is_new(result: VisitResult) -> bool:
    return result.version is not None and not result.lease.page.version and result.kind is PageKind.PAGE


def _hidden(result: VisitResult) -> bool:
    return is_noindex(result.text_digest)


def _compared_text(result: VisitResult) -> PageText | None:
    """The text by which a new page may be a copy of another."""
    if not _is_new(result) or result.version is None or result.version.words < _FEW_WORDS:
        return None
    if result.version.is_thin or compares_part(result.text_digest):
        return None
    return PageText(result.lease.page.site, text_part(result.text_digest))
