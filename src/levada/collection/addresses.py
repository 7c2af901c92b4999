"""Finds the stored page that an address means, or why there is none.

The store keeps one example of each reason and site; for the others the rules are asked again that keep a crawl out.
"""

from __future__ import annotations

from difflib import get_close_matches

from msgspec.structs import replace

from levada.core.durations import duration, moment, relative
from levada.core.errors import BadUrl, NotFound
from levada.core.reasons import Reason
from levada.core.records import PageRecord, SiteRecord
from levada.core.site_rules.pace import SitePaces
from levada.core.site_rules.rules import SiteRules
from levada.core.words import shortened
from levada.crawl.link_filter import page_kept_out
from levada.pages.robots import RobotsRules
from levada.pages.urls import TrapLimits, canonical, front_page, scheme_of, site_of, trap
from levada.store.reading import OpenedCollection
from levada.store.rules import EXAMPLE_LENGTH

_LOOKED_AT = 200  # addresses of a site that are compared with the one that was typed
_NAMED = 3  # of them


def spellings(typed: str) -> list[str]:
    """The addresses that `typed` may stand for, the likeliest first; `BadUrl` if none."""
    # "example.org:8080/x" has no scheme, although it looks like one.
    if "://" in typed or scheme_of(typed) in ("http", "https"):
        tries = [typed]
    else:
        tries = [f"https://{typed}", f"http://{typed}"]
    try:
        found = [canonical(each) for each in tries]
    except BadUrl as error:
        if tries == [typed]:
            raise
        raise BadUrl(str(error).replace("'https://", "'")) from None  # which nobody has typed
    if not found[0].startswith(("http://", "https://")):
        raise BadUrl(f"{shortened(typed, 200)!r} is not an http or https address: write it like https://example.org")
    return found


def known_page(collection: OpenedCollection, addresses: list[str]) -> PageRecord:
    """What is known of the page at one of these addresses; `NotFound` says why not, or names addresses like it."""
    for url in addresses:
        if page := collection.store.page(url):
            return page
    missing = f"no page {addresses[0]} is known in {collection.folder.path}"
    if refused := refusal_words(collection, addresses):
        raise NotFound(f"{missing}: {refused}")
    near = _near(collection, addresses)
    raise NotFound(f"{missing}; known there: {', '.join(near)}" if near else missing)


def _near(collection: OpenedCollection, addresses: list[str]) -> list[str]:
    """Addresses of the same site that are spelled alike: those around it, and the first ones."""
    found: dict[str, None] = {}
    for url in addresses:
        front = front_page(url)
        stems = [url[: max(len(front), len(url) - cut)] for cut in (0, 1, 2, 4, 8, 16)]
        for start in (*stems, front):
            found |= dict.fromkeys(collection.store.urls_like(start, _LOOKED_AT))
    target = addresses[0].partition("://")[2]
    by_rest = {url.partition("://")[2]: url for url in found if len(url) <= 500}
    alike = get_close_matches(target[:500], by_rest, n=_NAMED, cutoff=0.6)
    fronts = [url for url in found if url == front_page(url) and site_of(url) == site_of(addresses[0])]
    return [by_rest[rest] for rest in alike] or fronts[:1]


def as_planned(page: PageRecord, site: SiteRecord | None) -> PageRecord:
    """The page with its next visit; where the site was dropped there is none, whatever its last visit planned."""
    return replace(page, next_visit=None) if site and site.dropped else page


def dropped_words(url: str) -> str:
    """Of a page whose site was dropped."""
    return f"{site_of(url)} was dropped: adding it in the dashboard takes it up again"


def outside_hours(reader: OpenedCollection, site: str) -> str:
    """A sentence if it is outside the active hours of a site; "" if it is not."""
    now = reader.clock.now()
    opens_at = SitePaces.of(reader.settings)(site).opens_at(now)
    if opens_at <= now:
        return ""
    hours = SiteRules(reader.settings.site).rule_of_site(site)
    return (
        f"{site} is outside its hours, by the rule of {hours.sources['hours']}: it is asked again "
        f"{relative(opens_at, now)} ({moment(opens_at)})"
    )


def out_of_scope_words(collection: OpenedCollection, page: PageRecord) -> str:
    """A clause if a rule keeps a known page out now; "" if none does."""
    rules = SiteRules(collection.settings.site)
    key = page_kept_out(rules, page)
    return f"is out of scope: {key} of the rule of {rules.rule_for(page.url).sources[key]} keeps it out" if key else ""


def site_notes(collection: OpenedCollection, page: PageRecord, now: float) -> list[str]:
    site = collection.store.site(page.site)
    if site is None:
        return []
    notes = []
    if site.dropped:
        notes.append(dropped_words(page.url))
    elif closed := outside_hours(collection, page.site):
        notes.append(closed)
    elif site.rest_until > now:
        again = relative(site.rest_until, now)
        notes.append(f"{page.site} rests after {site.failures} failures in a row: asked again {again}")
    if words := out_of_scope_words(collection, page):
        notes.append(f"it {words}")
    if site.delay is not None:
        notes.append(f"{page.site} asks for {duration(site.delay)} between two requests")
    if verdict := _robots_verdict(collection, page, site):
        notes.append(verdict)
    if page.reason is Reason.LINKS:
        notes.append(
            "it has more links than are taken of one page: those beyond were left out, and are counted (links)"
        )
    return notes


def _robots_verdict(collection: OpenedCollection, page: PageRecord, site: SiteRecord) -> str | None:
    """What the stored robots.txt says of this page; None if it may be fetched or nothing is stored."""
    record = dict(site.robots).get(scheme_of(page.url))
    if record is None:
        return None
    if record.trouble:
        return f"robots.txt of {page.site} could not be had ({record.trouble}): nothing is fetched until it can"
    agent = collection.settings.politeness.agent
    if not _closed_by_robots(site, page.url, agent):
        return None
    return f"robots.txt of {page.site}, read {moment(record.fetched_at)}, does not allow this page for {agent!r}"


def refusal_words(collection: OpenedCollection, addresses: list[str]) -> str | None:
    """`it was refused when it was found: robots`; None if nothing speaks against these addresses."""
    for url in addresses:
        site = collection.store.site(site_of(url))
        for reason, _, example in site.refused if site else ():
            if example == url[:EXAMPLE_LENGTH]:
                return f"it was refused when it was found: {reason}"
    return next(
        (words for url in addresses if (words := _ruled_out(collection, url) or _cut_off(collection, url))), None
    )


def _ruled_out(collection: OpenedCollection, url: str) -> str | None:
    rules = SiteRules(collection.settings.site)
    if (tidy := rules.tidied(url)) != url:
        return f"by the rule of its site it is known without these parameters, as {shortened(tidy, 200)}"
    if key := rules.kept_out(url, 0):
        return f"{key} of the rule of {rules.rule_for(url).sources[key]} keeps it out"
    site, crawl = collection.store.site(site_of(url)), collection.settings.crawl
    if crawl.scope == "sites" and not (site and (site.admitted or site.pages)):
        return f"{site_of(url)} is none of the start sites, and the crawl does not leave them (crawl.scope)"
    if site and site.dropped:
        return dropped_words(url)
    if site and _closed_by_robots(site, url, collection.settings.politeness.agent):
        return f"robots.txt of {site.site} does not allow it"
    limits = TrapLimits(max_length=crawl.max_url_length, max_depth=crawl.max_depth)
    reason = trap(url, limits=limits)
    return f"an address like this is not followed ({reason})" if reason else None


def _cut_off(collection: OpenedCollection, url: str) -> str | None:
    site = collection.store.site(site_of(url))
    left_out = sum(n for reason, n, _ in site.refused if reason is Reason.LINKS) if site else 0
    if not left_out:
        return None
    where = f"pages of {site_of(url)} have more links than are taken"
    return f"{where}, and it may be one of the {left_out:,} that were left out (links)"


def _closed_by_robots(site: SiteRecord, url: str, agent: str) -> bool:
    robots = dict(site.robots).get(scheme_of(url))
    return robots is not None and not robots.trouble and not RobotsRules(robots.text).allows(url, agent)
