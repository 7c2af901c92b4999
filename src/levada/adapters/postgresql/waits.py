"""What waits longer than anything may? Found by one look into each site's queue of pages that come back."""

from __future__ import annotations

from collections.abc import Sequence

from levada.adapters.postgresql.database import Write
from levada.adapters.postgresql.leasing import earliest_due
from levada.adapters.postgresql.sites_in_hand import SitesInHand
from levada.records import FOREVER

__all__ = ["WAITING_BEYOND", "end_waits"]

WAITING_BEYOND = """SELECT id FROM sites s WHERE turn_at > %(latest)s
    OR (rest_until < %(forever)s AND (rest_until > %(latest)s OR due_at > %(latest)s))
    OR EXISTS (SELECT 1 FROM visited v WHERE v.site_id = s.id AND v.next_visit > %(latest)s
        AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live))"""
_DUE_NOW = """UPDATE visited v SET next_visit = %s WHERE site_id = ANY(%s::bigint[]) AND next_visit > %s
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = v.page_id AND l.live)"""
_FOUND_NOW = """UPDATE pages p SET found_at = %s FROM unvisited u
    WHERE u.site_id = ANY(%s::bigint[]) AND p.id = u.page_id AND p.found_at > %s
    AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = p.id AND l.live)"""
_REST_NO_LONGER = "UPDATE sites SET rest_until = %s WHERE id = %s"


def end_waits(write: Write, numbers: Sequence[int], now: float, latest: float) -> None:
    """Whatever would wait beyond `latest` on these sites is due now."""
    now = float(now)
    write.reach("pages")
    sites = SitesInHand(write)
    locked = sites.lock_numbered(numbers)
    write.execute(_DUE_NOW, (now, locked, latest))
    write.execute(_FOUND_NOW, (now, locked, latest))
    write.reach("sites")
    earliest = earliest_due(write, locked)
    for site in sites.by_id.values():
        if site.turn_at > latest:
            site.turn_at, site.changed = now, True
        if latest < site.rest_until < FOREVER:
            site.rest_until = now
            write.execute(_REST_NO_LONGER, (now, site.id))
        site.set_turn(earliest.get(site.id))
    sites.save()
