"""Stores of every released format, for tests of migrations."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import psycopg
from psycopg import sql

from levada.store.migrations.steps import POSTGRESQL_STEPS, SQLITE_STEPS, Backfill, Step
from levada.store.sql.base import Write
from levada.store.sql.statements import Statements

DATA = Path(__file__).parents[1] / "data"
COUNTED = "pages that the test filled"


def unpack_older(folder: Path) -> Path:
    """The folders that 0.3.0 wrote, with SQLite stores of format 6."""
    with tarfile.open(DATA / "older-folder.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def older_folder(folder: Path) -> Path:
    """One collection of format 6 in one file, without index and the like."""
    unpack_older(folder / "unpacked")
    target = folder / "collection"
    target.mkdir()
    shutil.copy(folder / "unpacked" / "plain" / "levada.db", target / "levada.db")
    shutil.copy(folder / "unpacked" / "plain" / "settings.json", target / "settings.json")
    shutil.rmtree(folder / "unpacked")
    return target


def make_older_schema(address: str, schema: str) -> None:
    """An empty PostgreSQL store of format 3."""
    tables = (DATA / "postgresql-format-3.sql").read_text(encoding="utf-8")
    with psycopg.connect(address, autocommit=True) as admin:
        name = sql.Identifier(schema)
        admin.execute(sql.SQL("CREATE SCHEMA {}; SET search_path = {}").format(name, name))
        admin.execute(tables.encode())


def fill(write: Write, sql: Statements, position: int, limit: int) -> int | None:
    """A backfill that counts each page that it is given."""
    rows = write.rows(sql.urls_after, (position, limit))
    write.count(COUNTED, len(rows))
    return rows[-1][0] if rows else None


def counting(step: Step) -> Step:
    """The same step with two backfills more."""
    return replace(step, backfills=(*step.backfills, Backfill("first", fill), Backfill("second", fill)))


SQLITE_COUNTING = tuple(counting(step) for step in SQLITE_STEPS)
POSTGRESQL_COUNTING = tuple(counting(step) for step in POSTGRESQL_STEPS)
