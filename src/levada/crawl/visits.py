"""Visits: a page is fetched and parsed, in the process of the crawl or by a worker elsewhere.

The request for a stored page is conditional, so that "unchanged" costs no body; now and then, and if a site has
answered 304 wrongly, the whole page is fetched. Bytes that are stored are not parsed again, unless the noindex of
the answer's headers differs, or the rule by which the site's pages are read: then the whole page is fetched.
"""

from __future__ import annotations

import logging

import msgspec

from levada.core.errors import LevadaError, ParserDied, StoreError
from levada.core.plugins import note_failure
from levada.core.protocols import Clock, Fetcher, Parser, RevisitPolicy
from levada.core.reasons import Reason
from levada.core.records import Lease, PageKind, PageRecord, ParsedPage, RawPage, Request, Response
from levada.core.site_rules.visit import NO_RULE, ReadingRule, RenderRule, RequestRule, VisitRule
from levada.pages.change import answer_mark, is_read_by, was_noindex
from levada.pages.robots import header_directives
from levada.pages.unsteady import changes_in_a_row

log = logging.getLogger(__name__)


class Fetched(msgspec.Struct, frozen=True):
    """A fetched page: the answer, or the reason why there was no request."""

    lease: Lease
    at: float
    response: Response | None = None
    refused: Reason | None = None


class Visited(msgspec.Struct, frozen=True):
    """A visit without an outcome yet: the answer, and its content if it had to be parsed."""

    fetched: Fetched
    body_digest: bytes | None = None
    parsed: ParsedPage | None = None
    killed_parser: Reason | None = None


async def parse_if_new(fetched: Fetched, parser: Parser, agent: str, rule: ReadingRule | None = None) -> Visited:
    """Parse an answer by the rule if its content is new; `agent` is whose robots directives count."""
    response = fetched.response
    if response is None or response.reason is not None or not 200 <= response.status < 300:
        return Visited(fetched)
    page = fetched.lease.page
    digest = answer_mark(response.body)
    # X-Robots-Tag says for any file what the robots meta says for a page.
    asked = header_directives(response.headers, agent)
    noindex = not asked.isdisjoint(("noindex", "none"))
    may_ask_anew = page.kind is PageKind.PAGE and (
        noindex != was_noindex(page.text_digest) or not is_read_by(page.text_digest, rule)
    )
    if digest == page.body_digest and not may_ask_anew:
        return Visited(fetched, digest)
    kind = response.header("content-type") or ""
    changes = changes_in_a_row(page.history, fetched.at)
    raw = RawPage(page.url, response.body, kind, page.kind, page.text_digest, noindex, rule, changes)
    try:
        parsed = await parser.parse(raw)
    except ParserDied as death:
        return Visited(fetched, digest, killed_parser=Reason(death.cause))
    for failure in parsed.plugin_failures:
        note_failure(failure.group, failure.name, failure.said)
    if not asked.isdisjoint(("noindex", "nofollow", "none")):
        nofollow = parsed.nofollow or not asked.isdisjoint(("nofollow", "none"))
        parsed = msgspec.structs.replace(parsed, noindex=parsed.noindex or noindex, nofollow=nofollow)
    return Visited(fetched, digest, parsed)


class Visitor:
    """Fetches and parses pages.

    An error that one page causes is logged and becomes the outcome of its visit. An error of the store or of the
    whole parser is raised.
    """

    def __init__(self, fetcher: Fetcher, parser: Parser, policy: RevisitPolicy, clock: Clock, agent: str) -> None:
        self._fetcher = fetcher
        self._parser = parser
        self.agent = agent
        self._policy = policy
        self._clock = clock

    async def fetch(self, lease: Lease, rule: VisitRule = NO_RULE) -> Fetched:
        """Fetch the page by its rule, conditionally if it is stored."""
        page = lease.page
        try:
            conditions = _conditions(page, rule.reading)
            if conditions and self._policy.wants_full_fetch(page):
                conditions = ()
            render = rule.render if page.kind is PageKind.PAGE else None
            response = await self._fetcher.fetch(request_for(page.url, rule.request, conditions, render=render))
            return Fetched(lease, self._clock.now(), response)
        except StoreError:
            raise
        except Exception:
            log.exception("fetching %s", page.url)
            return Fetched(lease, self._clock.now(), refused=Reason.INTERNAL)

    async def read(self, fetched: Fetched, rule: VisitRule = NO_RULE) -> Visited:
        """Parse the answer by the rule of the page if its content is new."""
        try:
            return await parse_if_new(fetched, self._parser, self.agent, rule.reading)
        except LevadaError:
            raise
        except Exception:
            log.exception("reading %s", fetched.lease.page.url)
            return Visited(Fetched(fetched.lease, fetched.at, refused=Reason.INTERNAL))


def request_for(
    url: str,
    rule: RequestRule | None,
    headers: tuple[tuple[str, str], ...] = (),
    keep_bytes: int | None = None,
    *,
    render: RenderRule | None = None,
) -> Request:
    """The request for a URL by its rules."""
    if rule is None:
        return Request(url, headers, keep_bytes, render=render)
    return Request(url, (*rule.headers, *headers), keep_bytes, rule=rule, render=render)


def _conditions(page: PageRecord, rule: ReadingRule | None) -> tuple[tuple[str, str], ...]:
    conditions = []
    is_read = page.kind is not PageKind.PAGE or is_read_by(page.text_digest, rule)
    if page.body_digest is not None and is_read:  # only for a stored page that is read as before
        if page.etag:
            conditions.append(("If-None-Match", page.etag))
        if page.last_modified:
            conditions.append(("If-Modified-Since", page.last_modified))
    return tuple(conditions)
