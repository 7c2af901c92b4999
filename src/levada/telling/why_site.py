"""What does its site have to do with when a page is visited?"""

from __future__ import annotations

from msgspec.structs import replace

from levada.assemble.reading import Collection
from levada.flow.sitebook import is_dropped
from levada.pages.robots import RobotsRules
from levada.pages.urls import scheme_of, site_of
from levada.records import PageRecord, SiteRecord
from levada.telling.duration import duration, moment, relative

__all__ = ["as_planned", "dropped_words", "site_notes"]


def as_planned(page: PageRecord, site: SiteRecord | None) -> PageRecord:
    """The page with its next visit; where the site was dropped there is none, whatever its last visit planned."""
    return replace(page, next_visit=None) if site and is_dropped(site) else page


def dropped_words(url: str) -> str:
    """Of a page whose site was dropped."""
    return f"{site_of(url)} was dropped: adding it in the dashboard takes it up again"


def site_notes(collection: Collection, page: PageRecord, now: float) -> list[str]:
    site = collection.store.site(page.site)
    if site is None:
        return []
    notes = []
    if is_dropped(site):
        notes.append(dropped_words(page.url))
    elif site.rest_until > now:
        again = relative(site.rest_until, now)
        notes.append(f"{page.site} rests after {site.failures} failures in a row: asked again {again}")
    if site.delay is not None:
        notes.append(f"{page.site} asks for {duration(site.delay)} between two requests")
    if verdict := _robots_verdict(collection, page, site):
        notes.append(verdict)
    return notes


def _robots_verdict(collection: Collection, page: PageRecord, site: SiteRecord) -> str | None:
    """What the stored robots.txt says of this page; None if it may be fetched or nothing is stored."""
    record = dict(site.robots).get(scheme_of(page.url))
    if record is None:
        return None
    read = f"robots.txt of {page.site}, read {moment(record.fetched_at)},"
    if record.trouble:
        return f"robots.txt of {page.site} could not be had ({record.trouble}): nothing is fetched until it can"
    agent = collection.settings.politeness.agent
    allowed = RobotsRules.parse(record.text).allows(page.url, agent)
    return None if allowed else f"{read} does not allow this page for {agent!r}"
