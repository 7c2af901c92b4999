"""The frontier on PostgreSQL: adding URLs and leasing pages, while other processes do the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from levada.core.reasons import Reason
from levada.core.records import FoundUrl, Lease, PageState, Refusal, VisitResult
from levada.store.base import StoreLimits
from levada.store.fair_leasing import Portion, SiteTurn, first_portions
from levada.store.postgresql.database import PostgresqlWrite
from levada.store.postgresql.dialect import POSTGRESQL, url_rest, urls_listed
from levada.store.postgresql.site_locks import LockedSites
from levada.store.rows import HOW_CODE, KIND_CODE, Row, page_record
from levada.store.rules import holdable, is_full, page_number, refused_for
from levada.store.sql.base import HeldSite, KnownUrls
from levada.store.sql.writing import ELSEWHERE_ID, EVER, Intake

_NUMBERED = "SELECT site, id FROM sites WHERE site = ANY(%s::text[])"
_INSERT_PAGES = """INSERT INTO pages
    (id, site_id, url, kind, how, depth, hops, priority, found_at, found_on, url_rest)
    SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[],
    %s::bigint[], %s::bigint[], %s::float8[], %s::bigint[], %s::bytea[])"""
_INSERT_UNVISITED = """INSERT INTO unvisited (page_id, site_id, priority)
    SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[])"""

_NEW = """SELECT s.id, n.page_id FROM unnest(%s::bigint[]) s(id) CROSS JOIN LATERAL (
    SELECT u.page_id FROM unvisited u WHERE u.site_id = s.id
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = u.page_id AND l.live)
    ORDER BY u.priority, u.page_id LIMIT %s) n"""
_DUE = """SELECT s.id, n.page_id FROM unnest(%s::bigint[]) s(id) CROSS JOIN LATERAL (
    SELECT v.page_id FROM visited v WHERE v.site_id = s.id AND v.next_visit <= %s
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live)
    ORDER BY v.next_visit, v.page_id LIMIT %s) n"""
_FIRST_NEW = """SELECT s.id, n.found_at FROM unnest(%s::bigint[]) s(id) CROSS JOIN LATERAL (
    SELECT p.found_at FROM (
        SELECT u.page_id FROM unvisited u WHERE u.site_id = s.id
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = u.page_id AND l.live)
        ORDER BY u.priority, u.page_id LIMIT 1) first JOIN pages p ON p.id = first.page_id) n"""
_FIRST_DUE = """SELECT s.id, n.next_visit FROM unnest(%s::bigint[]) s(id) CROSS JOIN LATERAL (
    SELECT v.next_visit FROM visited v WHERE v.site_id = s.id AND v.next_visit > %s
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live)
    ORDER BY v.next_visit LIMIT 1) n"""
_LAPSED = "SELECT DISTINCT site_id FROM leases WHERE live AND NOT fenced AND expires_at <= %s"
_LAPSE = """UPDATE leases l SET live = false FROM pages p LEFT JOIN visited v ON v.page_id = p.id
    WHERE l.live AND NOT l.fenced AND l.expires_at <= %s AND l.site_id = ANY(%s::bigint[]) AND p.id = l.page_id
    RETURNING coalesce(v.next_visit, p.found_at), l.site_id"""
_GRANT = """INSERT INTO leases (page_id, site_id, token, expires_at)
    SELECT id, site_id, nextval('tokens'), %s
    FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY listed(id, site_id, place) ORDER BY place
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = excluded.expires_at, live = true
    RETURNING page_id, token"""


class PostgresqlIntake(Intake[PostgresqlWrite]):
    """Looks everything up at once, under the locks of its sites, and writes it at once."""

    def __init__(self, write: PostgresqlWrite, limits: StoreLimits, known: KnownUrls) -> None:
        super().__init__(write, POSTGRESQL, limits, known)
        self._sites = LockedSites(write)
        self._passed_over: set[str] = set()
        self._there: set[str] = set()
        self._not_in_hand: dict[str, int] = {}
        self._pages: list[Row] = []

    def prepare(self, found: Sequence[FoundUrl], refused: Iterable[Refusal], sites: Iterable[str] = ()) -> None:
        """Lock the sites of what was found, and `sites`; read what is stored of them."""
        self._passed_over = {each.url for each in found if each.url in self._known}
        fresh = [each for each in found if self._is_fresh(each) and holdable(each)]
        names = dict.fromkeys(each.site for each in fresh)
        self._sites.add_missing(names)
        if locked := {*names, *sites}:
            self._sites.lock_named(locked)
        self._sites.take_named([name for name in names if name not in self._sites.by_name])
        urls = {each.url for each in fresh}
        if urls:
            self._there = {url for (url,) in self._write.rows(POSTGRESQL.there_by_url, urls_listed(sorted(urls)))}
        named = {each.site for each in refused} | {each.site for each in found if not holdable(each)}
        if others := named - self._sites.by_name.keys():
            self._not_in_hand = dict(self._write.rows(_NUMBERED, (sorted(others),)))

    def prepare_visits(self, visits: Sequence[VisitResult]) -> None:
        """Leave out what visits with a lost lease found: it creates no site. The write fence itself comes later."""
        ids = [result.lease.page.id for result in visits]
        there = {token for _, token in self._write.rows(POSTGRESQL.tokens, (ids,))}
        found = [each for result in visits if result.lease.token in there for each in result.found]
        refused = [each for result in visits for each in result.refused]
        self.prepare(found, refused, [result.lease.page.site for result in visits])

    def hold(self, found: FoundUrl, found_on: int | None, now: float) -> bool:
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

    def refuse(self, refusal: Refusal) -> None:
        site = self._sites.by_name.get(refusal.site)
        named_before = site is not None and not site.is_new
        id = site.id if site and named_before else self._not_in_hand.get(refusal.site, ELSEWHERE_ID)
        self._count_refusal(id, refusal)

    def site_id(self, name: str) -> int:
        return self._sites.by_name[name].id

    def due_again(self, site: str, at: float) -> None:
        self._sites.by_name[site].pull(at)

    def finish(self) -> None:
        """Write refusals last: other transactions wait for those of unknown sites."""
        if self._pages:
            # By column: there may be a thousand, and as many statements would cost more than the rows.
            columns = [list(column) for column in zip(*self._pages, strict=True)]
            self._write.execute(_INSERT_PAGES, columns)
            self._write.execute(_INSERT_UNVISITED, (columns[0], columns[1], columns[7]))
        self._write_links()
        self._sites.save()
        self._write_refusals()

    def _is_fresh(self, found: FoundUrl) -> bool:
        return found.admit or found.url not in self._passed_over

    def _admitting_site(self, found: FoundUrl) -> HeldSite:
        site = self._sites.by_name[found.site]
        site.is_new = False
        if found.admit:
            site.admit()
        return site

    def _insert(self, site: HeldSite, found: FoundUrl, found_on: int | None, now: float) -> None:
        self.held.append(found.url)
        self._there.add(found.url)
        site.pages += 1
        site.numbered += 1
        site.changed = True
        id = page_number(site.id, site.numbered)
        what = (KIND_CODE[found.kind], HOW_CODE[found.how], found.depth, found.hops, found.priority)
        self._pages.append((id, site.id, found.url, *what, float(now), found_on, url_rest(found.url)))
        site.pull(now)
        self._write.count("unvisited")
        self._write.count(f"state.{PageState.NEW}")


def lease_pages(
    write: PostgresqlWrite, limits: StoreLimits, now: float, limit: int, seconds: float, due_by: float
) -> list[Lease]:
    sites = LockedSites(write)
    write.reach("lapse")
    lapse(write, sites, now, wait=False)
    peeking = _Peeking(write, due_by, limit)

    def sites_from(start: int) -> list[SiteTurn]:
        turns = [
            SiteTurn(site.id, limits.delay if site.delay is None else site.delay, site.taken)
            for site in sites.lock_due(now, limit, start)
        ]
        peeking.expect([turn.id for turn in turns])
        return turns

    portions = first_portions(sites_from, peeking.peek, limits, limit, seconds)
    write.reach("leases")
    pages = [(id, portion.site.id) for portion in portions for id in portion.pages]
    leases = grant(write, pages, now + seconds)
    write.reach("turns")
    _pass_turns(write, sites, portions, now, due_by)
    return leases


def earliest_due(write: PostgresqlWrite, sites: Sequence[int], after: float = EVER) -> dict[int, float]:
    """When each site's next page without a lease is due, ignoring pages due again until `after`."""
    if not sites:
        return {}
    earliest: dict[int, float] = dict(write.rows(_FIRST_DUE, (list(sites), after)))
    if after == EVER:
        for site, found_at in write.rows(_FIRST_NEW, (list(sites),)):
            earliest[site] = min(found_at, earliest.get(site, found_at))
    return earliest


class _Peeking:
    """Looks into several sites at once: as many as may be needed to fill the batch."""

    def __init__(self, write: PostgresqlWrite, due_by: float, limit: int) -> None:
        self._write = write
        self._due_by = due_by
        self._limit = limit
        self._ahead: list[int] = []
        self._seen: dict[tuple[int, int], tuple[list[int], list[int]]] = {}

    def expect(self, sites: list[int]) -> None:
        """Announce the sites that `peek` will ask for, in about this order."""
        self._ahead = sites

    def peek(self, site: int, count: int) -> tuple[list[int], list[int]]:
        if (site, count) not in self._seen:
            self._look(site, count)
        return self._seen[site, count]

    def _look(self, site: int, count: int) -> None:
        place = self._ahead.index(site)
        sites = self._ahead[place : place + ceil(self._limit / count)]
        self._seen |= {(each, count): ([], []) for each in sites}
        for id, page in self._write.rows(_NEW, (sites, count)):
            self._seen[id, count][0].append(page)
        for id, page in self._write.rows(_DUE, (sites, self._due_by, count)):
            self._seen[id, count][1].append(page)


def lapse(write: PostgresqlWrite, sites: LockedSites, now: float, *, wait: bool) -> None:
    """End expired leases. Those of sites that another process holds end with the next lease, unless we `wait`."""
    lapsed = [site for (site,) in write.rows(_LAPSED, (now,))]
    if not lapsed:
        return
    locked = sites.lock_numbered(lapsed, wait=wait)
    for due, site in write.rows(_LAPSE, (now, locked)):
        if due is not None:
            sites.by_id[site].pull(due)
    sites.save()


def grant(write: PostgresqlWrite, pages: Sequence[tuple[int, int]], expires_at: float) -> list[Lease]:
    if not pages:
        return []
    ids = [id for id, _ in pages]
    tokens: dict[int, int] = dict(write.rows(_GRANT, (float(expires_at), ids, [site for _, site in pages])))
    return [Lease(page_record(row), tokens[row[0]], expires_at) for row in write.rows(POSTGRESQL.pages, (ids,))]


def _pass_turns(
    write: PostgresqlWrite, sites: LockedSites, portions: Sequence[Portion], now: float, due_by: float
) -> None:
    """Set each site's next turn: when its pages can be fetched politely and one of them is due."""
    earliest = earliest_due(write, [portion.site.id for portion in portions if not portion.more], due_by)
    for portion in portions:
        site = sites.by_id[portion.site.id]
        if portion.pages:
            site.turn_at = portion.next_turn(now)
            site.taken += len(portion.pages)
            site.changed = True
        site.set_turn(now if portion.more else earliest.get(site.id))
    sites.save()
