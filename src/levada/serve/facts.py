"""Sites, shards, loads and the laboratory over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from levada.bulk.loads import LoadInstance, LoadTasks
from levada.collection.addresses import as_planned
from levada.collection.shards import LEAST_ASKED, OwnAdvice, OwnShards, own_advice, own_shards
from levada.core.durations import iso
from levada.core.errors import NotFound
from levada.core.records import Outcome, PageRecord, SiteRecord
from levada.core.site_rules.pace import Pace, SitePaces
from levada.core.site_rules.rules import SiteRules
from levada.serve.lab_runs import PartFacts
from levada.serve.operations import Nothing, Operations, facts_of
from levada.serve.pages import Limit
from levada.serve.view import View

SITES, SHARDS, LOADS, LABORATORY = Operations(), Operations(), Operations(), Operations()
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
    dropped: bool  # visited no more, until it is added again
    rests_until: str | None
    opens_at: str | None  # when its active hours begin; null: it may be asked now
    delay: float  # seconds between two requests
    rules: list[str]  # the matches of the rules that concern it, the most specific first
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


@SITES.add("GET", "/sites", "The sites, by name", errors=(404,))
def _sites(view: View, ask: SitesAsk) -> SitesAnswer:
    """By name, so that a page of the list is the same wherever the crawl is."""
    following = (record for record in view.collection().store.sites() if record.site > ask.after)
    names = sorted(following, key=lambda record: record.site)
    shown = names[: ask.limit]
    more = shown[-1].site if len(names) > len(shown) else None
    return SitesAnswer(_facts(view, shown), more)


@SITES.add("GET", "/site", "One site and its first pages", errors=(404,))
def _site(view: View, ask: SiteAsk) -> SiteAnswer:
    store = view.collection().store
    record = store.site(ask.site.lower())
    if record is None:
        raise NotFound(f"no site {ask.site[:200]} is known")
    fronts = [f"{scheme}://{record.site}/" for scheme in ("https", "http")]
    urls = [url for front in fronts for url in store.urls_like(front, _SHOWN_PAGES)]
    pages = [page for url in urls[:_SHOWN_PAGES] if (page := store.page(url)) is not None]
    shown = [_page(as_planned(page, record)) for page in pages]
    return SiteAnswer(_facts(view, [record])[0], _changes_per_day(pages), shown)


def _changes_per_day(pages: list[PageRecord]) -> float | None:
    """Changes met, by the time that the remembered visits look back on: at least so many."""
    watched = sum(page.history[-1].at - page.history[0].at for page in pages if len(page.history) > 1)
    met = sum(visit.outcome is Outcome.CHANGED for page in pages for visit in page.history[1:])
    return met / (watched / _DAY) if watched > 0 else None


def _facts(view: View, records: list[SiteRecord]) -> list[SiteFacts]:
    collection = view.collection_now()
    rules, paces = SiteRules(collection.settings.site), SitePaces.of(collection.settings)
    now = collection.clock.now()
    return [_site_facts(record, rules, paces(record.site), now) for record in records]


def _site_facts(record: SiteRecord, rules: SiteRules, pace: Pace, now: float) -> SiteFacts:
    trouble = [str(each.trouble) for _, each in record.robots if each.trouble]
    opens_at = pace.opens_at(now)
    return facts_of(
        SiteFacts,
        record,
        rests_until=iso(record.rest_until) if record.rest_until > now else None,
        opens_at=iso(opens_at) if opens_at > now else None,
        delay=max(pace.delay, record.delay or 0.0),
        rules=list(rules.matches_of_site(record.site)),
        robots=trouble[0] if trouble else "ok" if record.robots else "not read yet",
        refused=[RefusedFacts(reason, count, example) for reason, count, example in record.refused],
    )


def _page(page: PageRecord) -> SitePage:
    changes = sum(visit.outcome is Outcome.CHANGED for visit in page.history)
    return SitePage(page.url, page.state, page.visits, changes, page.interval, iso(page.next_visit))


_SECONDS = 30.0


class ShardsAnswer(msgspec.Struct, frozen=True):
    shards: OwnShards
    advice: OwnAdvice | None
    capturing: bool  # what is asked here is written down, so that a key can be advised
    asked_for_advice: int  # questions that are needed


@SHARDS.add("GET", "/shards", "Where pages lie, and which key would suit what is asked", errors=(404,))
def _shards(view: View, _ask: Nothing) -> ShardsAnswer:
    collection = view.collection()
    advice = view.remembered("advice", _SECONDS, lambda: (own_advice(collection, view.folder.queries),))[0]
    return ShardsAnswer(own_shards(collection), advice, view.capturing, LEAST_ASKED)


class PublishedFacts(msgspec.Struct, frozen=True):
    generation: int
    layers: int  # generations that make up the map
    keys: int  # of the newest of them
    at: str


class LoadFacts(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: str  # running, published, cancelled, failed, or unknown
    trouble: str  # "" if there is none
    source: str
    table: str
    target: str
    generation: int | None
    rows: int
    rows_per_second: float
    share: float | None
    seconds_left: float | None
    started_at: str | None
    tasks: LoadTasks
    instances: tuple[LoadInstance, ...]
    published: PublishedFacts | None


class LoadsAnswer(msgspec.Struct, frozen=True):
    loads: list[LoadFacts]
    folders: list[str]  # where loads are looked for


@LOADS.add("GET", "/loads", "The loads into maps: tasks, instances, and what is published")
def _loads(view: View, _ask: Nothing) -> LoadsAnswer:
    loads = []
    for each in view.loads.poll():
        known = each.published
        published = facts_of(PublishedFacts, known, at=str(iso(known.at))) if known else None
        loads.append(facts_of(LoadFacts, each, started_at=iso(each.started_at), published=published))
    return LoadsAnswer(loads, [str(folder) for folder in view.loads.folders])


Part = Literal["freshness", "grouping", "stages", "sharding"]


class PartAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    part: Part


class LabAnswer(msgspec.Struct, frozen=True):
    parts: list[PartFacts]


@LABORATORY.add("GET", "/lab", "What the sources printed, beside ours")
def _lab(view: View, _ask: Nothing) -> LabAnswer:
    return LabAnswer(view.laboratory.parts())


@LABORATORY.add("POST", "/lab", "Run a part of the laboratory, in the background", status=202, errors=(404, 409))
def _run(view: View, ask: PartAsk) -> LabAnswer:
    if not view.folder.path.is_dir():
        raise NotFound(f"there is no folder {view.folder.path} to keep the figures in: start a crawl first")
    view.laboratory.start(ask.part)
    return LabAnswer(view.laboratory.parts())
