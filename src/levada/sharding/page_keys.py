"""Fields of a page that decide its shard in Levada's own store.

Only what never changes: the URL and its parts. `site` is host and port, `section` the first part of the path, `url`
the whole. The usual key is the hashed site: pages of a site are searched together (`site:`), are visited politely
one after the other, and link to each other. `url` spreads every page by itself, as a hashed id would.
"""

from __future__ import annotations

from collections.abc import Sequence

from levada.sharding.placement import HASH_TAG, Placement, hashed_placement
from levada.sharding.queries import AllOf, Condition, Filter

KEYS = {"site": ("site", ("url",)), "section": ("section", ("url",)), "url": ("url", ())}
"""Name of a key: the field that is hashed, and those after it."""

_HASHED = len(HASH_TAG) + 8


def site_of_url(url: str) -> str:
    """Host and port of a canonical URL."""
    parts = url.split("/", 3)
    return parts[2] if len(parts) > 2 and not parts[1] else ""


def page_values(url: str) -> dict[str, str]:
    """The fields of a page's key, from its URL alone."""
    _, _, path = url.partition("://")[2].partition("/")
    section = path.partition("?")[0].partition("/")[0]
    site = site_of_url(url)
    return {"site": site, "section": f"{site}/{section}", "url": url}


def page_placement(key: str, shards: int, secret: bytes = b"") -> Placement:
    """The placement of a named key over a number of shards, in equal ranges of its hash.

    Outsiders choose the URLs: without a `secret` they could choose ones that all go to one shard.
    """
    field, rest = KEYS[key]
    return hashed_placement(field, shards, rest=rest, secret=secret)


def keeps_sites_whole(placement: Placement) -> bool:
    """Whether all pages of a site live on one shard."""
    first = placement.key.parts[0]
    cuts_hash_only = all(len(bound) <= _HASHED for bound in placement.ranges.bounds)
    return placement.shards == 1 or (first.field == "site" and first.hashed and cuts_hash_only)


def site_filter(sites: Sequence[str]) -> Filter:
    """Pages of one of these sites."""
    return Condition("site", "in", tuple(sites), len(sites))


def search_filter(groups: Sequence[Sequence[str]]) -> Filter | None:
    """The filter of a search: one site of each group. None: any site.

    A group comes from `site:` (or several joined by OR), with every known site that it matches: at least one.
    """
    if not groups:
        return None
    return AllOf(tuple(site_filter(group) for group in groups))
