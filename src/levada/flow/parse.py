"""The parse step: an answer in, what is on the page out.

Bytes that we hold already are not read again. A page that kills its parser is remembered by the settling step.
"""

from __future__ import annotations

import msgspec

from levada.errors import ParserDied
from levada.flow.fetch import Fetched
from levada.pages.change import answer_mark
from levada.ports import Parser
from levada.reasons import Reason
from levada.records import ParsedPage, RawPage, Response

__all__ = ["ParseStep", "Visited"]


class Visited(msgspec.Struct, frozen=True):
    """A visit before anything was decided: the answer, and what was on it if it had to be read."""

    fetched: Fetched
    body_digest: bytes | None = None
    parsed: ParsedPage | None = None
    killed_parser: Reason | None = None


class ParseStep:
    def __init__(self, parser: Parser) -> None:
        self._parser = parser

    async def __call__(self, fetched: Fetched) -> Visited:
        response = fetched.response
        if response is None or not _has_content(response):
            return Visited(fetched)
        page = fetched.lease.page
        digest = answer_mark(response.body)
        if digest == page.body_digest:
            return Visited(fetched, digest)
        raw = RawPage(page.url, response.body, response.header("content-type") or "", page.kind, page.text_digest)
        try:
            parsed = await self._parser.parse(raw)
            if parsed.noindex != (page.reason is Reason.NOINDEX) and page.version and not parsed.content_zstd:
                # The same text, but from now on it may (or may not) be found: that is stored as a version.
                parsed = await self._parser.parse(msgspec.structs.replace(raw, known_text=None))
        except ParserDied as death:
            return Visited(fetched, digest, killed_parser=Reason(death.cause))
        return Visited(fetched, digest, parsed)


def _has_content(response: Response) -> bool:
    return response.reason is None and 200 <= response.status < 300
