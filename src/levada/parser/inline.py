"""Parser in the crawler's own process: the reference, for tests and trusted pages."""

from __future__ import annotations

from levada.core.records import ParsedPage, RawPage
from levada.pages.parse import ParseLimits, parse_page


class InlineParser:
    def __init__(self, limits: ParseLimits | None = None) -> None:
        self._limits = limits or ParseLimits()

    async def parse(self, page: RawPage) -> ParsedPage:
        return parse_page(page, self._limits)

    async def close(self) -> None:
        pass
