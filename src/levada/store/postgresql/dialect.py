"""The PostgreSQL dialect of the shared statements, and escaping of text that the server refuses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from levada.core.hashing import content_digest
from levada.store.postgresql.schema import URL_INDEXED
from levada.store.rules import plain_text
from levada.store.sql.base import Dialect
from levada.store.sql.statements import Statements

# A code point that Unicode never assigns: text hardly ever holds it, and then it is escaped itself.
_ESCAPE = "\ufdd0"
_NAMED = re.compile(r"(?<!:):([a-z_]+)")


def storable(text: str) -> str:
    """The text with every NUL escaped, the one character that PostgreSQL refuses. Nearly always the same text."""
    text = plain_text(text)
    if "\0" not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")


def restored(text: str) -> str:
    if _ESCAPE not in text:
        return text
    return text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE)


def url_rest(url: str) -> bytes:
    """The digest that tells long URLs with the same beginning apart."""
    written = storable(url)
    return content_digest(written.encode()) if len(written) > URL_INDEXED else b""


def urls_listed(urls: Sequence[str]) -> tuple[list[str], list[bytes]]:
    return list(urls), [url_rest(url) for url in urls]


def _written(sql: str) -> str:
    """The statement with psycopg's parameter marks."""
    return _NAMED.sub(r"%(\1)s", sql.replace("%", "%%").replace("?", "%s"))


_BEGINNING = f"left(p.url, {URL_INDEXED})"  # the index holds the beginnings of URLs; the whole URL decides
_DOCUMENT = "page_id, etag, last_modified, body_digest, text_digest"
_VALIDATORS_KEPT = """etag = excluded.etag, last_modified = excluded.last_modified,
    body_digest = excluded.body_digest, text_digest = excluded.text_digest"""

POSTGRESQL = Statements(
    Dialect(
        written=_written,
        greatest="greatest",
        among="{} = ANY(?::bigint[])",
        ids="unnest(?::bigint[]) WITH ORDINALITY listed(value, place) JOIN",
        in_order="ORDER BY listed.place",
        among_names="{} = ANY(?::text[])",
        urls=f"""FROM unnest(?::text[], ?::bytea[]) listed(url, rest)
            JOIN pages p ON {_BEGINNING} = left(listed.url, {URL_INDEXED}) AND p.url_rest = listed.rest""",
        by_url=f"{_BEGINNING} = left(?, {URL_INDEXED}) AND p.url_rest = ?",
        url_range=f"""{_BEGINNING} >= left(:low, {URL_INDEXED}) AND {_BEGINNING} <= left(:high, {URL_INDEXED})
            AND p.url >= :low AND p.url < :high""",
        url_order=f"ORDER BY {_BEGINNING}, p.url",
        documents="documents d JOIN pages p ON p.id = d.page_id",
        document="d",
        document_id="d.page_id",
        joined_document="LEFT JOIN documents d ON d.page_id = p.id",
        version="coalesce(d.version, 0)",
        gone="coalesce(d.gone, false)",
        no_bytes="''::bytea",
        leased="l.live AND NOT l.fenced",
        fenced="l.fenced",
        first_of_union="""({first} ORDER BY 1 LIMIT :limit) UNION ALL ({second} ORDER BY 1 LIMIT :limit)
            ORDER BY 1 LIMIT :limit""",
        workable="""EXISTS (SELECT 1 FROM sites s CROSS JOIN LATERAL (
                SELECT 1 FROM unvisited u WHERE u.site_id = s.id LIMIT 1) new WHERE s.rest_until <= :now)
            OR EXISTS (SELECT 1 FROM sites s CROSS JOIN LATERAL (
                SELECT 1 FROM visited v WHERE v.site_id = s.id AND v.next_visit <= :now LIMIT 1) due
                WHERE s.rest_until <= :now)""",
        size="""(SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_catalog.pg_class c
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = current_schema() AND c.relkind = 'r')""",
        insert_page="""INSERT INTO pages
            (id, site_id, url, kind, how, depth, hops, priority, found_at, found_on, url_rest)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        keep_validators=f"""INSERT INTO documents ({_DOCUMENT}) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (page_id) DO UPDATE SET {_VALIDATORS_KEPT}""",
        keep_document=f"""INSERT INTO documents ({_DOCUMENT}, version, gone, sketch, text_key, seq)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, {{step}}) ON CONFLICT (page_id) DO UPDATE SET {_VALIDATORS_KEPT},
            version = excluded.version, gone = excluded.gone, sketch = excluded.sketch,
            text_key = excluded.text_key, seq = excluded.seq""",
        step="(SELECT n FROM counters WHERE name = 'seq') - ?",
        # Numbers between two epochs were never given: a log that is kept so long goes on before them.
        oldest_kept="""coalesce((SELECT CASE WHEN {0} > e.begins THEN {0} ELSE e.after - e.begins + {0} END
            FROM epochs e ORDER BY e.begins DESC LIMIT 1), {0})""",
        no_longer_new="""DELETE FROM unvisited u
            USING unnest(?::bigint[]) listed(id) JOIN pages p ON p.id = listed.id
            WHERE u.site_id = p.site_id AND u.priority = p.priority AND u.page_id = p.id""",
        forget_document=("DELETE FROM documents WHERE page_id = ANY(?::bigint[])",),
        id_list=list,
        name_list=list,
        url_list=urls_listed,
        url_key=lambda url: (url, url_rest(url)),
        page_row=lambda row: (*row, url_rest(row[2])),
    )
)
