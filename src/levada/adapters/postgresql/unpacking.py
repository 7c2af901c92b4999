"""How does a page that comes from another shard take its place here?"""

from __future__ import annotations

from collections.abc import Sequence

from levada.adapters.document_rows import version_row
from levada.adapters.moving import MovedPage
from levada.adapters.page_rows import HOW_CODE, KIND_CODE, STATE_CODE, Row, packed_history
from levada.adapters.postgresql.database import Write
from levada.adapters.postgresql.page_columns import LISTED_URLS, url_rest, urls_listed
from levada.adapters.postgresql.sites_in_hand import SitesInHand
from levada.adapters.site_rows import packed_robots

__all__ = ["count_page", "fence_off", "take_pages"]

_FENCE = """INSERT INTO leases (page_id, site_id, token, expires_at, fenced)
    SELECT p.id, p.site_id, nextval('tokens'), 0, true FROM unnest(%s::bigint[]) listed(id)
    JOIN pages p ON p.id = listed.id
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = 0, live = true, fenced = true
    WHERE NOT leases.fenced"""
_THERE_BY_URL = f"SELECT p.url {LISTED_URLS}"
_THERE_BY_ID = "SELECT id FROM pages WHERE id = ANY(%s::bigint[])"
_KEEP_SITE = """UPDATE sites SET rest_until = %s, failures = greatest(failures, %s), delay = coalesce(delay, %s)
    WHERE id = %s"""
_INSERT_ROBOTS = "INSERT INTO robots (site_id, records) VALUES (%s, %s) ON CONFLICT (site_id) DO NOTHING"
_INSERT_PAGE = """INSERT INTO pages
    (id, site_id, url, url_rest, kind, how, depth, hops, priority, found_at, found_on)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"""
_INSERT_DOCUMENT = """INSERT INTO documents
    (page_id, seq, version, gone, etag, last_modified, body_digest, text_digest, sketch)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"""
_INSERT_VISITED = """INSERT INTO visited (page_id, site_id, kind, state, visits, failures, met_at, interval,
    next_visit, reason, leads_to, told, history, memory)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"""
_INSERT_UNVISITED = "INSERT INTO unvisited (site_id, priority, page_id) VALUES (%s, %s, %s)"
_INSERT_VERSION = "INSERT INTO versions VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
_FORGET_DEPARTURE = "DELETE FROM departed WHERE page_id = ANY(%s::bigint[])"
_ARRIVED = """INSERT INTO arrived (page_id, version) VALUES (%s, %s)
    ON CONFLICT (page_id) DO UPDATE SET version = excluded.version"""


def take_pages(write: Write, moved: Sequence[MovedPage]) -> None:
    """A page that is here already stays as it is: its copy came before a crash."""
    sites = SitesInHand(write)
    write.reach("pages")
    names = dict.fromkeys(each.page.site for each in _absent(write, moved))
    sites.take_named(list(names))
    arriving = [each for each in _absent(write, moved) if each.page.site in sites.by_name]
    with write.pipeline():
        _insert(write, sites, arriving)
        write.reach("sites")
        _keep_sites(write, sites, arriving)
        sites.save()
    _insert_documents(write, arriving)


def fence_off(write: Write, ids: Sequence[int]) -> None:
    if ids:
        write.execute(_FENCE, (list(ids),))


def count_page(write: Write, state: str, one: int, *, is_new: bool, versions: int, stored: bool) -> None:
    """One page more, or one fewer."""
    write.count(f"state.{state}", one)
    write.count("unvisited", one * is_new)
    write.count("versions", one * versions)
    write.count("stored", one * stored)


def _absent(write: Write, moved: Sequence[MovedPage]) -> list[MovedPage]:
    urls = {url for (url,) in write.rows(_THERE_BY_URL, urls_listed([each.page.url for each in moved]))}
    ids = {id for (id,) in write.rows(_THERE_BY_ID, ([each.page.id for each in moved],))}
    absent = [each for each in moved if each.page.url not in urls and each.page.id not in ids]
    return list({each.page.id: each for each in absent}.values())


def _insert(write: Write, sites: SitesInHand, arriving: Sequence[MovedPage]) -> None:
    number = {name: site.id for name, site in sites.by_name.items()}
    write.executemany(_INSERT_PAGE, [_page_row(each, number[each.page.site]) for each in arriving])
    visited = [each for each in arriving if each.page.visits]
    write.executemany(_INSERT_VISITED, [_visited_row(each, number[each.page.site]) for each in visited])
    new = [(number[each.page.site], each.priority, each.page.id) for each in arriving if not each.page.visits]
    write.executemany(_INSERT_UNVISITED, new)
    versions = [(each.page.id, version) for each in arriving for version in each.versions]
    write.executemany(_INSERT_VERSION, [version_row(id, v.number, v.fetched_at, v.content) for id, v in versions])
    write.execute(_FORGET_DEPARTURE, ([each.page.id for each in arriving],))
    write.executemany(_ARRIVED, [(each.page.id, each.page.version) for each in arriving if each.page.version])
    fence_off(write, [each.page.id for each in arriving])
    for each in arriving:
        stored = each.page.version > 0 and not each.gone
        is_new = not each.page.visits
        count_page(write, each.page.state, 1, is_new=is_new, versions=len(each.versions), stored=stored)


def _keep_sites(write: Write, sites: SitesInHand, arriving: Sequence[MovedPage]) -> None:
    for each in arriving:
        sites.by_name[each.page.site].pages += 1
    for name, each in {each.page.site: each for each in reversed(arriving)}.items():
        site, record = sites.by_name[name], each.site
        if site.is_new:
            write.execute(_INSERT_ROBOTS, (site.id, packed_robots(record)))
        site.admitted |= record.admitted
        site.turn_at = max(site.turn_at, each.turn_at)
        site.rest_until = max(site.rest_until, record.rest_until)
        site.changed = True
        write.execute(_KEEP_SITE, (site.rest_until, record.failures, record.delay, site.id))


def _insert_documents(write: Write, arriving: Sequence[MovedPage]) -> None:
    steps = iter(write.take_steps(sum(each.page.version > 0 for each in arriving)))
    rows = []
    for each in arriving:
        page = each.page
        known = (page.etag, page.last_modified, page.body_digest, page.text_digest, page.sketch)
        if page.version or any(fact is not None for fact in known):
            rows.append((page.id, next(steps) if page.version else None, page.version, each.gone, *known))
    write.executemany(_INSERT_DOCUMENT, rows)


def _page_row(moved: MovedPage, site: int) -> Row:
    page = moved.page
    what = (KIND_CODE[page.kind], HOW_CODE[page.how], page.depth, page.hops, moved.priority)
    return (page.id, site, page.url, url_rest(page.url), *what, page.found_at, page.found_on)


def _visited_row(moved: MovedPage, site: int) -> Row:
    page = moved.page
    return (
        page.id,
        site,
        KIND_CODE[page.kind],
        STATE_CODE[page.state],
        page.visits,
        page.failures,
        moved.met_at,
        page.interval,
        page.next_visit,
        page.reason,
        page.leads_to,
        page.told,
        packed_history(page.history),
        page.memory,
    )
