"""Which columns make the record of a page?"""

from __future__ import annotations

__all__ = ["FROM_LISTED_PAGES", "FROM_PAGES", "PAGE_COLUMNS"]

PAGE_COLUMNS = """p.id, p.url, s.site, coalesce(v.kind, p.kind), coalesce(v.state, 0), p.how, p.depth, p.hops,
    p.found_at, p.found_on, v.reason, coalesce(v.visits, 0), v.history, v.interval, v.next_visit,
    coalesce(v.failures, 0), p.version, p.etag, p.last_modified, p.body_digest, p.text_digest, p.sketch,
    coalesce(v.memory, x''), coalesce(v.told, 0), v.leads_to"""
_JOINED = "JOIN sites s ON s.id = p.site_id LEFT JOIN visited v ON v.page_id = p.id"
FROM_PAGES = f"FROM pages p {_JOINED}"
# A list of ids as a table: one statement reads a whole batch, in the order of the list (hence CROSS).
FROM_LISTED_PAGES = f"FROM json_each(?) listed CROSS JOIN pages p ON p.id = listed.value {_JOINED}"
