"""What waits longer than anything may? Found by one look into each site's queue of pages that come back."""

from __future__ import annotations

from collections.abc import Sequence

from levada.adapters.sqlite.database import Write
from levada.adapters.sqlite.leasing import earliest_due
from levada.records import FOREVER

__all__ = ["WAITING_BEYOND", "end_waits"]

WAITING_BEYOND = """SELECT id FROM sites s WHERE turn_at > ?1
    OR (rest_until < ?2 AND (rest_until > ?1 OR due_at > ?1))
    OR EXISTS (SELECT 1 FROM visited v WHERE v.site_id = s.id AND v.next_visit > ?1
        AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live))"""
_DUE_NOW = """UPDATE visited SET next_visit = ?2 WHERE site_id = ?1 AND next_visit > ?3
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = visited.page_id AND l.live)"""
_FOUND_NOW = """UPDATE pages SET found_at = ?2 WHERE id IN (SELECT page_id FROM unvisited WHERE site_id = ?1)
    AND found_at > ?3 AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = pages.id AND l.live)"""
_TURN_NOW = "UPDATE sites SET turn_at = ?2 WHERE id = ?1 AND turn_at > ?3"
_REST_NO_LONGER = "UPDATE sites SET rest_until = ?2 WHERE id = ?1 AND rest_until > ?3 AND rest_until < ?4"
_SET_TURN = "UPDATE sites SET due_at = max(?2, turn_at, rest_until) WHERE id = ?1"


def end_waits(write: Write, sites: Sequence[int], now: float, latest: float) -> None:
    """Whatever would wait beyond `latest` on these sites is due now."""
    write.reach("pages")
    each = [(site, now, latest) for site in sites]
    write.executemany(_DUE_NOW, each)
    write.executemany(_FOUND_NOW, each)
    write.reach("sites")
    write.executemany(_TURN_NOW, each)
    write.executemany(_REST_NO_LONGER, [(*values, FOREVER) for values in each])
    write.executemany(_SET_TURN, [(site, earliest_due(write, site)) for site in sites])
