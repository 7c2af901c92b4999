"""Migrations: both ways lead to the same tables, and a killed one goes on where it was."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from levada.core.errors import StoreError, StoreFull, StoreLocked, StoreOutdated, StoreTooNew
from levada.core.folder import DataFolder
from levada.core.records import PageText
from levada.pages.change import is_noindex
from levada.store.base import StoreLimits
from levada.store.faults import NoFaults
from levada.store.migrations import steps, upgrading
from levada.store.migrations.steps import migrate, postgresql_engine, sqlite_engine, statements_of
from levada.store.migrations.upgrading import store_formats, upgrade_stores
from levada.store.opening import open_reading_store
from levada.store.postgresql import PostgresqlStore
from levada.store.postgresql import schema as postgresql_schema
from levada.store.postgresql.connection import Address
from levada.store.postgresql.database import PostgresqlDatabase
from levada.store.sql.base import UNDER_WAY
from levada.store.sqlite import SqliteStore
from levada.store.sqlite import connection as sqlite_connection
from tests.faults import UPGRADE_POINTS, FaultAt, PointLog
from tests.invariants import check_invariants
from tests.store.older_stores import (
    COUNTED,
    POSTGRESQL_COUNTING,
    SQLITE_COUNTING,
    make_older_schema,
    older_folder,
    unpack_older,
)

pytest_plugins = ["tests.servers.fixtures"]

ROOT = Path(__file__).parents[2]
PAGES = 52


@pytest.fixture
def older(tmp_path: Path) -> DataFolder:
    return DataFolder(older_folder(tmp_path))


def sqlite_tables(path: Path) -> dict[str, object]:
    """Every table with its columns in their order, its keys and indexes, whatever the text that made it."""
    with closing(sqlite3.connect(path)) as connection:

        def ask(question: str) -> list[Any]:
            return connection.execute(question).fetchall()

        found: dict[str, object] = {}
        for schema, name, kind, _, without_rowid, strict in ask("PRAGMA table_list"):
            if schema == "main" and not name.startswith("sqlite_"):
                columns, keys = ask(f'PRAGMA table_xinfo("{name}")'), ask(f'PRAGMA foreign_key_list("{name}")')
                found[name] = kind, without_rowid, strict, columns, keys
        for name, table, text in ask("SELECT name, tbl_name, sql FROM sqlite_master WHERE type != 'table'"):
            found[name] = table, " ".join((text or "").split())
        return found


def postgresql_tables(address: str, schema: str) -> dict[str, list[Any]]:
    """The columns, indexes, constraints and sequences of a schema."""
    questions = {
        "columns": """SELECT table_name, ordinal_position, column_name, data_type, is_nullable, column_default,
            collation_name, is_identity FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, 2""",
        "indexes": """SELECT tablename, indexname, replace(indexdef, schemaname, '') FROM pg_indexes
            WHERE replace(schemaname, '"', '') = %s ORDER BY 1, 2""",
        "constraints": """SELECT c.relname, k.conname, pg_get_constraintdef(k.oid) FROM pg_constraint k
            JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = %s AND k.contype != 'n' ORDER BY 1, 2""",
        "sequences": """SELECT sequence_name, start_value, data_type FROM information_schema.sequences
            WHERE sequence_schema = %s ORDER BY 1""",
        "storage": """SELECT c.relname, a.attname, a.attstorage, c.reloptions FROM pg_attribute a
            JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = %s AND c.relkind = 'r' AND a.attnum > 0 ORDER BY 1, 2""",
    }
    with psycopg.connect(address, autocommit=True) as connection:
        return {
            name: connection.execute(question.encode(), (schema,)).fetchall() for name, question in questions.items()
        }


def test_a_migrated_sqlite_store_has_the_tables_of_a_new_one(older: DataFolder, tmp_path: Path) -> None:
    SqliteStore(tmp_path / "new.db").close()
    upgrade_stores(older)
    assert sqlite_tables(older.database) == sqlite_tables(tmp_path / "new.db")


def test_a_migrated_postgresql_store_has_the_tables_of_a_new_one(postgresql: str) -> None:
    make_older_schema(postgresql, "migrated")
    with closing(
        PostgresqlDatabase(Address(postgresql, "migrated"), StoreLimits(), NoFaults(), read_only=False, older=True)
    ) as database:
        migrate(database, postgresql_engine())
    PostgresqlStore(postgresql, schema="made_new").close()
    assert postgresql_tables(postgresql, "migrated") == postgresql_tables(postgresql, "made_new")


def test_steps_lead_from_the_oldest_format_to_ours_without_a_gap() -> None:
    for engine, module in ((sqlite_engine(), sqlite_connection), (postgresql_engine(), postgresql_schema)):
        formats = [engine.steps[0].old, *(step.new for step in engine.steps)]
        assert formats == list(range(module.OLDEST_VERSION, module.SCHEMA_VERSION + 1))
        assert [step.old for step in engine.steps] == formats[:-1]


def test_a_statement_ends_with_a_semicolon_at_the_end_of_a_line() -> None:
    script = "-- a comment;\nCREATE TABLE a (x); \nCREATE TABLE b (\n    y -- inside\n);\nINSERT INTO a VALUES (';')"
    assert statements_of(script.replace("; \n", ";\n")) == [
        "CREATE TABLE a (x)",
        "CREATE TABLE b (\n    y -- inside\n)",
        "INSERT INTO a VALUES (';')",
    ]


def test_an_upgraded_page_is_found_by_its_text(older: DataFolder) -> None:
    upgrade_stores(older)
    with closing(SqliteStore(older.database)) as store:
        pages = [page for document in store.scan() if (page := store.page(document.url))]
        shown = [PageText(page.site, page.text_digest or b"") for page in pages if not is_noindex(page.text_digest)]
        assert len(shown) > 10
        originals = store.originals(shown)
        assert all(originals)
        assert sum(url == page.url for url, page in zip(originals, pages, strict=False)) > 10


def test_an_upgrade_passes_every_point(older: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "SQLITE_STEPS", SQLITE_COUNTING)
    passed = PointLog()
    upgrade_stores(older, faults=passed)
    assert set(passed.points) == set(UPGRADE_POINTS)


def test_kill_9_at_every_point_of_an_upgrade_leaves_a_store_that_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.store.kill_upgrading", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    ends = json.loads(done.stdout)
    assert {name.rpartition("-")[0] for name in ends} == set(UPGRADE_POINTS)
    assert set(ends.values()) == {-signal.SIGKILL}
    for name in ends:
        folder = DataFolder(tmp_path / name)
        with closing(SqliteStore(folder.database)) as store:
            check_invariants(_without_test_counts(store, folder))
            assert store.stats(0.0).known == PAGES
        assert [path.name for path in folder.path.glob("*.backup*")] == ["levada.db.format-6.backup"], name
        with closing(sqlite3.connect(folder.path / "levada.db.format-6.backup")) as kept:
            assert kept.execute("PRAGMA user_version").fetchone() == (6,)
            assert kept.execute("SELECT count(*) FROM pages").fetchone() == (PAGES,)


def _without_test_counts(store: SqliteStore, folder: DataFolder) -> SqliteStore:
    """Every page was filled once by each backfill, and no position is left."""
    with closing(sqlite3.connect(folder.database, isolation_level=None)) as connection:
        counts = dict(connection.execute("SELECT name, n FROM counters"))
        assert counts[COUNTED] == 2 * PAGES
        assert [name for name in counts if name.startswith("migration.")] == []
    return store


def test_an_interrupted_upgrade_is_not_opened_by_an_older_levada(
    older: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "SQLITE_STEPS", SQLITE_COUNTING)
    with pytest.raises(StoreFull):
        upgrade_stores(older, faults=FaultAt("backfill.batch", OSError(errno.ENOSPC, "full")))
    with closing(sqlite3.connect(older.database)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (UNDER_WAY + SQLITE_COUNTING[-1].new,)
    with pytest.raises(StoreOutdated, match="is being upgraded"):
        SqliteStore(older.database)
    (state,) = store_formats(older)
    assert (state.interrupted, state.format, state.outdated) == (True, 6, True)
    upgrade_stores(older)
    assert not store_formats(older)[0].outdated


@pytest.mark.parametrize("point", UPGRADE_POINTS[:-1])
def test_a_full_disk_loses_nothing(older: DataFolder, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "SQLITE_STEPS", SQLITE_COUNTING)
    with pytest.raises(StoreFull, match="no space left"):
        upgrade_stores(older, faults=FaultAt(point, OSError(errno.ENOSPC, "no space")))
    upgrade_stores(older)
    with closing(open_reading_store(older)) as store:
        assert store.stats(0.0).known == PAGES


def test_without_room_for_the_backup_nothing_is_touched(older: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = older.database.read_bytes()
    usage = shutil.disk_usage(older.path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(StoreFull, match=r"needs .* and 1.0 kB are free: make room, or add --no-backup"):
        upgrade_stores(older)
    assert older.database.read_bytes() == before
    assert list(older.path.glob("*.backup*")) == []


def test_an_upgrade_without_a_backup_keeps_none(older: DataFolder) -> None:
    (was,) = upgrade_stores(older, backup=False)
    assert (was.format, was.backup) == (6, "")
    assert list(older.path.glob("*.backup*")) == []


def test_an_upgraded_store_is_not_upgraded_again(older: DataFolder) -> None:
    assert len(upgrade_stores(older)) == 1
    assert upgrade_stores(older) == []


def test_a_store_of_a_newer_levada_is_not_touched(older: DataFolder) -> None:
    with closing(sqlite3.connect(older.database)) as connection:
        connection.execute("PRAGMA user_version = 99")
    for attempt in (store_formats, upgrade_stores, open_reading_store):
        with pytest.raises(StoreTooNew, match="update Levada"):
            attempt(older)


def test_a_store_older_than_any_that_can_be_upgraded_is_not_touched(older: DataFolder) -> None:
    with closing(sqlite3.connect(older.database)) as connection:
        connection.execute("PRAGMA user_version = 5")
    with pytest.raises(StoreError, match=r"6 to \d+ can be read"):
        open_reading_store(older)


def test_reading_an_older_store_upgrades_it_unless_it_is_written(older: DataFolder) -> None:
    other = DataFolder(older.path)
    with other.locked(), pytest.raises(StoreLocked, match="cannot be upgraded while it is written"):
        open_reading_store(older)
    with closing(open_reading_store(older)) as store:
        assert store.stats(0.0).known == PAGES
    with closing(open_reading_store(older)) as store:
        check_invariants(store)


def test_a_large_store_waits_for_the_command(older: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrading, "AUTOMATIC_BYTES", 1000)
    with pytest.raises(StoreOutdated, match="takes a while: run 'levada upgrade --data"):
        open_reading_store(older)
    assert store_formats(older)[0].outdated


def test_a_folder_that_cannot_be_written_says_who_can_upgrade_it(
    older: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write everywhere
    with pytest.raises(StoreOutdated, match="as a user who may"):
        open_reading_store(older)


def test_all_shards_are_upgraded(tmp_path: Path) -> None:
    folder = DataFolder(unpack_older(tmp_path) / "sharded")
    upgraded = upgrade_stores(folder)
    assert len(upgraded) == len(store_formats(folder)) > 1
    assert not any(state.outdated for state in store_formats(folder))
    with closing(open_reading_store(folder)) as store:
        assert store.stats(0.0).known == PAGES
        check_invariants(store)


def test_a_backfill_on_a_server_goes_on_and_fills_each_page_once(postgresql: str) -> None:
    address = Address(postgresql, "filled")
    make_older_schema(postgresql, "filled")
    with psycopg.connect(postgresql, autocommit=True) as admin:
        admin.execute("""INSERT INTO filled.pages SELECT n, 1, 'http://a/' || n, '', 0, 0, 0, 0, 0, 0
            FROM generate_series(1, 25) n""")
    engine = replace(postgresql_engine(), steps=POSTGRESQL_COUNTING)
    for point in ("migrate.format", "backfill.position", "finish.format", "never"):
        faults = FaultAt(point, OSError(errno.ENOSPC, "full"), nth=2 if point.startswith("backfill") else 1)
        with closing(PostgresqlDatabase(address, StoreLimits(), faults, read_only=False, older=True)) as database:
            if point == "never":
                migrate(database, engine, batch=10)
            else:
                with pytest.raises(StoreFull):
                    migrate(database, engine, batch=10)
    with psycopg.connect(postgresql, autocommit=True) as admin:
        counts: dict[str, int] = dict(admin.execute("SELECT name, n FROM filled.counters").fetchall())
    assert counts == {COUNTED: 50}
    with closing(PostgresqlStore(postgresql, schema="filled", read_only=True)) as store:
        assert store.format == postgresql_schema.SCHEMA_VERSION
