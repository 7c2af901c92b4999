"""The parse step: an answer in, what is on the page out.

Bytes that we hold already are not read again, unless the answer may ask something else about being found. A page
that kills its parser is remembered by the settling step.
"""

from __future__ import annotations

import msgspec

from levada.errors import ParserDied
from levada.flow.fetch import Fetched
from levada.pages.change import answer_mark, asked_for_noindex
from levada.pages.robots import header_directives
from levada.ports import Parser
from levada.reasons import Reason
from levada.records import PageKind, ParsedPage, RawPage, Response

__all__ = ["ParseStep", "Visited"]


class Visited(msgspec.Struct, frozen=True):
    """A visit before anything was decided: the answer, and what was on it if it had to be read."""

    fetched: Fetched
    body_digest: bytes | None = None
    parsed: ParsedPage | None = None
    killed_parser: Reason | None = None


class ParseStep:
    """`agent` is who is meant by what answers ask of somebody."""

    def __init__(self, parser: Parser, agent: str) -> None:
        self._parser = parser
        self._agent = agent

    async def __call__(self, fetched: Fetched) -> Visited:
        response = fetched.response
        if response is None or not _has_content(response):
            return Visited(fetched)
        page = fetched.lease.page
        digest = answer_mark(response.body)
        # X-Robots-Tag says for any file what a page says in its robots meta.
        asked = header_directives(response.headers, self._agent)
        noindex = not asked.isdisjoint(("noindex", "none"))
        may_ask_anew = page.kind is PageKind.PAGE and noindex != asked_for_noindex(page.text_digest)
        if digest == page.body_digest and not may_ask_anew:
            return Visited(fetched, digest)
        kind = response.header("content-type") or ""
        raw = RawPage(page.url, response.body, kind, page.kind, page.text_digest, noindex)
        try:
            parsed = await self._parser.parse(raw)
        except ParserDied as death:
            return Visited(fetched, digest, killed_parser=Reason(death.cause))
        if not asked.isdisjoint(("noindex", "nofollow", "none")):
            nofollow = parsed.nofollow or not asked.isdisjoint(("nofollow", "none"))
            parsed = msgspec.structs.replace(parsed, noindex=parsed.noindex or noindex, nofollow=nofollow)
        return Visited(fetched, digest, parsed)


def _has_content(response: Response) -> bool:
    return response.reason is None and 200 <= response.status < 300
