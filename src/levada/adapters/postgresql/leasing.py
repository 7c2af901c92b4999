"""Which pages may be visited now? Found by two indexes, whatever the number of URLs; each is handed out once."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from levada.adapters.limits import StoreLimits
from levada.adapters.page_rows import page_record
from levada.adapters.postgresql.database import Write
from levada.adapters.postgresql.page_columns import FROM_LISTED_PAGES, PAGE_COLUMNS
from levada.adapters.postgresql.sites_in_hand import SitesInHand
from levada.adapters.turns import Portion, SiteTurn, first_portions
from levada.records import Lease

__all__ = ["earliest_due", "end_leases", "forget_leases", "give_back", "lease_pages"]

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
_DUE_OF = """SELECT p.id, coalesce(v.next_visit, p.found_at) FROM unnest(%s::bigint[]) listed(id)
    JOIN pages p ON p.id = listed.id LEFT JOIN visited v ON v.page_id = p.id"""
_GRANT = """INSERT INTO leases (page_id, site_id, token, expires_at)
    SELECT id, site_id, nextval('tokens'), %s
    FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY listed(id, site_id, place) ORDER BY place
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = excluded.expires_at, live = true
    RETURNING page_id, token"""
_PAGES = f"SELECT {PAGE_COLUMNS} {FROM_LISTED_PAGES}"
_TOKENS = "SELECT page_id, token FROM leases WHERE page_id = ANY(%s::bigint[])"

_EVER = float("-inf")


def lease_pages(
    write: Write, limits: StoreLimits, now: float, limit: int, seconds: float, due_by: float
) -> list[Lease]:
    sites = SitesInHand(write)
    write.reach("lapse")
    _lapse(write, sites, now, wait=False)
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
    leases = _grant(write, portions, now + seconds)
    write.reach("turns")
    _pass_turns(write, sites, portions, now, due_by)
    return leases


def forget_leases(write: Write) -> None:
    """Nobody holds anything: every page is free as if its lease had lapsed."""
    write.reach("lapse")
    _lapse(write, SitesInHand(write), float("inf"), wait=True)


def give_back(write: Write, limits: StoreLimits, leases: Sequence[Lease]) -> None:
    """Undo these leases, and the turns that their sites had for them."""
    sites = SitesInHand(write)
    write.reach("leases")
    sites.lock_named({lease.page.site for lease in leases})
    held = [lease.page for lease, ended in zip(leases, end_leases(write, leases), strict=True) if ended]
    write.reach("sites")
    # Not when it was due as it was leased: where the lease had lapsed, it may have been brought forward since.
    due: dict[int, float | None] = dict(write.rows(_DUE_OF, ([page.id for page in held],)))
    for page in held:
        site = sites.by_name[page.site]
        site.turn_at -= limits.delay if site.delay is None else site.delay
        site.changed = True
        if (at := due.get(page.id)) is not None:
            site.pull(at)
    sites.save()


def end_leases(write: Write, leases: Sequence[Lease]) -> list[bool]:
    """The fence and the done-mark in one: False where this is not the newest lease of its page."""
    newest: dict[int, int] = dict(write.rows(_TOKENS, ([lease.page.id for lease in leases],)))
    ended = []
    for lease in leases:
        is_newest = newest.get(lease.page.id) == lease.token
        if is_newest:
            del newest[lease.page.id]  # the same lease again, later in this batch, has ended
        ended.append(is_newest)
    held = [lease.page.id for lease, is_newest in zip(leases, ended, strict=True) if is_newest]
    if held:
        write.execute("DELETE FROM leases WHERE page_id = ANY(%s::bigint[])", (held,))
    return ended


def earliest_due(write: Write, sites: Sequence[int], after: float = _EVER) -> dict[int, float]:
    """When each site's next page that nobody holds is due, leaving out what was due again until `after`."""
    if not sites:
        return {}
    earliest: dict[int, float] = dict(write.rows(_FIRST_DUE, (list(sites), after)))
    if after == _EVER:
        for site, found_at in write.rows(_FIRST_NEW, (list(sites),)):
            earliest[site] = min(found_at, earliest.get(site, found_at))
    return earliest


class _Peeking:
    """Looks into some sites at once: as many as may well be needed to fill the batch."""

    def __init__(self, write: Write, due_by: float, limit: int) -> None:
        self._write = write
        self._due_by = due_by
        self._limit = limit
        self._ahead: list[int] = []
        self._seen: dict[tuple[int, int], tuple[list[int], list[int]]] = {}

    def expect(self, sites: list[int]) -> None:
        """These will be asked for, in about this order."""
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


def _lapse(write: Write, sites: SitesInHand, now: float, *, wait: bool) -> None:
    """Those of sites that another process holds just now lapse with the next lease, unless we `wait`."""
    lapsed = [site for (site,) in write.rows(_LAPSED, (now,))]
    if not lapsed:
        return
    locked = sites.lock_numbered(lapsed, wait=wait)
    for due, site in write.rows(_LAPSE, (now, locked)):
        if due is not None:
            sites.by_id[site].pull(due)
    sites.save()


def _grant(write: Write, portions: Sequence[Portion], expires_at: float) -> list[Lease]:
    pages = [(id, portion.site.id) for portion in portions for id in portion.pages]
    if not pages:
        return []
    ids = [id for id, _ in pages]
    tokens: dict[int, int] = dict(write.rows(_GRANT, (float(expires_at), ids, [site for _, site in pages])))
    return [Lease(page_record(row), tokens[row[0]], expires_at) for row in write.rows(_PAGES, (ids,))]


def _pass_turns(write: Write, sites: SitesInHand, portions: Sequence[Portion], now: float, due_by: float) -> None:
    """Each site is due again when its pages can be had politely and there is one to have."""
    earliest = earliest_due(write, [portion.site.id for portion in portions if not portion.more], due_by)
    for portion in portions:
        site = sites.by_id[portion.site.id]
        if portion.pages:
            site.turn_at = portion.next_turn(now)
            site.taken += len(portion.pages)
            site.changed = True
        site.set_turn(now if portion.more else earliest.get(site.id))
    sites.save()
