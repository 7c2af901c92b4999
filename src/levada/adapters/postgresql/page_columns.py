"""Which columns make the record of a page, and how is a page found by its address?"""

from __future__ import annotations

from collections.abc import Sequence

from levada.adapters.postgresql.schema import URL_INDEXED
from levada.adapters.postgresql.text import storable
from levada.hashing import content_digest

__all__ = ["BY_URL", "FROM_LISTED_PAGES", "FROM_PAGES", "LISTED_URLS", "PAGE_COLUMNS", "url_rest", "urls_listed"]

PAGE_COLUMNS = """p.id, p.url, s.site, coalesce(v.kind, p.kind), coalesce(v.state, 0), p.how, p.depth, p.hops,
    p.found_at, p.found_on, v.reason, coalesce(v.visits, 0), v.history, v.interval, v.next_visit,
    coalesce(v.failures, 0), coalesce(d.version, 0), d.etag, d.last_modified, d.body_digest, d.text_digest,
    d.sketch, coalesce(v.memory, ''::bytea), coalesce(v.told, 0), v.leads_to"""
_JOINED = """JOIN sites s ON s.id = p.site_id LEFT JOIN visited v ON v.page_id = p.id
    LEFT JOIN documents d ON d.page_id = p.id"""
FROM_PAGES = f"FROM pages p {_JOINED}"
# A list of ids as a table: one statement reads a whole batch, in the order of the list.
FROM_LISTED_PAGES = f"""FROM unnest(%s::bigint[]) WITH ORDINALITY listed(id, place)
    JOIN pages p ON p.id = listed.id {_JOINED} ORDER BY listed.place"""
BY_URL = f"left(p.url, {URL_INDEXED}) = left(%s, {URL_INDEXED}) AND p.url_rest = %s"
LISTED_URLS = f"""FROM unnest(%s::text[], %s::bytea[]) listed(url, rest)
    JOIN pages p ON left(p.url, {URL_INDEXED}) = left(listed.url, {URL_INDEXED}) AND p.url_rest = listed.rest"""
"""Addresses as a table `listed`, each beside its page `p`."""


def url_rest(url: str) -> bytes:
    """What tells long addresses apart that begin alike."""
    written = storable(url)
    return content_digest(written.encode()) if len(written) > URL_INDEXED else b""


def urls_listed(urls: Sequence[str]) -> tuple[list[str], list[bytes]]:
    """The parameters of `LISTED_URLS`."""
    return list(urls), [url_rest(url) for url in urls]
