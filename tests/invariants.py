"""Invariants of a store, above all after a crash, read from its tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
from psycopg import sql

from levada.core.records import PageState
from levada.store.postgresql import PostgresqlStore
from levada.store.rows import STATES
from levada.store.sharded import ShardedStore
from levada.store.sharded.remote import RemoteShard
from levada.store.sqlite import SqliteStore

__all__ = ["check_invariants"]

_LIVE = STATES.index(PageState.LIVE)

NEVER = {
    "no more visits are remembered than there were, ten at most": """
        SELECT page_id FROM visited
        WHERE visits < 1 OR length(history) % 11 != 0 OR length(history) > 11 * min(visits, 10)""",
    "what was told of a page fits into a byte": """
        SELECT page_id FROM visited WHERE told NOT BETWEEN 0 AND 255""",
    "a page is either visited or not": """
        SELECT id FROM pages p WHERE 1 !=
        (SELECT count(*) FROM visited v WHERE v.page_id = p.id AND v.site_id = p.site_id)
        + (SELECT count(*) FROM unvisited u WHERE u.page_id = p.id AND u.site_id = p.site_id
           AND u.priority = p.priority)""",
    "a site counts its pages": """
        SELECT site FROM sites s WHERE pages != (SELECT count(*) FROM pages p WHERE p.site_id = s.id)""",
    "a document's version is stored": """
        SELECT id FROM pages p WHERE version > 0
        AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.page_id = p.id AND v.version = p.version)""",
    "the newest version is the document's": """
        SELECT page_id FROM versions v GROUP BY page_id
        HAVING max(version) != (SELECT version FROM pages p WHERE p.id = v.page_id)""",
    "versions are numbered from 1": """
        SELECT page_id FROM versions WHERE version < 1""",
    "a document that was stored has a place in the order of changes": """
        SELECT id FROM pages WHERE (version > 0) != (seq IS NOT NULL)""",
    "what is not stored is not found by its text": """
        SELECT id FROM pages WHERE text_key IS NOT NULL AND (gone OR version = 0)""",
    "nothing live is gone": f"""
        SELECT v.page_id FROM visited v JOIN pages p ON p.id = v.page_id
        WHERE v.state = {_LIVE} AND p.gone""",
    "a site with a page to lease has a turn, no later than the page may be had": """
        SELECT s.site FROM sites s JOIN pages p ON p.site_id = s.id LEFT JOIN visited v ON v.page_id = p.id
        WHERE (v.page_id IS NULL OR v.next_visit IS NOT NULL)
        AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.page_id = p.id AND l.live = 1)
        AND (s.due_at IS NULL OR s.due_at > max(s.turn_at, s.rest_until, coalesce(v.next_visit,
             (SELECT max(n.found_at) FROM unvisited u JOIN pages n ON n.id = u.page_id
              WHERE u.site_id = s.id))))""",
    "tokens are never handed out twice": """
        SELECT token FROM leases GROUP BY token HAVING count(*) > 1
        UNION SELECT token FROM leases WHERE token > (SELECT n FROM counters WHERE name = 'token')""",
    "seq counts every change": """
        SELECT seq FROM pages WHERE seq > (SELECT n FROM counters WHERE name = 'seq')""",
}

NEVER_UNLESS_THINNED = {
    "versions are kept without a gap": """
        SELECT page_id FROM versions GROUP BY page_id HAVING count(*) != max(version) - min(version) + 1""",
}

COUNTED = {
    "sites": "SELECT count(*) FROM sites",
    "unvisited": "SELECT count(*) FROM unvisited",
    "stored": "SELECT count(*) FROM pages WHERE version > 0 AND NOT gone",
    "versions": "SELECT count(*) FROM versions",
}


# The same laws in the other tongue; `pages` and `documents` are one table in the embedded store.
_DIALECT = {
    "min(visits, 10)": "least(visits, 10)",
    "max(s.turn_at": "greatest(s.turn_at",
    "l.live = 1": "l.live",
    "SELECT n FROM counters WHERE name = 'token'": "SELECT last_value FROM tokens",
    "?": "%s",
}
_ONE_TABLE = """CREATE TEMPORARY VIEW pages AS
    SELECT p.*, coalesce(d.version, 0) AS version, d.seq, coalesce(d.gone, false) AS gone,
    d.text_key
    FROM {}.pages p LEFT JOIN {}.documents d ON d.page_id = p.id"""

Ask = Callable[..., list[tuple[Any, ...]]]


def check_invariants(store: object, *, thinned: bool = False) -> None:
    """Fails naming the law that is broken, and where; of a store of several shards, in any of them. `thinned`: its
    settings have `store.thin`, which keeps one version of a day."""
    if isinstance(store, ShardedStore):
        for shard in store.shards:
            check_invariants(shard, thinned=thinned)
        return
    if isinstance(store, RemoteShard):
        store.begin(lambda shard: check_invariants(shard, thinned=thinned), bounded=False)()
        return
    laws = NEVER if thinned else NEVER | NEVER_UNLESS_THINNED
    if isinstance(store, PostgresqlStore):
        _check_schema(store, laws)
        return
    assert isinstance(store, SqliteStore)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        _check_laws(lambda question, *asked: connection.execute(question, asked).fetchall(), laws)


def _check_schema(store: PostgresqlStore, laws: dict[str, str]) -> None:
    store.check()
    schema = sql.Identifier(store.schema)
    with psycopg.connect(store.address.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("SET search_path = pg_temp, {}").format(schema))
        connection.execute(sql.SQL(_ONE_TABLE).format(schema, schema))

        def ask(question: str, *asked: Any) -> list[tuple[Any, ...]]:
            for ours, theirs in _DIALECT.items():
                question = question.replace(ours, theirs)
            return connection.execute(question.replace("% 11", "%% 11").encode(), asked).fetchall()

        _check_laws(ask, laws)


def _check_laws(ask: Ask, laws: dict[str, str]) -> None:
    for law, breakers in laws.items():
        assert ask(breakers) == [], law
    counters: dict[str, int] = dict(ask("SELECT name, n FROM counters"))
    for name, question in COUNTED.items():
        assert [(counters.get(name, 0),)] == ask(question), name
    for code, state in enumerate(STATES):
        there = ask(
            "SELECT count(*) FROM pages p LEFT JOIN visited v ON v.page_id = p.id WHERE coalesce(v.state, 0) = ?",
            code,
        )
        assert [(counters.get(f"state.{state}", 0),)] == there, state
    refused: dict[str, int] = dict(ask("SELECT reason, sum(n) FROM refusals GROUP BY reason"))
    assert {f"refused.{reason}": n for reason, n in refused.items()} == {
        name: n for name, n in counters.items() if name.startswith("refused.")
    }
