"""What a crawl tells of each visit: events of pages, and the result of a check."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from levada.collection.diff import Diff
from levada.core.reasons import Reason
from levada.core.records import Outcome, PageKind, PageState, VisitResult


class PageOutcome(StrEnum):
    """What a visit met.

    >>> news.check(start).outcome is levada.PageOutcome.UNCHANGED
    True
    """

    NEW = "new"  # stored for the first time
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    MOVED = "moved"  # a redirect, or a copy of another page: `leads_to` says where
    GONE = "gone"
    FAILED = "failed"  # tried again later
    REFUSED = "refused"  # by robots.txt, the address guard or a limit


class PageEvent(msgspec.Struct, frozen=True):
    """One visit of a crawl, reported after it is stored.

    >>> count = news.add(other)
    >>> for event in news.events(once=True):
    ...     if event.url == other:
    ...         print(event.outcome, event.reason)
    new None
    """

    url: str
    outcome: PageOutcome
    at: float  # epoch seconds, by the collection's clock
    reason: Reason | None = None  # why nothing was stored
    title: str = ""  # of the version that was stored
    similarity: float = 1.0  # to the version before: 1 the same words, 0 none in common
    links: int = 0  # addresses that it names and that are followed
    kind: PageKind = PageKind.PAGE  # sitemaps and feeds are read, not stored
    leads_to: str | None = None
    next_visit: float | None = None  # None: never again
    told: bool = True  # False: a new version that no trigger of the page's rule is met by, so that nobody is told


class CheckResult(msgspec.Struct, frozen=True):
    """The result of checking one page: the outcome of the visit, and what changed.

    >>> check = news.check(start)
    >>> check.changed
    False
    >>> str(check.outcome)
    'unchanged'
    """

    url: str
    outcome: PageOutcome
    reason: Reason | None
    changed: bool
    diff: Diff | None  # from the version before to the one that was stored; None if the page did not change
    event: PageEvent


def page_event(result: VisitResult) -> PageEvent:
    met = result.visit.outcome
    outcome = PageOutcome.NEW if met is Outcome.FIRST else PageOutcome[met.name]
    return PageEvent(
        url=result.lease.page.url,
        outcome=PageOutcome.MOVED if result.state is PageState.ELSEWHERE else outcome,
        at=result.visit.at,
        reason=result.reason,
        title=result.version.title if result.version is not None else "",
        similarity=result.visit.similarity,
        links=len(result.found),
        kind=result.kind,
        leads_to=result.leads_to,
        next_visit=result.next_visit,
        told=result.told or result.version is None,
    )
