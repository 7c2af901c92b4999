"""Servers and shards for the contract suites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from levada.store.base import Shard, StoreLimits
from levada.store.postgresql import PostgresqlStore
from levada.store.sqlite import SqliteStore
from tests.schemas import Schemas

OpenShard = Callable[[StoreLimits], Shard]


@pytest.fixture(scope="session")
def schemas(postgresql: str) -> Iterator[Schemas]:
    lent = Schemas(postgresql)
    yield lent
    lent.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def open_shard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenShard]:
    """Stores that can be one shard of several: what `levada.store.base` asks for."""
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
