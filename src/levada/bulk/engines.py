"""Engines by address: source, target and task store of a load.

Engines are imported inside functions: a load from SQLite into a file needs no PostgreSQL.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from levada.bulk.protocols import MapReader, MapTarget, TableSource, TaskStore
from levada.bulk.tasks import LoadPlan
from levada.core.clock import SystemClock
from levada.core.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from levada.bulk.targets.redis_client import RedisNodes

_FILES = ("sqlite", "file", "levada")


class ClosingTaskStore(TaskStore, Protocol):
    """A task store on a connection or a file."""

    def close(self) -> None: ...


class Maps(MapTarget, MapReader, Protocol):
    """Target and reader of the same maps. LMDB opens a file only once in a process, so both are one object."""


def redacted(url: str) -> str:
    """An address without user and password, as it may be stored and shown."""
    scheme, found, rest = url.partition("://")
    if not found:
        return re.sub(r"[^/\s]*:.*@", "", url)  # it may be a mistyped address
    if scheme.lower() in _FILES:
        return f"{scheme}://{re.split('[?#]', rest)[0]}"
    place = rest if _misread(rest) else re.split("[?#]", rest)[0]
    return f"{scheme.lower()}://{re.split('[?#]', place.rpartition('@')[2])[0]}"


def open_source(url: str, plan: LoadPlan) -> TableSource:
    scheme = _scheme(_readable(url))
    if scheme in ("postgresql", "postgres"):
        with _needs("psycopg", "postgresql"):
            from levada.bulk.sources.postgresql import PostgresqlSource

            return PostgresqlSource(url, plan)
    if scheme in ("mysql", "mariadb"):
        with _needs("pymysql", "mariadb"):
            from levada.bulk.sources.mariadb import MariadbSource

            return MariadbSource(url, plan)
    if scheme == "levada":  # a collection's own shards
        from levada.bulk.sources.collection import open_summaries

        return open_summaries(url, plan)
    path = _path(url)
    if scheme != "sqlite" and path.suffix.lower() == ".csv":
        from levada.bulk.sources.csv import CsvSource

        return CsvSource(path, plan)
    if scheme != "sqlite" and path.suffix.lower() == ".parquet":
        with _needs("pyarrow", "parquet"):
            from levada.bulk.sources.parquet import ParquetSource

            return ParquetSource(path, plan)
    if scheme == "sqlite" or (path / "levada.db").exists():
        from levada.bulk.sources.sqlite import SqliteSource

        return SqliteSource(path if scheme == "sqlite" else path / "levada.db", plan)
    raise UsageError(
        f"{redacted(url)[:80]!r} is not a source: postgresql://, mariadb://, sqlite://FILE, FILE.parquet, FILE.csv"
    )


def open_maps(url: str, *, read_only: bool = False) -> Maps:
    """The maps at this address. Redis knows no difference between reading and writing."""
    if _is_redis(_readable(url)):
        with _needs("redis", "redis"):
            from levada.bulk.targets.redis import RedisMaps

            return RedisMaps(_redis_nodes(url))
    folder = _folder(url)
    with _needs("lmdb", "bulk"):
        from levada.bulk.targets.lmdb import LmdbMaps
    return LmdbMaps(folder, read_only=read_only)


def open_reader(url: str) -> MapReader:
    return open_maps(url, read_only=True)


def open_task_store(url: str) -> ClosingTaskStore:
    if _is_redis(_readable(url)):
        with _needs("redis", "redis"):
            from levada.bulk.task_stores.redis import RedisTaskStore

            return RedisTaskStore(_redis_nodes(url))
    if _scheme(url) in ("postgresql", "postgres"):
        with _needs("psycopg", "postgresql"):
            from levada.bulk.task_stores.postgresql import PostgresqlTaskStore

            return PostgresqlTaskStore(url)
    if _scheme(url) not in ("", "sqlite", "file"):
        raise UsageError("--book must be postgresql://, redis:// or sqlite://FILE")
    from levada.bulk.task_stores.sqlite import SqliteTaskStore

    path = _path(url) if _scheme(url) == "sqlite" else _folder(url) / "book.sqlite"
    return SqliteTaskStore(path, SystemClock())


def _misread(rest: str) -> bool:
    """Whether a password holds a raw @ / ? or #: what follows it would be taken for the host, and shown."""
    place = re.split(r"\?[A-Za-z_]+=", rest)[0]
    return place.count("@") > 1 or re.search(r"[/?#].*@", place) is not None


def _readable(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if rest and scheme.lower() not in _FILES and _misread(rest):
        raise UsageError("this address cannot be read: in a password, write signs such as @ / ? # as %40 %2F %3F %23")
    return url


@contextmanager
def _needs(package: str, extra: str) -> Iterator[None]:
    """Name the extra to install if its package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in (package, "numpy", "hiredis"):
            raise
        raise MissingExtra(package, extra) from error


def _redis_nodes(url: str) -> RedisNodes:
    from levada.bulk.targets.redis_client import RedisNodes

    return RedisNodes(url, time.sleep)


def _is_redis(url: str) -> bool:
    return _scheme(url) in ("redis", "rediss", "redis+sentinel", "rediss+sentinel")


def _scheme(url: str) -> str:
    found = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*)://", url)
    return found[1].lower() if found else ""


def _path(url: str) -> Path:
    """`sqlite:///a/b` is /a/b; `sqlite://a/b` is a/b in the current folder."""
    path = url.split("://", 1)[1] if "://" in url else url
    return Path("/" + path.lstrip("/")) if path.startswith("/") else Path(path)


def _folder(url: str) -> Path:
    if _scheme(url) not in ("", "file"):
        raise UsageError(f"{redacted(url)[:80]!r} is not a target: redis://, rediss://, redis+sentinel:// or a folder")
    return _path(url)
