"""The tables of a PostgreSQL store: creation, recognition and checks.

The tables are those of the SQLite store, split where this server needs it: an update writes a whole new row, and a
new entry in every index unless no indexed column changed and the new row fits beside the old one. Therefore:
- `pages` is never updated: what was found stays, and so does the index of URLs. What a stored document changes is
  in `documents`, what every visit changes in `visited`.
- URLs are unique by their first 400 characters and, only if they are longer, a digest of the whole: an index entry
  must fit into a third of a page. Their order is that of code points, whatever the server's locale.
- Contents come compressed, and are not compressed again.
- `sites.numbered` is how many page numbers a site has used: more than it has pages where some moved to another
  shard. A fenced lease is one of a page that moves; it never expires. `outbox`, `departed` and `arrived` are empty
  in a store that is not one of several shards.

There are no foreign keys: each row is written by a transaction that holds its site, and `check` verifies the
relations. Enumerations are stored as the numbers of `rows`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from levada.core.errors import StoreDamaged, StoreError
from levada.store.rows import Row
from levada.store.rules import first_site, first_token
from levada.store.sql.base import check_format

if TYPE_CHECKING:
    import psycopg

_APPLICATION = "levada"
SCHEMA_VERSION = 3
URL_INDEXED = 400

_TABLES = f"""
CREATE TABLE levada_store (
    application text NOT NULL DEFAULT '{_APPLICATION}',
    format bigint NOT NULL DEFAULT {SCHEMA_VERSION}
);
CREATE TABLE sites (
    id bigint PRIMARY KEY,
    site text COLLATE "C" NOT NULL,
    admitted boolean NOT NULL DEFAULT false,
    pages bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    rest_until double precision NOT NULL DEFAULT 0,
    delay double precision,
    turn_at double precision NOT NULL DEFAULT 0,
    taken bigint NOT NULL DEFAULT 0,
    due_at double precision,
    numbered bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX sites_by_name ON sites (site);
CREATE INDEX sites_by_turn ON sites (due_at, taken, id) WHERE due_at IS NOT NULL;
CREATE TABLE robots (site_id bigint PRIMARY KEY, records bytea NOT NULL);
CREATE TABLE refusals (
    site_id bigint NOT NULL,
    reason text COLLATE "C" NOT NULL,
    n bigint NOT NULL,
    example text NOT NULL,
    PRIMARY KEY (site_id, reason)
) WITH (fillfactor = 70);

CREATE TABLE pages (
    id bigint PRIMARY KEY,
    site_id bigint NOT NULL,
    url text COLLATE "C" NOT NULL,
    url_rest bytea NOT NULL,
    kind bigint NOT NULL,
    how bigint NOT NULL,
    depth bigint NOT NULL,
    hops bigint NOT NULL,
    priority bigint NOT NULL,
    found_at double precision NOT NULL,
    found_on bigint
);
CREATE UNIQUE INDEX pages_by_url ON pages (left(url, {URL_INDEXED}), url_rest);
CREATE TABLE documents (
    page_id bigint PRIMARY KEY,
    seq bigint,
    version bigint NOT NULL DEFAULT 0,
    gone boolean NOT NULL DEFAULT false,
    etag text,
    last_modified text,
    body_digest bytea,
    text_digest bytea,
    sketch bytea
);
CREATE UNIQUE INDEX documents_by_change ON documents (seq) WHERE seq IS NOT NULL;
CREATE TABLE unvisited (
    site_id bigint NOT NULL,
    priority bigint NOT NULL,
    page_id bigint NOT NULL,
    PRIMARY KEY (site_id, priority, page_id)
);
CREATE TABLE visited (
    page_id bigint PRIMARY KEY,
    site_id bigint NOT NULL,
    kind bigint NOT NULL,
    state bigint NOT NULL,
    visits bigint NOT NULL,
    failures bigint NOT NULL,
    met_at double precision NOT NULL,
    interval double precision,
    next_visit double precision,
    reason text,
    leads_to text,
    told bigint NOT NULL DEFAULT 0,
    history bytea NOT NULL,
    memory bytea NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX visited_due ON visited (site_id, next_visit, page_id) WHERE next_visit IS NOT NULL;
CREATE TABLE leases (
    page_id bigint PRIMARY KEY,
    site_id bigint NOT NULL,
    token bigint NOT NULL,
    expires_at double precision NOT NULL,
    live boolean NOT NULL DEFAULT true,
    fenced boolean NOT NULL DEFAULT false
);
CREATE INDEX leases_by_end ON leases (expires_at) WHERE live AND NOT fenced;
CREATE INDEX leases_fenced ON leases (page_id) WHERE fenced;
CREATE TABLE versions (
    page_id bigint NOT NULL,
    version bigint NOT NULL,
    fetched_at double precision NOT NULL,
    title text NOT NULL,
    language text NOT NULL,
    charset text NOT NULL,
    status bigint NOT NULL,
    words bigint NOT NULL,
    distinct_words bigint NOT NULL,
    similarity double precision NOT NULL,
    searchable boolean NOT NULL,
    headers bytea NOT NULL,
    content_zstd bytea NOT NULL,
    PRIMARY KEY (page_id, version)
);
ALTER TABLE versions ALTER content_zstd SET STORAGE EXTERNAL;
CREATE TABLE happenings (
    seq bigint PRIMARY KEY,
    at double precision NOT NULL,
    what bigint NOT NULL,
    page_id bigint NOT NULL,
    version bigint NOT NULL,
    similarity double precision NOT NULL
);
CREATE TABLE counters (name text COLLATE "C" PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 20);

CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    found bytea NOT NULL,
    found_on bigint NOT NULL,
    at double precision NOT NULL
);
CREATE TABLE departed (
    page_id bigint PRIMARY KEY,
    seq bigint NOT NULL UNIQUE,
    url text NOT NULL,
    site text NOT NULL
);
CREATE TABLE arrived (page_id bigint PRIMARY KEY, version bigint NOT NULL);
"""

_OLDEST = 120_000
_ENCODING = "SELECT current_setting('server_encoding')"
_THERE = """SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s"""
_OURS = _THERE + " AND c.relname = 'levada_store'"
# Two processes may open a missing store at the same time: one creates it, the other waits for it.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('levada store ' || %s, 0))"


# Reading all contents is the point: a server with checksums then says which page of its disk is broken.
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


def prepare(
    connection: psycopg.Connection[Any], place: str, schema: str, *, shard: int = 0, make: bool = False
) -> None:
    """Check that the schema holds a store of our format; create it if there is nothing and `make` is set."""
    if connection.info.server_version < _OLDEST:
        version = connection.info.parameter_status("server_version")
        raise StoreError(f"{place} is version {version}: Levada needs PostgreSQL {_OLDEST // 10_000} or newer")
    (encoding,) = connection.execute(_ENCODING).fetchone() or ("",)
    if encoding != "UTF8":
        raise StoreError(f"{place} keeps text as {encoding}: name a database with the encoding UTF8")
    if _is_empty(connection, schema):
        if not make:
            raise StoreError(f"there is nothing in {place} yet: crawl something first")
        _make(connection, schema, shard)
    check_format(place, _stored_format(connection, place, schema), SCHEMA_VERSION, "schema")


def check(ask: Callable[[str], list[Row]], place: str) -> None:
    """Read everything; raise a `StoreDamaged` that says what is wrong."""
    ask(_CONTENTS)
    for trouble, question in _LAWS.items():
        if rows := ask(question):
            where = rows[0][0]
            raise StoreDamaged(f"{place} is damaged ({trouble}: {where}): restore a copy, or crawl again")


def _stored_format(connection: psycopg.Connection[Any], place: str, schema: str) -> int:
    (ours,) = connection.execute(_OURS, (schema,)).fetchone() or (0,)
    row = connection.execute("SELECT application, format FROM levada_store").fetchone() if ours else None
    if row is None or row[0] != _APPLICATION:
        raise StoreDamaged(f"{place} holds tables, but not of Levada: name another schema")
    return int(row[1])


def _is_empty(connection: psycopg.Connection[Any], schema: str) -> bool:
    row = connection.execute(_THERE, (schema,)).fetchone()
    return row is None or row[0] == 0


def _make(connection: psycopg.Connection[Any], schema: str, shard: int) -> None:
    from psycopg import sql

    with connection.transaction():
        connection.execute(_ONE_AT_A_TIME, (schema,))
        if not _is_empty(connection, schema):  # another process was first while we waited
            return
        known = connection.execute("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,)).fetchone()
        if not known:  # a user who may not create schemas can still use an existing one
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(_tables(shard).encode())


def _tables(shard: int) -> str:
    """The statements that create an empty store. Ids begin where those of the shard do."""
    return (
        f"{_TABLES}INSERT INTO levada_store DEFAULT VALUES;"
        f"CREATE SEQUENCE site_numbers START {first_site(shard) + 1};"
        f"CREATE SEQUENCE tokens START {first_token(shard) + 1};"
    )
