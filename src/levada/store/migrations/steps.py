"""Migration steps: what leads from one format of a store to the next.

A step is a file of statements, `ENGINE_FORMAT.sql`, that runs in one transaction, and backfills that follow it.

To change the tables: write them into `schema.sql` of both engines, and the statements that lead there into the newest
file of each, until a release has it; after that, raise `SCHEMA_VERSION` of the engine and add a step with a file of its
own. `tests/store/test_migrations.py` proves that both ways lead to the same tables. Statements end with a semicolon at
the end of a line. They may create tables and indexes, and add columns at the end of a table.

What statements cannot fill cheaply is a `Backfill`: a function that handles some rows after a position and returns the
next position, or None at the end. Each call is a transaction, which stores the position too. So a process that dies at
any point loses at most one batch, and the next one goes on from there. Until the last batch, nobody opens the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from levada.store.rules import text_key
from levada.store.sql.base import UNDER_WAY, Database, Write
from levada.store.sql.statements import Statements

BATCH = 1000  # rows of a backfill in one transaction
_DONE = -1
_POSITION = "migration."  # begins the names of the counters that hold the positions
Fill = Callable[[Write, Statements, int, int], int | None]
"""Handles at most this many rows after a position, 0 at the beginning: `fill(write, sql, position, limit)`."""


@dataclass(frozen=True)
class Backfill:
    name: str
    fill: Fill


@dataclass(frozen=True)
class Step:
    old: int
    new: int
    statements: str  # the name of the file
    backfills: tuple[Backfill, ...] = ()


@dataclass(frozen=True)
class Engine:
    """How a database stores its format, and its steps."""

    name: str
    sql: Statements
    stored_format: str
    set_format: tuple[str, ...]
    steps: Sequence[Step]


def _text_keys(write: Write, sql: Statements, position: int, limit: int) -> int | None:
    """Let every stored page be found by its text."""
    rows = write.rows(sql.keyless, (position, limit))
    keys = [(text_key(site, digest), id) for id, site, digest, stored in rows if stored]
    write.executemany(sql.set_text_key, keys)
    return rows[-1][0] if len(rows) == limit else None


# Backfills of format 7 on SQLite and 4 on PostgreSQL; they work on both.
_BACKFILLS: tuple[Backfill, ...] = (Backfill("text-keys", _text_keys),)

SQLITE_STEPS: tuple[Step, ...] = (Step(6, 7, "sqlite_7.sql", _BACKFILLS),)
POSTGRESQL_STEPS: tuple[Step, ...] = (Step(3, 4, "postgresql_4.sql", _BACKFILLS),)


def sqlite_engine() -> Engine:
    from levada.store.sqlite.frontier import SQLITE

    return Engine("sqlite", SQLITE, "PRAGMA user_version", ("PRAGMA user_version = {}",), SQLITE_STEPS)


def postgresql_engine() -> Engine:
    from levada.store.postgresql.dialect import POSTGRESQL

    stored = "SELECT format FROM levada_store FOR UPDATE"
    changed = ("UPDATE levada_store SET format = {}", "ALTER TABLE levada_store ALTER format SET DEFAULT {}")
    return Engine("postgresql", POSTGRESQL, stored, changed, POSTGRESQL_STEPS)


def migrate(
    database: Database[Any], engine: Engine, *, on_batch: Callable[[int], None] = lambda rows: None, batch: int = BATCH
) -> None:
    """Take every step that is left, from wherever an earlier process came to. `on_batch` is told how many rows each
    batch may have handled. The caller makes sure that nobody else migrates or writes."""
    for step in engine.steps:
        _create(database, engine, step)
        for backfill in step.backfills:
            while _fill(database, engine, step, backfill, batch):
                on_batch(batch)
        _finish(database, engine, step)


def statements_of(script: str) -> list[str]:
    """The statements of a file: each ends with a semicolon at the end of a line."""
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("--"))
    return [each for part in f"{code}\n".split(";\n") if (each := part.strip())]


def _create(database: Database[Any], engine: Engine, step: Step) -> None:
    with database.write("migrate") as write:
        if _format(write, engine) != step.old:
            return
        write.reach("statements")
        for statement in statements_of(files(__package__).joinpath(step.statements).read_text(encoding="utf-8")):
            write.execute(statement)
        write.reach("format")
        _set_format(write, engine, UNDER_WAY + step.new if step.backfills else step.new)


def _fill(database: Database[Any], engine: Engine, step: Step, backfill: Backfill, batch: int) -> bool:
    """Run the next batch; return whether there may be another."""
    name = f"{_POSITION}{backfill.name}"
    read = engine.sql.dialect.written("SELECT n FROM counters WHERE name = ?")
    with database.write("backfill") as write:
        if _format(write, engine) != UNDER_WAY + step.new:
            return False
        ((position,),) = write.rows(read, (name,)) or [(0,)]
        if position == _DONE:
            return False
        write.reach("batch")
        following = backfill.fill(write, engine.sql, position, batch)
        write.reach("position")
        write.count(name, (_DONE if following is None else following) - position)
        return following is not None


def _finish(database: Database[Any], engine: Engine, step: Step) -> None:
    forget = engine.sql.dialect.written("DELETE FROM counters WHERE name = ?")
    with database.write("finish") as write:
        if _format(write, engine) != UNDER_WAY + step.new:
            return
        write.reach("format")
        for backfill in step.backfills:
            write.execute(forget, (f"{_POSITION}{backfill.name}",))
        _set_format(write, engine, step.new)


def _format(write: Write, engine: Engine) -> int:
    ((version,),) = write.rows(engine.stored_format)
    return int(version)


def _set_format(write: Write, engine: Engine, version: int) -> None:
    for statement in engine.set_format:
        write.execute(statement.format(version))
