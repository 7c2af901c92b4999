"""Is what lies in the schema sound? What must be true of it at any moment, asked of the server."""

from __future__ import annotations

from levada.adapters.postgresql.database import Database
from levada.errors import StoreDamaged

__all__ = ["check"]

# Reading every content is the point: a server that keeps checksums then says which page of its disk is broken.
_CONTENTS = "SELECT count(sha256(content_zstd)) FROM versions"
_LAWS = {
    "a page is neither visited nor waiting, or both": """SELECT p.url FROM pages p WHERE 1 !=
        (SELECT count(*) FROM visited v WHERE v.page_id = p.id AND v.site_id = p.site_id)
        + (SELECT count(*) FROM unvisited u WHERE u.site_id = p.site_id AND u.priority = p.priority
           AND u.page_id = p.id) LIMIT 1""",
    "a page's site is not there": """SELECT p.url FROM pages p
        WHERE NOT EXISTS (SELECT 1 FROM sites s WHERE s.id = p.site_id) LIMIT 1""",
    "a document has no content": """SELECT d.page_id::text FROM documents d WHERE d.version > 0
        AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.page_id = d.page_id AND v.version = d.version) LIMIT 1""",
    "a stored document has no place in the order of changes": """SELECT d.page_id::text FROM documents d
        WHERE (d.version > 0) != (d.seq IS NOT NULL) LIMIT 1""",
    "a step was not counted": """SELECT d.seq::text FROM documents d WHERE d.seq >
        coalesce((SELECT n FROM counters WHERE name = 'seq'), 0) LIMIT 1""",
    "a lease has no page": """SELECT l.page_id::text FROM leases l
        WHERE NOT EXISTS (SELECT 1 FROM pages p WHERE p.id = l.page_id AND p.site_id = l.site_id) LIMIT 1""",
}


def check(database: Database) -> None:
    """Read everything; `StoreDamaged` says what is wrong."""
    database.rows(_CONTENTS)
    for trouble, question in _LAWS.items():
        if rows := database.rows(question):
            where = rows[0][0]
            raise StoreDamaged(f"{database.place} is damaged ({trouble}: {where}): restore a copy, or crawl again")
