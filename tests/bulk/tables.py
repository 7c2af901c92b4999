"""A table with given rows in every kind of source, as fixtures."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pyarrow
import pyarrow.parquet
import pymysql
import pytest

from tests.bulk.loads import Place, Rows

__all__ = ["csv_table", "maria_table", "parquet_table", "postgres_table", "sqlite_table", "table"]
_names = count(1)


@pytest.fixture
def postgres_table(postgresql: str) -> Place:
    def make(table: str, rows: Rows, key: str, value: str) -> str:
        with psycopg.connect(postgresql, autocommit=True) as line:
            line.execute(f"CREATE TABLE {table} (k {key}, v {value})")
            with line.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            line.execute(f"ANALYZE {table}")
        return postgresql

    return Place(postgresql, make)


@pytest.fixture
def maria_table(mariadb: str) -> Place:
    parts = urlsplit(mariadb)

    def make(table: str, rows: Rows, key: str, value: str) -> str:
        types = {"text": "varchar(200)"}
        line = pymysql.connect(host=parts.hostname, port=parts.port, user="root", autocommit=True, charset="utf8mb4")
        with closing(line), line.cursor() as cursor:
            cursor.execute("CREATE DATABASE IF NOT EXISTS bulk CHARACTER SET utf8mb4")
            cursor.execute("USE bulk")
            cursor.execute(f"CREATE TABLE {table} (k {types.get(key, key)}, v {types.get(value, value)})")
            cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s)", rows)
        return f"{mariadb}bulk"

    return Place(mariadb, make)


@pytest.fixture
def sqlite_table(tmp_path: Path) -> Place:
    def make(table: str, rows: Rows, key: str, value: str) -> str:
        with closing(sqlite3.connect(tmp_path / "source.db")) as base, base:
            base.execute(f"CREATE TABLE {table} (k {key}, v {value})")
            base.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
        return f"sqlite://{tmp_path / 'source.db'}"

    return Place("", make)


@pytest.fixture
def csv_table(tmp_path: Path) -> Place:
    def make(table: str, rows: Rows, key: str, value: str) -> str:
        with (tmp_path / f"{table}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerows([("k", "v"), *rows])
        return str(tmp_path / f"{table}.csv")

    return Place("", make)


@pytest.fixture
def parquet_table(tmp_path: Path) -> Place:
    def make(table: str, rows: Rows, key: str, value: str) -> str:
        types = {"bigint": pyarrow.int64(), "text": pyarrow.string()}
        columns = [pyarrow.array([row[at] for row in rows], types[name]) for at, name in enumerate((key, value))]
        pyarrow.parquet.write_table(
            pyarrow.table(columns, names=["k", "v"]), tmp_path / f"{table}.parquet", row_group_size=7
        )
        return str(tmp_path / f"{table}.parquet")

    return Place("", make)


@pytest.fixture
def table(worker_id: str) -> str:
    """A name of its own on servers that all test processes share."""
    return f"bulk_{worker_id}_{next(_names)}"
