"""Outcome rules: a response in, a visit result out, without I/O.

The evidence is in the order of the specification (`levada.pages.change`): a 304, the bytes, the main text. Only a
404 or 410 makes a page "gone": a site that is down for a day, or a sitemap that fails, removes nothing.

What is known of other pages is an argument. Whether a page is a duplicate of one that is stored is decided when its
visit is committed (`levada.crawl.duplicates`). The memory of pages that were set aside for their canonical page is
bounded and lasts as long as the process: a forgotten one waits for its next visit, and none is lost.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec
from msgspec.structs import replace

from levada.core.errors import BadUrl
from levada.core.protocols import RevisitPolicy
from levada.core.reasons import Reason
from levada.core.records import (
    DiscoveredBy,
    Lease,
    Link,
    NewVersion,
    Outcome,
    PageRecord,
    PageState,
    ParsedPage,
    Refusal,
    Response,
    Visit,
    VisitResult,
)
from levada.core.settings import RevisitSettings, Settings
from levada.core.site_rules.pace import own_floor, revisit_of
from levada.crawl.change_hints import hints_of, signals_of
from levada.crawl.link_filter import LinkFilter
from levada.crawl.sites import SITE_TROUBLE, doubling, http_date, retry_after
from levada.crawl.visits import Visited
from levada.pages.change import is_noindex, judge, shows_the_same, with_mark_pending
from levada.pages.compression import with_picture
from levada.pages.urls import canonical

MOST_LINKS = 2_000
"""As many links of a page are judged and stored at once: of a page with more, the others in parts."""


class _Aside(msgspec.Struct):
    page: PageRecord  # as it is after the visit that set it aside
    target: str
    is_committed: bool = False
    in_vain: bool = False  # the target has no content


class CanonicalTracker:
    """Keeps the pages that were set aside for the page they name canonical, until that one is stored.

    A page that names another one is set aside as soon as the other may be stored; mostly that one has yet to be
    visited. If it leads back, fails, is gone or is refused, the pages that were set aside for it are rechecked.
    """

    def __init__(self, most_kept: int = 20_000) -> None:
        self._most_kept = most_kept
        self._aside: OrderedDict[int, _Aside] = OrderedDict()  # by page
        self._targets: dict[str, set[int]] = {}  # the pages that wait for this one

    def set_aside(self, page: PageRecord, target: str) -> None:
        """Set `page`, as it was before this visit, aside for `target`, which is not stored yet."""
        self._forget(page.id)
        if len(self._aside) >= self._most_kept:
            self._forget(next(iter(self._aside)))
        self._aside[page.id] = _Aside(msgspec.structs.replace(page, visits=page.visits + 1), target)
        self._targets.setdefault(target, set()).add(page.id)

    def counts_on(self, url: str) -> bool:
        """Whether other pages were set aside for this one."""
        return url in self._targets

    def after(self, result: VisitResult) -> list[PageRecord]:
        """The pages to recheck after this commit: set aside in vain, and their own visits are committed."""
        page = result.lease.page
        rechecks = []
        own = self._aside.get(page.id)
        if own is not None and result.leads_to == own.target:
            own.is_committed = True
            if own.in_vain:
                rechecks.append(own.page)
                self._forget(page.id)
        elif own is not None:  # a later visit had another result
            self._forget(page.id)
        for id in self._targets.pop(page.url, ()):
            waiting = self._aside[id]
            waiting.in_vain = result.state is not PageState.LIVE
            if waiting.in_vain and waiting.is_committed:
                rechecks.append(waiting.page)
            if waiting.is_committed or not waiting.in_vain:
                del self._aside[id]
        return rechecks

    def _forget(self, id: int) -> None:
        aside = self._aside.pop(id, None)
        waiting = self._targets.get(aside.target) if aside is not None else None
        if aside is not None and waiting is not None:
            waiting.discard(id)
            if not waiting:
                del self._targets[aside.target]


_REDIRECTS = (301, 302, 303, 307, 308)
_KILLS = frozenset({Reason.PARSER_DIED, Reason.PARSE_SECONDS, Reason.PARSE_MEMORY})
# Reasons that may pass by themselves; every other one stays until the page or the site changes.
PASSING = (
    SITE_TROUBLE
    | _KILLS
    | {Reason.HTTP_5XX, Reason.RETRY_AFTER, Reason.BUFFERED_BYTES, Reason.PLUGIN, Reason.INTERNAL}
    | {Reason.BROWSER_MISSING, Reason.RENDER_TIMEOUT, Reason.RENDER_CRASH, Reason.RENDER_MEMORY}
)
_OUT_OF_SEARCH = frozenset({PageState.GONE, PageState.ELSEWHERE})
_MAY_STAND_FOR_OTHERS = frozenset({PageState.NEW, PageState.LIVE})
_OF_BYTES = (Reason.NO_MATCH, Reason.LINKS)  # the same bytes have no more of what is selected, and no fewer links
_SOONEST = 1.0  # seconds between two visits of a page


class OutcomeRules:
    """The pure rules that turn an answer into a visit result."""

    def __init__(self, settings: Settings, policy: RevisitPolicy, link_filter: LinkFilter) -> None:
        self._settings = settings
        self._policy = policy
        self._link_filter = link_filter
        self.canonicals = CanonicalTracker()

    def settings_changed(self, settings: Settings) -> None:
        """Decide by these from now on."""
        self._settings = settings

    def _revisit(self, page: PageRecord) -> RevisitSettings:
        """The revisit settings of a page, by the rule of its site."""
        rules, common = self._link_filter.rules, self._settings.revisit
        return revisit_of(rules.rule_for(page.url), common) if rules else common

    def own_floor(self, page: PageRecord) -> float:
        """The floor that the rule of its site sets for a page; 0 if none does."""
        return own_floor(self._link_filter.rules, page.url, self._settings.revisit)

    def _within(self, revisit: RevisitSettings, pause: float) -> float:
        """A pause of so many seconds, spread a little, that keeps to a ceiling of its own."""
        return pause if revisit is self._settings.revisit else min(pause, max(_SOONEST, revisit.ceiling))

    def decide(self, visited: Visited, rival: PageRecord | None = None) -> VisitResult:
        """The result of a visit; `rival` is what is known of the page that this one names canonical."""
        fetched = visited.fetched
        lease, at, response = fetched.lease, fetched.at, fetched.response
        if fetched.refused is Reason.RULE:
            return self._out_of_scope(lease, at)
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

    def copy_of(self, result: VisitResult, original: str) -> VisitResult:
        """What to commit instead, because another page is stored with the text of this one."""
        self._link_filter.withdraw(result.found)
        return self._elsewhere(result.lease, result.visit.at, Reason.DUPLICATE, original)

    def in_near_run(self, result: VisitResult) -> VisitResult:
        """What to commit instead, because the page continues a near-duplicate run beyond its limit."""
        self._link_filter.withdraw(result.found)
        return self.trouble(result.lease, result.visit.at, Reason.NEAR_DUPLICATES)

    # Visits that store nothing

    def trouble(self, lease: Lease, at: float, reason: Reason, wait: float = 0.0) -> VisitResult:
        """A failure that may pass, or a refusal; the stored version stays."""
        page = lease.page
        failures = page.failures + 1
        revisit = self._revisit(page)
        if reason in PASSING:
            outcome = Outcome.FAILED
            pause = doubling(revisit.retry, failures - 1, longest_pause(page, revisit), page.url)
            if (planned := _planned_anyway(page)) > at:
                pause = min(pause, planned - at)  # a visit before its time does not put the planned one off
        else:
            outcome = Outcome.REFUSED
            pause = doubling(revisit.gone, failures - 1, revisit.ceiling, page.url)
        pause = self._within(revisit, pause)
        state = PageState.LIVE if page.version else PageState(outcome.name.lower())
        if page.state in _OUT_OF_SEARCH:  # a failure does not bring it back
            state = page.state
        refused = () if outcome is Outcome.FAILED else (Refusal(page.url, page.site, reason),)
        return VisitResult(
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

    def _error_status(self, lease: Lease, at: float, response: Response) -> VisitResult:
        if response.status in (404, 410):
            return self._gone(lease, at)
        wait = retry_after(response.header("retry-after"), at, self._settings.politeness.max_backoff)
        if response.status == 429 or (response.status == 503 and wait is not None):
            return self.trouble(lease, at, Reason.RETRY_AFTER, wait or 0.0)
        reason = Reason.HTTP_5XX if response.status >= 500 else Reason.HTTP_4XX
        return self.trouble(lease, at, reason)

    def _gone(self, lease: Lease, at: float) -> VisitResult:
        page = lease.page
        failures = page.failures + 1
        revisit = self._revisit(page)
        pause = self._within(revisit, doubling(revisit.gone, failures - 1, revisit.ceiling, page.url))
        return VisitResult(
            lease,
            Visit(at, Outcome.GONE),
            PageState.GONE,
            None,
            at + pause,
            kind=page.kind,
            reason=Reason.GONE,
            failures=failures,
        )

    def _killed_parser(self, lease: Lease, at: float, how: Reason) -> VisitResult:
        page = lease.page
        if page.reason not in _KILLS:  # other failures do not count
            page = replace(page, failures=0)
        ruled = self._link_filter.rules.visit_rule(page.url).reading is not None  # then the rule may be what takes long
        if ruled or page.failures + 1 < self._settings.parse.max_kills:
            return self.trouble(replace(lease, page=page), at, how)
        return VisitResult(
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

    def _out_of_scope(self, lease: Lease, at: float) -> VisitResult:
        """A page that a rule keeps out now: it is not asked for, and its stored version stays.

        If only parameters of its address do not count any more, its content is at the address without them.
        """
        page, rules = lease.page, self._link_filter.rules
        target = rules.tidied(page.url)
        if target != page.url and not rules.kept_out(target, page.depth):
            return replace(
                self._elsewhere(lease, at, Reason.RULE, target, DiscoveredBy.REDIRECT),
                next_visit=at + self._settings.revisit.ceiling,
                failures=1,
            )
        result = self.trouble(lease, at, Reason.RULE)
        return replace(result, next_visit=at + self._settings.revisit.ceiling, failures=1, refused=())

    # Pages whose content is elsewhere

    def _redirect(self, lease: Lease, at: float, response: Response) -> VisitResult:
        location = response.header("location")
        if not location:
            return self.trouble(lease, at, Reason.PROTOCOL)
        try:
            target = self._link_filter.rules.tidied(canonical(location, lease.page.url))
        except BadUrl:
            return self.trouble(lease, at, Reason.BAD_URL)
        if target == lease.page.url:
            return self.trouble(lease, at, Reason.REDIRECTS)
        if not target.startswith(("http://", "https://")):
            return self.trouble(lease, at, Reason.SCHEME)
        return self._elsewhere(lease, at, Reason.REDIRECTED, target, DiscoveredBy.REDIRECT)

    def _elsewhere(
        self, lease: Lease, at: float, reason: Reason, target: str, named: DiscoveredBy | None = None
    ) -> VisitResult:
        """The content is at another URL. This one is visited again, but stores nothing.

        `named`: how the answer names the target, if it does.
        """
        page = lease.page
        found, refused = self._link_filter.select(page, (), [Link(target, named)] if named else [], nofollow=False)
        revisit = self._revisit(page)
        outcome = Outcome.FIRST if page.interval is None else Outcome.UNCHANGED
        interval = min(max(2 * page.interval if page.interval else revisit.first, revisit.floor), revisit.ceiling)
        return VisitResult(
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

    # Pages with content

    def _not_modified(self, lease: Lease, at: float, response: Response) -> VisitResult:
        page = lease.page
        if page.body_digest is None:  # nothing is stored, and the request had no conditions
            return self.trouble(lease, at, Reason.PROTOCOL)
        return self._unchanged(lease, at, response, page.body_digest, page.etag, page.last_modified)

    def _content(
        self, visited: Visited, lease: Lease, at: float, response: Response, rival: PageRecord | None
    ) -> VisitResult:
        parsed, page, digest = visited.parsed, lease.page, visited.body_digest
        assert digest is not None
        if parsed is None:
            etag, modified = _validators(response)
            return self._unchanged(lease, at, response, digest, etag, modified)
        if parsed.reason is Reason.PARSE_MEMORY:
            return self._killed_parser(lease, at, parsed.reason)
        if parsed.reason not in (None, Reason.NO_MATCH) and not (parsed.links or parsed.marked):
            result = self.trouble(lease, at, parsed.reason)
            return replace(result, refused=(*result.refused, *parsed.refused))
        if target := self._copy_of(page, parsed, at, rival):
            if not _is_live(rival):
                self.canonicals.set_aside(page, target)
            return self._elsewhere(lease, at, Reason.DUPLICATE, target, DiscoveredBy.CANONICAL)
        if parsed.reason is Reason.NO_MATCH:
            return self._unmatched(lease, at, response, parsed, digest)
        return self._read(lease, at, response, parsed, digest)

    def _copy_of(self, page: PageRecord, parsed: ParsedPage, at: float, rival: PageRecord | None) -> str | None:
        """The canonical URL, if it is another one that may be stored and does not lead elsewhere itself."""
        target = self._link_filter.rules.tidied(parsed.canonical) if parsed.canonical else None
        if not target or page.how is DiscoveredBy.CANONICAL or _without_scheme(target) == _without_scheme(page.url):
            return None
        if not _is_live(rival) and (page.version or page.leads_to == target or self.canonicals.counts_on(page.url)):
            return None  # a stored page stays until the other is stored; no page waits twice, or for one that waits
        if rival is not None:  # if it leads back here, fails or is gone, this page is kept
            return target if rival.state in _MAY_STAND_FOR_OTHERS else None
        return target if self._link_filter.accepts(page, Link(target, DiscoveredBy.CANONICAL)) else None

    def _unchanged(
        self, lease: Lease, at: float, response: Response, digest: bytes, etag: str | None, modified: str | None
    ) -> VisitResult:
        page = lease.page
        visit = Visit(at, Outcome.UNCHANGED, said=signals_of(page, response, at))
        result = self._planned(lease, visit, etag, modified, digest, _modified_at(response) or http_date(modified))
        reason = Reason.NOINDEX if is_noindex(page.text_digest) else None
        if page.reason in _OF_BYTES:
            reason = page.reason
        return replace(result, kind=page.kind, reason=reason, text_digest=page.text_digest)

    def _unmatched(self, lease: Lease, at: float, response: Response, parsed: ParsedPage, digest: bytes) -> VisitResult:
        """Nothing of what the rule selects is on the page: its links are followed, and the stored version stays."""
        page = lease.page
        found, refused = self._link_filter.select(page, parsed.links[:MOST_LINKS], parsed.marked, parsed.nofollow)
        outcome = Outcome.UNCHANGED if page.text_digest else Outcome.FIRST
        visit = Visit(at, outcome, 1.0 if page.text_digest else 0.0, signals_of(page, response, at))
        etag, modified = _validators(response)
        return replace(
            self._planned(lease, visit, etag, modified, digest, _modified_at(response) or parsed.published),
            kind=parsed.kind,
            reason=Reason.NO_MATCH,
            text_digest=with_mark_pending(page.text_digest, parsed.text_digest),
            found=tuple(found),
            more=parsed.links[MOST_LINKS:],
            nofollow=parsed.nofollow,
            refused=(*parsed.refused, *refused, Refusal(page.url, page.site, Reason.NO_MATCH)),
        )

    def _read(self, lease: Lease, at: float, response: Response, parsed: ParsedPage, digest: bytes) -> VisitResult:
        page = lease.page
        outcome, similarity = judge(page, response.status, digest, parsed)
        found, refused = self._link_filter.select(page, parsed.links[:MOST_LINKS], parsed.marked, parsed.nofollow)
        visit = Visit(at, outcome, similarity, signals_of(page, response, at))
        etag, modified = _validators(response)
        is_new = outcome is not Outcome.UNCHANGED or not shows_the_same(parsed.text_digest, page.text_digest)
        return replace(
            self._planned(lease, visit, etag, modified, digest, _modified_at(response) or parsed.published),
            hints=hints_of(parsed, at, self._link_filter.rules.tidied),
            kind=parsed.kind,
            reason=Reason.NOINDEX if parsed.noindex else parsed.reason,
            text_digest=parsed.text_digest,
            version=_version(response, parsed, similarity) if is_new and parsed.content_zstd else None,
            found=tuple(found),
            more=parsed.links[MOST_LINKS:],
            nofollow=parsed.nofollow,
            refused=(*parsed.refused, *refused),
            told=parsed.told,
        )

    def _planned(
        self,
        lease: Lease,
        visit: Visit,
        etag: str | None,
        modified: str | None,
        digest: bytes,
        dated: float | None,
    ) -> VisitResult:
        """A page with content and its next visit: the policy's, but always finite and in the future."""
        plan = self._policy.plan(lease.page, visit, dated)
        revisit = self._revisit(lease.page)
        least = max(_SOONEST, revisit.floor if revisit is not self._settings.revisit else 0.0)
        interval = min(max(least, plan.interval), max(_SOONEST, revisit.ceiling))  # in this order also for nan
        return VisitResult(
            lease,
            visit,
            PageState.LIVE,
            interval,
            visit.at + interval,
            memory=plan.memory,
            etag=etag,
            last_modified=modified,
            body_digest=digest,
        )


def _validators(response: Response) -> tuple[str | None, str | None]:
    """The ETag and Last-Modified for the next request.

    A Last-Modified within a second of the answer is none: it cannot tell an edit of the same second (RFC 9110,
    8.8.2.2), and the next request would be answered "not modified".
    """
    modified, answered = response.header("last-modified"), http_date(response.header("date"))
    changed = http_date(modified)
    if changed is not None and answered is not None and abs(answered - changed) < 1.0:
        modified = None
    return response.header("etag"), modified


def _modified_at(response: Response) -> float | None:
    return http_date(response.header("last-modified"))


def _planned_anyway(page: PageRecord) -> float:
    """When this page would be visited, had it not been brought forward; 0 if that is not known."""
    if not page.visits or page.next_visit is None:
        return 0.0
    if page.failures or not page.history or page.interval is None:
        return page.next_visit
    return max(page.next_visit, page.history[-1].at + page.interval)


def longest_pause(page: PageRecord, revisit: RevisitSettings) -> float:
    """The longest pause between two attempts for a page that fails.

    Attempts for a page that was never fetched become rare: they take visits from others.
    """
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
        content_zstd=with_picture(parsed.content_zstd, response.screenshot),
        sketch=parsed.sketch,
        words=parsed.words,
        distinct_words=parsed.distinct_words,
        similarity=similarity,
        searchable=not parsed.noindex,
        facts=parsed.facts,
        data=parsed.data,
        gist=parsed.gist,
        is_thin=parsed.is_thin,
    )
