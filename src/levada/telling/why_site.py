"""What does its site have to do with when a page is visited?"""

from __future__ import annotations

from levada.assemble.reading import Collection
from levada.pages.robots import RobotsRules
from levada.pages.urls import scheme_of
from levada.records import PageRecord, SiteRecord
from levada.telling.duration import duration, moment, relative

__all__ = ["site_notes"]


def site_notes(collection: Collection, page: PageRecord, now: float) -> list[str]:
    site = collection.store.site(page.site)
    if site is None:
        return []
    notes = []
    if site.rest_until > now:
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
