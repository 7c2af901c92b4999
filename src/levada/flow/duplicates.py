"""Is this new page only a copy of one that we hold?

Exact copies are told by the digest of the main text, per site; runs of near copies (calendars, session ids,
filters) by their sketches under one URL pattern. Both memories are bounded and live as long as the process:
forgetting costs a stored copy, never a page.
"""

from __future__ import annotations

from collections import OrderedDict

from levada.flow.settings import CrawlSettings
from levada.pages.change import text_part
from levada.pages.traps import NearDuplicateRun, TrapLimits
from levada.records import PageRecord, ParsedPage

__all__ = ["DuplicateBook"]

_FEW_WORDS = 20  # pages with fewer words are alike by nature


class DuplicateBook:
    def __init__(self, settings: CrawlSettings, most_kept: int = 200_000) -> None:
        self._most_kept = most_kept
        self._holders: OrderedDict[tuple[str, bytes], str] = OrderedDict()
        self._runs = NearDuplicateRun(TrapLimits(run=settings.near_duplicate_run))

    def holder(self, page: PageRecord, parsed: ParsedPage) -> str | None:
        """Another page of the site that is stored with just this text."""
        if page.version or parsed.words < _FEW_WORDS:
            return None
        holder = self._holders.get((page.site, text_part(parsed.text_digest)))
        return holder if holder != page.url else None

    def hold(self, page: PageRecord, parsed: ParsedPage) -> None:
        """This page is stored with this text, and can be found: from now on others are copies of it."""
        if parsed.words < _FEW_WORDS:
            return
        self._holders.setdefault((page.site, text_part(parsed.text_digest)), page.url)
        if len(self._holders) > self._most_kept:
            self._holders.popitem(last=False)

    def forget(self, page: PageRecord) -> None:
        """A page no longer has the text that it had: another may hold it now."""
        key = (page.site, text_part(page.text_digest))
        if self._holders.get(key) == page.url:
            del self._holders[key]

    def in_run(self, page: PageRecord, parsed: ParsedPage) -> bool:
        """Whether a new page continues a run of near copies that has gone on long enough."""
        if page.version or not parsed.sketch:
            return False
        return self._runs.see(page.url, parsed.sketch) is not None
