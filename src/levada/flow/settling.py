"""What does this visit mean? Pure: an answer in, everything to commit out.

The order of judgement is the specification's: a 304 settles "unchanged" and is compared with nothing; then the
digest of the bytes; then the digest of the main text, which decides. Only a 404 or 410 makes a page "gone": a site
that is down for a day, or a sitemap that fails, takes nothing out of the collection.
"""

from __future__ import annotations

from msgspec.structs import replace

from levada.errors import BadUrl
from levada.flow.duplicates import DuplicateBook
from levada.flow.parse import Visited
from levada.flow.retry import doubling, http_date, retry_after
from levada.flow.saying import notices_of, said_of
from levada.flow.settings import RevisitSettings, Settings
from levada.flow.sieve import LinkSieve
from levada.flow.stand_ins import StandIns
from levada.pages.change import is_noindex, judge, shows_the_same
from levada.pages.urls import canonical
from levada.ports import RevisitPolicy
from levada.reasons import Reason
from levada.records import (
    How,
    Lease,
    Link,
    NewVersion,
    Outcome,
    PageKind,
    PageRecord,
    PageState,
    ParsedPage,
    Plan,
    Refusal,
    Response,
    Settled,
    Visit,
)

__all__ = ["PASSING", "Settler", "longest_pause"]

_REDIRECTS = (301, 302, 303, 307, 308)
# Trouble that may pass by itself; every other reason stays as it is until the page or the site changes.
PASSING = frozenset(
    {
        Reason.SECONDS,
        Reason.MIN_RATE,
        Reason.DNS,
        Reason.CONNECT,
        Reason.TLS,
        Reason.PROTOCOL,
        Reason.HTTP_5XX,
        Reason.RETRY_AFTER,
        Reason.ROBOTS_UNREACHABLE,
        Reason.PARSER_DIED,
        Reason.PARSE_SECONDS,
        Reason.PARSE_MEMORY,
        Reason.BUFFERED_BYTES,
        Reason.INTERNAL,
    }
)

_KILLS = frozenset({Reason.PARSER_DIED, Reason.PARSE_SECONDS, Reason.PARSE_MEMORY})
_OUT_OF_SEARCH = frozenset({PageState.GONE, PageState.ELSEWHERE})
_MAY_STAND_FOR_OTHERS = frozenset({PageState.NEW, PageState.LIVE})
_SOONEST = 1.0  # seconds between two visits of a page


class Settler:
    def __init__(
        self, settings: Settings, policy: RevisitPolicy, sieve: LinkSieve, duplicates: DuplicateBook
    ) -> None:
        self._settings = settings
        self._policy = policy
        self._sieve = sieve
        self._duplicates = duplicates
        self.stand_ins = StandIns()

    def settle(self, visited: Visited, rival: PageRecord | None = None) -> Settled:
        """`rival` is what is known of the page that this one names canonical."""
        fetched = visited.fetched
        lease, at, response = fetched.lease, fetched.at, fetched.response
        if response is None:
            return self.trouble(lease, at, fetched.refused or Reason.ROBOTS)
        if response.reason is not None:
            return self.trouble(lease, at, response.reason)
        if response.status == 304:
            return self._not_modified(lease, at, response)
        if response.status in _REDIRECTS:
            return self._redirect(lease, at, response)
        if not 200 <= response.status < 300:
            return self._error_status(lease, at, response)
        if visited.killed_parser is not None:
            return self._killed_parser(lease, at, visited.killed_parser)
        return self._content(visited, lease, at, response, rival)

    # What stored nothing

    def trouble(self, lease: Lease, at: float, reason: Reason, wait: float = 0.0) -> Settled:
        """A failure that may pass, or a refusal that will stay for a while; what is stored stays stored."""
        page = lease.page
        failures = page.failures + 1
        revisit = self._settings.revisit
        if reason in PASSING:
            outcome = Outcome.FAILED
            pause = doubling(revisit.retry, failures - 1, longest_pause(page, revisit), page.url)
        else:
            outcome = Outcome.REFUSED
            pause = doubling(revisit.gone, failures - 1, revisit.ceiling, page.url)
        state = PageState.LIVE if page.version else PageState(outcome.name.lower())
        if page.state in _OUT_OF_SEARCH:  # and a failure brings nothing back
            state = page.state
        refused = () if outcome is Outcome.FAILED else (Refusal(page.url, page.site, reason),)
        return Settled(
            lease,
            Visit(at, outcome),
            state,
            page.interval,
            at + max(pause, wait),
            kind=page.kind,
            reason=reason,
            failures=failures,
            leads_to=page.leads_to,
            refused=refused,
        )

    def _error_status(self, lease: Lease, at: float, response: Response) -> Settled:
        if response.status in (404, 410):
            return self._gone(lease, at)
        wait = retry_after(response.header("retry-after"), at, self._settings.politeness.max_rest)
        if response.status == 429 or (response.status == 503 and wait is not None):
            return self.trouble(lease, at, Reason.RETRY_AFTER, wait or 0.0)
        reason = Reason.HTTP_5XX if response.status >= 500 else Reason.HTTP_4XX
        return self.trouble(lease, at, reason)

    def _gone(self, lease: Lease, at: float) -> Settled:
        page = lease.page
        self._duplicates.forget(page)
        failures = page.failures + 1
        pause = doubling(self._settings.revisit.gone, failures - 1, self._settings.revisit.ceiling, page.url)
        return Settled(
            lease,
            Visit(at, Outcome.GONE),
            PageState.GONE,
            None,
            at + pause,
            kind=page.kind,
            reason=Reason.GONE,
            failures=failures,
        )

    def _killed_parser(self, lease: Lease, at: float, how: Reason) -> Settled:
        page = lease.page
        if page.reason not in _KILLS:  # failures of another kind do not count
            page = replace(page, failures=0)
        if page.failures + 1 < self._settings.parse.kills:
            return self.trouble(replace(lease, page=page), at, how)
        return Settled(
            lease,
            Visit(at, Outcome.REFUSED),
            PageState.QUARANTINED,
            None,
            None,
            kind=page.kind,
            reason=Reason.QUARANTINED,
            failures=page.failures + 1,
            refused=(Refusal(page.url, page.site, Reason.QUARANTINED),),
        )

    # What leads elsewhere

    def _redirect(self, lease: Lease, at: float, response: Response) -> Settled:
        location = response.header("location")
        if not location:
            return self.trouble(lease, at, Reason.PROTOCOL)
        try:
            target = canonical(location, lease.page.url)
        except BadUrl:
            return self.trouble(lease, at, Reason.BAD_URL)
        if target == lease.page.url:
            return self.trouble(lease, at, Reason.REDIRECTS)
        if not target.startswith(("http://", "https://")):
            return self.trouble(lease, at, Reason.SCHEME)
        return self._elsewhere(lease, at, Reason.REDIRECTED, target, How.REDIRECT)

    def _elsewhere(self, lease: Lease, at: float, reason: Reason, target: str, named: How | None = None) -> Settled:
        """The content lives under another address; this one is looked at again, but holds nothing.

        `named`: how the answer names it, if it does.
        """
        page = lease.page
        self._duplicates.forget(page)
        found, refused = self._sieve.sift(page, (), [Link(target, named)] if named else [], at, nofollow=False)
        revisit = self._settings.revisit
        outcome = Outcome.FIRST if page.interval is None else Outcome.UNCHANGED
        interval = min(2 * page.interval if page.interval else revisit.first, revisit.ceiling)
        return Settled(
            lease,
            Visit(at, outcome),
            PageState.ELSEWHERE,
            interval,
            at + interval,
            kind=page.kind,
            reason=reason,
            leads_to=target,
            found=tuple(found),
            refused=tuple(refused),
        )

    # What has content

    def _not_modified(self, lease: Lease, at: float, response: Response) -> Settled:
        page = lease.page
        if page.body_digest is None:  # nothing was stored, and nothing was asked conditionally
            return self.trouble(lease, at, Reason.PROTOCOL)
        return self._unchanged(lease, at, response, page.body_digest, page.etag, page.last_modified)

    def _content(
        self, visited: Visited, lease: Lease, at: float, response: Response, rival: PageRecord | None
    ) -> Settled:
        parsed, page, digest = visited.parsed, lease.page, visited.body_digest
        assert digest is not None
        if parsed is None:
            etag, modified = response.header("etag"), response.header("last-modified")
            return self._unchanged(lease, at, response, digest, etag, modified)
        if parsed.reason is Reason.PARSE_MEMORY:
            return self._killed_parser(lease, at, parsed.reason)
        if parsed.reason is not None and not (parsed.links or parsed.marked):
            settled = self.trouble(lease, at, parsed.reason)
            return replace(settled, refused=(*settled.refused, *parsed.refused))
        if target := self._copy_of(page, parsed, at, rival):
            if not _is_live(rival):
                self.stand_ins.set_aside(page, target)
            return self._elsewhere(lease, at, Reason.DUPLICATE, target, How.CANONICAL)
        if parsed.kind is PageKind.PAGE and (holder := self._duplicates.holder(page, parsed)):
            return self._elsewhere(lease, at, Reason.DUPLICATE, holder)
        if parsed.kind is PageKind.PAGE and self._duplicates.in_run(page, parsed):
            return self.trouble(lease, at, Reason.NEAR_DUPLICATES)
        return self._read(lease, at, response, parsed, digest)

    def _copy_of(self, page: PageRecord, parsed: ParsedPage, at: float, rival: PageRecord | None) -> str | None:
        """The canonical address, if it is another one that we may hold and that does not lead away itself."""
        target = parsed.canonical
        if not target or page.how is How.CANONICAL or _without_scheme(target) == _without_scheme(page.url):
            return None
        if not _is_live(rival) and (page.version or page.leads_to == target or self.stand_ins.counts_on(page.url)):
            return None  # what is stored stays until the other is, and nobody waits twice, or for each other
        if rival is not None:  # one that leads back here, fails or is gone: then this page is kept
            return target if rival.state in _MAY_STAND_FOR_OTHERS else None
        return target if self._sieve.would_take(page, Link(target, How.CANONICAL), at) else None

    def _unchanged(
        self, lease: Lease, at: float, response: Response, digest: bytes, etag: str | None, modified: str | None
    ) -> Settled:
        page = lease.page
        visit = Visit(at, Outcome.UNCHANGED, said=said_of(page, response, at))
        plan = self._plan(page, visit, modified)
        return Settled(
            lease,
            visit,
            PageState.LIVE,
            plan.interval,
            at + plan.interval,
            memory=plan.memory,
            kind=page.kind,
            reason=Reason.NOINDEX if is_noindex(page.text_digest) else None,
            etag=etag,
            last_modified=modified,
            body_digest=digest,
            text_digest=page.text_digest,
        )

    def _read(self, lease: Lease, at: float, response: Response, parsed: ParsedPage, digest: bytes) -> Settled:
        page = lease.page
        outcome, similarity = judge(page, response.status, digest, parsed)
        found, refused = self._sieve.sift(page, parsed.links, parsed.marked, at, parsed.nofollow)
        if outcome is Outcome.CHANGED or parsed.noindex:
            self._duplicates.forget(page)
        if not parsed.noindex:
            self._duplicates.hold(page, parsed)
        visit = Visit(at, outcome, similarity, said_of(page, response, at))
        plan = self._plan(page, visit, response.header("last-modified"))
        is_new = outcome is not Outcome.UNCHANGED or not shows_the_same(parsed.text_digest, page.text_digest)
        return Settled(
            lease,
            visit,
            PageState.LIVE,
            plan.interval,
            at + plan.interval,
            memory=plan.memory,
            notices=notices_of(parsed, at),
            kind=parsed.kind,
            reason=Reason.NOINDEX if parsed.noindex else parsed.reason,
            etag=response.header("etag"),
            last_modified=response.header("last-modified"),
            body_digest=digest,
            text_digest=parsed.text_digest,
            version=_version(response, parsed, similarity) if is_new and parsed.content_zstd else None,
            found=tuple(found),
            refused=(*parsed.refused, *refused),
        )

    def _plan(self, page: PageRecord, visit: Visit, modified: str | None) -> Plan:
        """What the policy says, but finite and in the future whatever it says: nothing is due for ever."""
        plan = self._policy.plan(page, visit, http_date(modified))
        most = max(_SOONEST, self._settings.revisit.ceiling)
        return Plan(min(max(_SOONEST, plan.interval), most), plan.memory)  # in this order also for nan


def longest_pause(page: PageRecord, revisit: RevisitSettings) -> float:
    """Between two tries of a page that fails. What was never met is given up little by little: its tries are visits
    that others do without."""
    return revisit.max_retry if page.text_digest else revisit.ceiling


def _is_live(page: PageRecord | None) -> bool:
    return page is not None and page.state is PageState.LIVE


def _without_scheme(url: str) -> str:
    return url.partition("://")[2]


def _version(response: Response, parsed: ParsedPage, similarity: float) -> NewVersion:
    return NewVersion(
        title=parsed.title,
        language=parsed.language,
        charset=parsed.charset,
        status=response.status,
        headers=response.headers,
        content_zstd=parsed.content_zstd,
        sketch=parsed.sketch,
        words=parsed.words,
        distinct_words=parsed.distinct_words,
        similarity=similarity,
        searchable=not parsed.noindex,
    )
