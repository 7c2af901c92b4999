"""Sites: how many pages each has, how it is asked, and what was refused there."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import msgspec

from levada.dashboard.operations import Operation
from levada.dashboard.reading import Limit
from levada.dashboard.view import View
from levada.errors import NotFound
from levada.flow.sitebook import is_dropped
from levada.records import Outcome, PageRecord, SiteRecord
from levada.telling.duration import iso
from levada.telling.why_site import as_planned

__all__ = ["SITES"]

_SHOWN_PAGES = 200
_DAY = 86_400.0


class SitesAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    after: Annotated[str, msgspec.Meta(max_length=300, description="The 'next' of an earlier answer.")] = ""
    limit: Limit = 50


class SiteAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    site: Annotated[str, msgspec.Meta(min_length=1, max_length=300, description="Host, and port if it has one.")]


class RefusedFacts(msgspec.Struct, frozen=True):
    reason: str
    count: int
    example: str


class SiteFacts(msgspec.Struct, frozen=True):
    site: str
    admitted: bool  # one that the user asked for
    pages: int
    failures: int  # in a row
    dropped: bool  # visited no more, until somebody names it again
    rests_until: str | None
    delay: float  # seconds between two requests
    robots: str  # ok, none yet, or why it could not be had
    refused: list[RefusedFacts]


class SitesAnswer(msgspec.Struct, frozen=True):
    sites: list[SiteFacts]
    next: str | None


class SitePage(msgspec.Struct, frozen=True):
    url: str
    state: str
    visits: int
    changes: int  # among the remembered visits
    interval: float | None
    next_visit: str | None


class SiteAnswer(msgspec.Struct, frozen=True):
    site: SiteFacts
    changes_per_day: float | None  # of one of these pages, by what their remembered visits met
    pages: list[SitePage]  # the first ones, by address


def _sites(view: View, ask: SitesAsk) -> SitesAnswer:
    """By name, so that a page of the list is the same wherever the crawl is."""
    names = sorted((record for record in view.collection().store.sites() if record.site > ask.after), key=_name)
    shown = list(islice(names, ask.limit))
    more = shown[-1].site if len(names) > len(shown) else None
    return SitesAnswer([_facts(view, record) for record in shown], more)


def _site(view: View, ask: SiteAsk) -> SiteAnswer:
    store = view.collection().store
    record = store.site(ask.site.lower())
    if record is None:
        raise NotFound(f"no site {ask.site[:200]} is known")
    fronts = [f"{scheme}://{record.site}/" for scheme in ("https", "http")]
    urls = [url for front in fronts for url in store.urls_like(front, _SHOWN_PAGES)]
    pages = [page for url in urls[:_SHOWN_PAGES] if (page := store.page(url)) is not None]
    shown = [_page(as_planned(page, record)) for page in pages]
    return SiteAnswer(_facts(view, record), _changes_per_day(pages), shown)


def _changes_per_day(pages: list[PageRecord]) -> float | None:
    """Changes met, by the time that the remembered visits look back on: at least so many."""
    watched = sum(page.history[-1].at - page.history[0].at for page in pages if len(page.history) > 1)
    met = sum(visit.outcome is Outcome.CHANGED for page in pages for visit in page.history[1:])
    return met / (watched / _DAY) if watched > 0 else None


def _name(record: SiteRecord) -> str:
    return record.site


def _facts(view: View, record: SiteRecord) -> SiteFacts:
    collection = view.collection()
    trouble = [str(each.trouble) for _, each in record.robots if each.trouble]
    rests = record.rest_until > collection.clock.now()
    return SiteFacts(
        site=record.site,
        admitted=record.admitted,
        pages=record.pages,
        failures=record.failures,
        dropped=is_dropped(record),
        rests_until=iso(record.rest_until) if rests else None,
        delay=collection.settings.politeness.delay if record.delay is None else record.delay,
        robots=trouble[0] if trouble else "ok" if record.robots else "not read yet",
        refused=[RefusedFacts(reason, count, example) for reason, count, example in record.refused],
    )


def _page(page: PageRecord) -> SitePage:
    changes = sum(visit.outcome is Outcome.CHANGED for visit in page.history)
    return SitePage(page.url, page.state, page.visits, changes, page.interval, iso(page.next_visit))


SITES = [
    Operation(
        method="GET",
        path="/sites",
        summary="The sites, by name",
        handle=_sites,
        asks=SitesAsk,
        answer=SitesAnswer,
        slow=True,
        errors=(404,),
    ),
    Operation(
        method="GET",
        path="/site",
        summary="One site and its first pages",
        handle=_site,
        asks=SiteAsk,
        answer=SiteAnswer,
        slow=True,
        errors=(404,),
    ),
]
