"""Which engine does an address name?

Engines are imported here, inside functions: whoever loads from SQLite into a file needs no PostgreSQL.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from levada.bulk.generations import LoadPlan
from levada.bulk.ports import MapReader, MapTarget, TableSource, TaskBook
from levada.clock import SystemClock
from levada.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from levada.adapters.bulk.lmdb_maps import LmdbMaps

__all__ = ["ClosingBook", "open_book", "open_reader", "open_source", "open_target", "redacted"]

Engine = TypeVar("Engine")

_FILES = ("sqlite", "file", "levada")


class ClosingBook(TaskBook, Protocol):
    def close(self) -> None: ...


def redacted(url: str) -> str:
    """An address without who and the password, as it may be stored and shown."""
    scheme, found, rest = url.partition("://")
    if not found:
        return re.sub(r"[^/\s]*:.*@", "", url)  # it may have been meant for an address
    if scheme.lower() in _FILES:
        return f"{scheme}://{re.split('[?#]', rest)[0]}"
    place = rest if _misread(rest) else re.split("[?#]", rest)[0]
    return f"{scheme.lower()}://{re.split('[?#]', place.rpartition('@')[2])[0]}"


def open_source(url: str, plan: LoadPlan) -> TableSource:
    scheme = _scheme(_readable(url))
    if scheme in ("postgresql", "postgres"):
        return _needing("psycopg", "postgresql", lambda: _postgresql_source(url, plan))
    if scheme in ("mysql", "mariadb"):
        return _needing("pymysql", "mariadb", lambda: _mariadb_source(url, plan))
    if scheme == "levada":  # a collection's own shards
        from levada.assemble.warming import open_cards

        return open_cards(url, plan)
    if scheme == "sqlite":
        from levada.adapters.bulk.sqlite_source import SqliteSource

        return SqliteSource(_path(url), plan)
    path = _path(url)
    if path.suffix.lower() == ".csv":
        from levada.adapters.bulk.csv_source import CsvSource

        return CsvSource(path, plan)
    if path.suffix.lower() == ".parquet":
        return _needing("pyarrow", "parquet", lambda: _parquet_source(path, plan))
    if (path / "levada.db").exists():
        from levada.adapters.bulk.sqlite_source import SqliteSource

        return SqliteSource(path / "levada.db", plan)
    raise UsageError(
        f"{redacted(url)[:80]!r} is no source: postgresql://, mariadb://, sqlite://FILE, FILE.parquet or FILE.csv"
    )


def open_target(url: str) -> MapTarget:
    if _is_redis(_readable(url)):
        from levada.adapters.bulk.redis_nodes import RedisNodes
        from levada.adapters.bulk.redis_target import RedisTarget

        return RedisTarget(RedisNodes(url, time.sleep))
    return _needing("lmdb", "bulk", lambda: _lmdb(_folder(url), read_only=False))


def open_reader(url: str, *, read_only: bool = True) -> MapReader:
    if _is_redis(_readable(url)):
        from levada.adapters.bulk.redis_nodes import RedisNodes
        from levada.adapters.bulk.redis_reader import RedisReader

        return RedisReader(RedisNodes(url, time.sleep))
    return _needing("lmdb", "bulk", lambda: _lmdb(_folder(url), read_only=read_only))


def open_book(url: str) -> ClosingBook:
    if _is_redis(_readable(url)):
        from levada.adapters.bulk.redis_book import RedisBook
        from levada.adapters.bulk.redis_nodes import RedisNodes

        return RedisBook(RedisNodes(url, time.sleep))
    if _scheme(url) in ("postgresql", "postgres"):
        return _needing("psycopg", "postgresql", lambda: _postgresql_book(url))
    if _scheme(url) not in ("", "sqlite", "file"):
        raise UsageError("--book is kept in postgresql://, redis:// or sqlite://FILE")
    from levada.adapters.bulk.sqlite_book import SqliteBook

    path = _path(url) if _scheme(url) == "sqlite" else _folder(url) / "book.sqlite"
    return SqliteBook(path, SystemClock())


def _misread(rest: str) -> bool:
    """Whether an @ / ? or # stands in a password as it is: what follows would be taken for the host, and shown."""
    place = re.split(r"\?[A-Za-z_]+=", rest)[0]
    return place.count("@") > 1 or re.search(r"[/?#].*@", place) is not None


def _readable(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if rest and scheme.lower() not in _FILES and _misread(rest):
        raise UsageError(
            "this address cannot be read: in a password, write signs such as @ / ? # as %40 %2F %3F %23"
        )
    return url


def _needing(package: str, extra: str, opened: Callable[[], Engine]) -> Engine:
    try:
        return opened()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in (package, "numpy"):
            raise
        raise MissingExtra(package, extra) from error


def _postgresql_source(url: str, plan: LoadPlan) -> TableSource:
    from levada.adapters.bulk.postgresql_source import PostgresqlSource

    return PostgresqlSource(url, plan)


def _mariadb_source(url: str, plan: LoadPlan) -> TableSource:
    from levada.adapters.bulk.mariadb_source import MariadbSource

    return MariadbSource(url, plan)


def _parquet_source(path: Path, plan: LoadPlan) -> TableSource:
    from levada.adapters.bulk.parquet_source import ParquetSource

    return ParquetSource(path, plan)


def _postgresql_book(url: str) -> ClosingBook:
    from levada.adapters.bulk.postgresql_book import PostgresqlBook

    return PostgresqlBook(url)


def _lmdb(folder: Path, *, read_only: bool) -> LmdbMaps:
    from levada.adapters.bulk.lmdb_maps import LmdbMaps

    return LmdbMaps(folder, read_only=read_only)


def _is_redis(url: str) -> bool:
    return _scheme(url) in ("redis", "rediss")


def _scheme(url: str) -> str:
    found = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*)://", url)
    return found[1].lower() if found else ""


def _path(url: str) -> Path:
    """`sqlite:///a/b` is /a/b; `sqlite://a/b` is a/b beside us."""
    path = url.split("://", 1)[1] if "://" in url else url
    return Path("/" + path.lstrip("/")) if path.startswith("/") else Path(path)


def _folder(url: str) -> Path:
    if _scheme(url) not in ("", "file"):
        raise UsageError(f"{redacted(url)[:80]!r} is no target: redis://, rediss:// or a folder")
    return _path(url)
