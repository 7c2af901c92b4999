"""Every adapter of a port, for the one suite that all must pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from levada.adapters.limits import StoreLimits
from levada.adapters.memory import MemoryStore
from levada.adapters.postgresql import PostgresqlStore
from levada.adapters.sharded.shard import Shard
from levada.adapters.sqlite import SqliteStore
from tests.schemas import Schemas
from tests.servers import fixtures
from tests.sharded import sharded_sqlite
from tests.visits import Store

postgresql = fixtures.postgresql  # a conftest that is not at the top may name no plugins

OpenStore = Callable[[StoreLimits], Store]
OpenShard = Callable[[StoreLimits], Shard]


@pytest.fixture(scope="session")
def schemas(postgresql: str) -> Iterator[Schemas]:
    lent = Schemas(postgresql)
    yield lent
    lent.close()


@pytest.fixture(params=["memory", "sqlite", "postgresql", "sharded-sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    opened: list[Store] = []

    def open_with(limits: StoreLimits) -> Store:
        if request.param == "memory":
            opened.append(MemoryStore(limits=limits))
        elif request.param == "sharded-sqlite":
            opened.append(sharded_sqlite(tmp_path / f"{len(opened)}", limits, 3))
        elif request.param == "postgresql":
            opened.append(request.getfixturevalue("schemas").open(limits))
        else:
            opened.append(SqliteStore(tmp_path / f"{len(opened)}.db", limits=limits))
        return opened[-1]

    yield open_with
    for store in opened:
        store.close()
        if isinstance(store, PostgresqlStore):
            request.getfixturevalue("schemas").take_back(store.schema)


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    return open_store(StoreLimits())


@pytest.fixture(params=["sqlite", "postgresql"])
def open_shard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenShard]:
    """Stores that can be one shard of several: what `levada.adapters.sharded.shard` asks for."""
    opened: list[Shard] = []

    def open_with(limits: StoreLimits) -> Shard:
        if request.param == "postgresql":
            opened.append(request.getfixturevalue("schemas").open(limits))
        else:
            opened.append(SqliteStore(tmp_path / f"shard-{len(opened)}.db", limits=limits))
        return opened[-1]

    yield open_with
    for shard in opened:
        shard.close()
        if isinstance(shard, PostgresqlStore):
            request.getfixturevalue("schemas").take_back(shard.schema)
