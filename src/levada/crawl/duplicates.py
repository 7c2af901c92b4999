"""Duplicates: which new pages of a batch have the text of a page that is stored, or nearly.

    new pages of a batch --texts, sites--> store --originals, near-duplicate runs--> what to commit instead

The store is the only memory, and it is asked when visits are committed. So a crawl that was restarted, or a second
worker, decides as one that never stopped. One batch is decided after another, and the copy of a page that is in the
same batch waits for the next one: then its original is stored, or not. Workers that commit at the same moment are
kept apart by the store (`VisitResult.is_original`).

Duplicates are those of one site: a page of another site may show the same text for good reasons, or to push the
original out. Of a page of which a rule selects or ignores parts, equal parts do not make a duplicate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from levada.core.protocols import Frontier
from levada.core.records import PageKind, PageText, VisitResult
from levada.core.settings import CrawlSettings
from levada.crawl.executor import StoreExecutor
from levada.crawl.outcome import OutcomeRules
from levada.pages.change import compares_part, is_noindex, shows_part, text_part
from levada.pages.urls import NearDuplicateRuns, TrapLimits

_FEW_WORDS = 20  # pages with fewer words are alike by nature


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
        self._limits = TrapLimits(run=settings.near_duplicate_run)

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
        reason = runs.observe(result.lease.page.url, version.sketch)
        decided = self._rules.in_near_run(result) if reason else result
        return replace(decided, near_runs=runs.packed())


def _is_new(result: VisitResult) -> bool:
    return result.version is not None and not result.lease.page.version and result.kind is PageKind.PAGE


def _hidden(result: VisitResult) -> bool:
    return is_noindex(result.text_digest)


def _compared_text(result: VisitResult) -> PageText | None:
    """The text by which a new page may be a copy of another."""
    if not _is_new(result) or result.version is None or result.version.words < _FEW_WORDS:
        return None
    if compares_part(result.text_digest):
        return None
    return PageText(result.lease.page.site, text_part(result.text_digest))
