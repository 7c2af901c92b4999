"""Which URLs are held, and what was refused? The part of a transaction that takes in what was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from levada.adapters.keeping import example_of, holdable, is_full, page_number, refused_for
from levada.adapters.known_urls import KnownUrls
from levada.adapters.limits import StoreLimits
from levada.adapters.page_rows import HOW_CODE, KIND_CODE, Row
from levada.adapters.postgresql.database import Write
from levada.adapters.postgresql.page_columns import LISTED_URLS, url_rest, urls_listed
from levada.adapters.postgresql.sites_in_hand import SiteInHand, SitesInHand
from levada.reasons import Reason
from levada.records import Found, PageState, Refusal

__all__ = ["ELSEWHERE_ID", "Holding"]

ELSEWHERE_ID = 0
"""The site under which refusals of sites that are not held are counted: pages can name any number of them."""

_EXISTING = f"SELECT p.url {LISTED_URLS}"
_NUMBERED = "SELECT site, id FROM sites WHERE site = ANY(%s::text[])"
_INSERT_PAGE = """INSERT INTO pages
    (id, site_id, url, url_rest, kind, how, depth, hops, priority, found_at, found_on)
    SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::bytea[], %s::bigint[], %s::bigint[],
    %s::bigint[], %s::bigint[], %s::bigint[], %s::float8[], %s::bigint[])"""
_INSERT_UNVISITED = """INSERT INTO unvisited (page_id, site_id, priority)
    SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[])"""
_FORWARD = "INSERT INTO outbox (found, found_on, at) VALUES (%s, %s, %s)"
_COUNT_REFUSAL = """INSERT INTO refusals (site_id, reason, n, example) VALUES (%s, %s, %s, %s)
    ON CONFLICT (site_id, reason) DO UPDATE SET n = refusals.n + excluded.n"""

_encode = msgspec.msgpack.Encoder().encode


class Holding:
    """What one transaction has found, counted and touched: `prepare` looks it all up at once, `finish` writes."""

    def __init__(self, write: Write, limits: StoreLimits, known: KnownUrls) -> None:
        self.held: list[str] = []  # known to be stored once this transaction is committed
        self.sites = SitesInHand(write)
        self._write = write
        self._limits = limits
        self._known = known
        self._passed_over: set[str] = set()
        self._there: set[str] = set()
        self._not_in_hand: dict[str, int] = {}
        self._refused: dict[tuple[int, Reason], list[int | str]] = {}
        self._pages: list[Row] = []
        self._forwarded: list[Row] = []

    def prepare(self, found: Sequence[Found], refused: Iterable[Refusal], sites: Iterable[str] = ()) -> None:
        """Hold the sites of what was found, and `sites`, from now on; read what is there of it."""
        self._passed_over = {each.url for each in found if each.url in self._known}
        fresh = [each for each in found if self._is_fresh(each) and holdable(each)]
        names = dict.fromkeys(each.site for each in fresh)
        self.sites.add_missing(names)
        if locked := {*names, *sites}:
            self.sites.lock_named(locked)
        self.sites.take_named([name for name in names if name not in self.sites.by_name])
        urls = {each.url for each in fresh}
        if urls:
            self._there = {url for (url,) in self._write.rows(_EXISTING, urls_listed(sorted(urls)))}
        named = {each.site for each in refused} | {each.site for each in found if not holdable(each)}
        if others := named - self.sites.by_name.keys():
            self._not_in_hand = dict(self._write.rows(_NUMBERED, (sorted(others),)))

    def hold(self, found: Found, found_on: int | None, now: float) -> bool:
        """Hold this URL; whether it was new."""
        if not self._is_fresh(found):
            return False
        if not holdable(found):
            self.refuse(refused_for(found, Reason.BAD_URL))
            return False
        site = self._admitting_site(found)
        if found.url in self._there:
            self.held.append(found.url)
            return False
        if is_full(site.pages, self._limits.max_pages_per_site):
            self.refuse(refused_for(found, Reason.SITE_FULL))
            return False
        self._insert(site, found, found_on, now)
        return True

    def forward(self, found: Found, found_on: int, at: float) -> None:
        """Leave this URL in the outbox, for the shard that is to hold it."""
        self._forwarded.append((_encode(found), found_on, at))

    def refuse(self, refusal: Refusal) -> None:
        site = self.sites.by_name.get(refusal.site)
        named_before = site is not None and not site.is_new
        id = site.id if site and named_before else self._not_in_hand.get(refusal.site, ELSEWHERE_ID)
        if (id, refusal.reason) in self._refused:
            self._refused[id, refusal.reason][0] += 1  # type: ignore[operator]
        else:
            self._refused[id, refusal.reason] = [1, example_of(refusal)]

    def finish(self) -> None:
        """Refusals last: other transactions wait for those of sites that nobody holds."""
        if self._pages:
            # By the column: there may be a thousand of them, and as many statements would cost more than the rows.
            columns = [list(column) for column in zip(*self._pages, strict=True)]
            self._write.execute(_INSERT_PAGE, columns)
            self._write.execute(_INSERT_UNVISITED, (columns[0], columns[1], columns[8]))
        self._write.executemany(_FORWARD, self._forwarded)
        self.sites.save()
        refused = sorted(self._refused.items())
        self._write.executemany(_COUNT_REFUSAL, [(*key, *count) for key, count in refused])
        for (_, reason), (n, _) in refused:
            self._write.count(f"refused.{reason}", int(n))

    def _is_fresh(self, found: Found) -> bool:
        return found.admit or found.url not in self._passed_over

    def _admitting_site(self, found: Found) -> SiteInHand:
        site = self.sites.by_name[found.site]
        site.is_new = False
        if found.admit and not site.admitted:
            site.admitted = site.changed = True
        return site

    def _insert(self, site: SiteInHand, found: Found, found_on: int | None, now: float) -> None:
        self.held.append(found.url)
        self._there.add(found.url)
        site.pages += 1
        site.numbered += 1
        site.changed = True
        id = page_number(site.id, site.numbered)
        what = (KIND_CODE[found.kind], HOW_CODE[found.how], found.depth, found.hops, found.priority)
        self._pages.append((id, site.id, found.url, url_rest(found.url), *what, float(now), found_on))
        site.pull(now)
        self._write.count("unvisited")
        self._write.count(f"state.{PageState.NEW}")
