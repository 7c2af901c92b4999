"""Tables to load, and whole loads of them: for tests of table sources."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg
import pymysql

from levada.bulk.loads import LoadRequest, load, verify_load
from levada.bulk.maps import Map
from levada.bulk.protocols import TableSource
from levada.bulk.splitting import Span, parts_of

__all__ = ["Place", "Rows", "gathered", "loaded", "read_all", "request_for", "run"]

Rows = list[tuple[Any, Any]]


class Place(NamedTuple):
    """Somewhere a table can be made."""

    url: str
    make: Callable[[str, Rows, str, str], str]


def request_for(url: str, table: str, folder: Path, *, collect: bool = True, **rest: Any) -> LoadRequest:
    return LoadRequest(
        url, table, "k", "v", "map", str(folder / "maps"), collect=collect, keep_old=0.0, task_rows=10, **rest
    )


def loaded(request: LoadRequest) -> dict[Any, Any]:
    """Load, verify, and read everything back."""
    load(request, lambda status: None)
    verdict = verify_load(request)
    assert verdict.whole
    assert verdict.current
    with Map.open(request.target, "map") as opened:
        found = {}
        from levada.bulk.entries import decoded_key

        for layer in opened.manifest.layers:
            for key, _ in opened._reader.entries("map", layer):
                name = decoded_key(key, opened.manifest.key_kind)
                found[name] = opened.get(name)
        return found


def gathered(rows: Rows) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for key, value in rows:
        if key is not None and value is not None:
            found.setdefault(key, []).append(value)
    return {key: sorted(values) for key, values in found.items()}


def read_all(source: TableSource, spans: list[Span], limit: int | None = None) -> tuple[int, int, int]:
    """Rows, NULL keys and the digest of all spans together; those too big are split."""
    rows = nulls = digest = 0
    while spans:
        span = spans.pop()
        batch = source.read(span, limit)
        if batch is None:
            parts = parts_of(span, source.sample(span, 100))
            spans += parts if len(parts) > 1 else []
            batch = source.read(span, None) if len(parts) == 1 else 0
            assert batch is not None
            if len(parts) > 1:
                continue
        if isinstance(batch, int):
            nulls += batch
        else:
            rows, digest = rows + len(batch), digest + batch.digest()
    return rows, nulls, digest % 2**64


def run(url: str, statement: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        with closing(sqlite3.connect(parts.path)) as base, base:
            base.execute(statement)
    elif parts.scheme == "mariadb":
        named: dict[str, Any] = {"host": parts.hostname, "port": parts.port, "database": parts.path.strip("/")}
        with closing(pymysql.connect(user="root", autocommit=True, **named)) as line, line.cursor() as cursor:
            cursor.execute(statement)
    else:
        with psycopg.connect(url, autocommit=True) as line:
            line.execute(statement.encode())
