"""Which pages may be visited now? Found by two indexes, whatever the number of URLs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from levada.adapters.keeping import first_token
from levada.adapters.limits import StoreLimits
from levada.adapters.page_rows import page_record
from levada.adapters.sqlite.database import Write
from levada.adapters.sqlite.holding import pull_turns
from levada.adapters.sqlite.rows import FROM_LISTED_PAGES, PAGE_COLUMNS
from levada.adapters.turns import Portion, SiteTurn, first_portions
from levada.records import Lease

__all__ = ["FENCED", "earliest_due", "end_leases", "forget_leases", "give_back", "lease_pages"]

_NEW = """SELECT page_id FROM unvisited WHERE site_id = ?
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = unvisited.page_id AND l.live)
    ORDER BY priority, page_id LIMIT ?"""
_DUE = """SELECT page_id FROM visited WHERE site_id = ? AND next_visit <= ?
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = visited.page_id AND l.live)
    ORDER BY next_visit, page_id LIMIT ?"""
_FIRST_NEW = """SELECT p.found_at FROM unvisited u JOIN pages p ON p.id = u.page_id WHERE u.site_id = ?
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = u.page_id AND l.live)
    ORDER BY u.priority, u.page_id LIMIT 1"""
_FIRST_DUE = """SELECT next_visit FROM visited WHERE site_id = ? AND next_visit > ?
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = visited.page_id AND l.live)
    ORDER BY next_visit LIMIT 1"""
_SITES = """SELECT id, coalesce(delay, ?), taken FROM sites WHERE due_at <= ?
    ORDER BY due_at, taken, id LIMIT ? OFFSET ?"""
_LAPSED = """SELECT coalesce(v.next_visit, p.found_at), p.site_id FROM leases l
    JOIN pages p ON p.id = l.page_id LEFT JOIN visited v ON v.page_id = l.page_id
    WHERE l.live = 1 AND l.expires_at <= ?"""
_DUE_OF = """SELECT coalesce(v.next_visit, p.found_at), p.site_id FROM pages p
    LEFT JOIN visited v ON v.page_id = p.id WHERE p.id = ?"""
_GRANT = """INSERT INTO leases (page_id, token, expires_at)
    SELECT value, ?2 + key, ?3 FROM json_each(?1) WHERE true
    ON CONFLICT (page_id) DO UPDATE SET token = excluded.token, expires_at = excluded.expires_at, live = 1"""
_NEXT_TURN = """UPDATE sites SET turn_at = ?2, taken = taken + ?3, due_at = max(?4, ?2, rest_until)
    WHERE id = ?1"""

_SAME_TURN = """UPDATE sites SET due_at = max(?1, turn_at, rest_until)
    WHERE id = ?2 AND due_at IS NOT max(?1, turn_at, rest_until)"""
_PAGES = f"SELECT {PAGE_COLUMNS} {FROM_LISTED_PAGES}"
_TOKENS = "SELECT l.page_id, l.token FROM json_each(?) listed CROSS JOIN leases l ON l.page_id = listed.value"

_EVER = float("-inf")
FENCED = 2
"""`live` of a page that moves to another shard: a lease that never lapses."""


def lease_pages(
    write: Write, limits: StoreLimits, now: float, limit: int, seconds: float, due_by: float
) -> list[Lease]:
    write.reach("lapse")
    _lapse(write, now)

    def sites_from(start: int) -> list[SiteTurn]:
        return [SiteTurn(*row) for row in write.execute(_SITES, (limits.delay, now, limit, start))]

    def peek(site: int, count: int) -> tuple[list[int], list[int]]:
        new = write.execute(_NEW, (site, count)).fetchall()
        due = write.execute(_DUE, (site, due_by, count)).fetchall()
        return [id for (id,) in new], [id for (id,) in due]

    portions = first_portions(sites_from, peek, limits, limit, seconds)
    write.reach("leases")
    leases = _grant(write, portions, now + seconds, first_token(limits.shard))
    write.reach("turns")
    for portion in portions:
        _pass_turn(write, portion, now, due_by)
    return leases


def forget_leases(write: Write) -> None:
    """Nobody holds anything: every page is free as if its lease had lapsed."""
    write.reach("lapse")
    _lapse(write, float("inf"))


def give_back(write: Write, limits: StoreLimits, leases: Sequence[Lease]) -> None:
    """Undo these leases, and the turns that their sites had for them."""
    write.reach("leases")
    held = [lease.page for lease, ended in zip(leases, end_leases(write, leases), strict=True) if ended]
    write.reach("sites")
    for page in held:
        write.execute(
            "UPDATE sites SET turn_at = turn_at - coalesce(delay, ?) WHERE site = ?", (limits.delay, page.site)
        )
        # Not when it was due as it was leased: where the lease had lapsed, it may have been brought forward since.
        pull_turns(write, write.execute(_DUE_OF, (page.id,)).fetchall())


def end_leases(write: Write, leases: Sequence[Lease]) -> list[bool]:
    """The fence and the done-mark in one: False where this is not the newest lease of its page."""
    newest: dict[int, int] = dict(write.execute(_TOKENS, (json.dumps([lease.page.id for lease in leases]),)))
    ended, held = [], []
    for lease in leases:
        is_newest = newest.get(lease.page.id) == lease.token
        if is_newest:
            del newest[lease.page.id]  # the same lease again, later in this batch, has ended
            held.append((lease.page.id,))
        ended.append(is_newest)
    write.executemany("DELETE FROM leases WHERE page_id = ?", held)
    return ended


def earliest_due(write: Write, site: int, after: float = _EVER) -> float | None:
    """When the site's next page that nobody holds is due, leaving out what was due again until `after`."""
    new = None if after > _EVER else write.execute(_FIRST_NEW, (site,)).fetchone()
    due = write.execute(_FIRST_DUE, (site, after)).fetchone()
    return min((row[0] for row in (new, due) if row), default=None)


def _lapse(write: Write, now: float) -> None:
    lapsed = write.execute(_LAPSED, (now,)).fetchall()
    if lapsed:
        pull_turns(write, lapsed)
        write.execute("UPDATE leases SET live = 0 WHERE live = 1 AND expires_at <= ?", (now,))


def _grant(write: Write, portions: Sequence[Portion], expires_at: float, base: int) -> list[Lease]:
    ids = [id for portion in portions for id in portion.pages]
    first = write.counters.add("token", len(ids), base) - len(ids) + 1 if ids else 0
    listed = json.dumps(ids)
    write.execute(_GRANT, (listed, first, expires_at))
    rows = write.execute(_PAGES, (listed,))
    return [Lease(page_record(row), first + place, expires_at) for place, row in enumerate(rows)]


def _pass_turn(write: Write, portion: Portion, now: float, due_by: float) -> None:
    """The site is due again when its pages can be had politely and there is one to have."""
    earliest = now if portion.more else earliest_due(write, portion.site.id, due_by)
    if portion.pages:
        write.execute(_NEXT_TURN, (portion.site.id, portion.next_turn(now), len(portion.pages), earliest))
    else:
        write.execute(_SAME_TURN, (earliest, portion.site.id))
