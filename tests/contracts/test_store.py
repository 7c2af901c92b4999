"""The store contract, run on every store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import cast

import pytest

from levada.core.errors import UsageError
from levada.sharding.page_keys import page_placement
from levada.store.base import Capability, Shard, Store, StoreLimits
from levada.store.bodies import Bodies
from levada.store.bodies.places import MARKER, FolderPlace
from levada.store.bodies.s3 import S3Place
from levada.store.memory import MemoryStore
from levada.store.postgresql import PostgresqlStore
from levada.store.sharded import ShardedStore, ShardPlan
from levada.store.sqlite import SqliteStore
from levada.testing import ForgettingContract, StoreContract
from levada.testing.store.visits import OpenStore
from tests.contracts.conftest import OpenShard
from tests.in_memory import FixedPlan
from tests.schemas import Schemas
from tests.servers.versitygw import BUCKET, s3_settings
from tests.sharded import sharded_sqlite

_PREFIXES = count()


class TestMemory(StoreContract, ForgettingContract):
    def make(self, folder: Path, limits: StoreLimits) -> Store:
        return MemoryStore(limits=limits)


class TestSqlite(StoreContract, ForgettingContract):
    def make(self, folder: Path, limits: StoreLimits) -> Store:
        return SqliteStore(folder / "pages.db", limits=limits)


class TestShardedSqlite(StoreContract, ForgettingContract):
    def make(self, folder: Path, limits: StoreLimits) -> Store:
        return sharded_sqlite(folder, limits, 3)


class TestShardedSqliteWithBodiesInABucket(StoreContract, ForgettingContract):
    @pytest.fixture(autouse=True)
    def _endpoint(self, s3: str) -> None:
        self.endpoint = s3

    def make(self, folder: Path, limits: StoreLimits) -> Store:
        place = S3Place(BUCKET, f"contract/{folder.parent.name}-{next(_PREFIXES)}", s3_settings(self.endpoint))
        return sharded_sqlite(folder, limits, 3, bodies=Bodies(place, least=0))


class TestPostgresql(StoreContract, ForgettingContract):
    @pytest.fixture
    def open_store(self, schemas: Schemas) -> Iterator[OpenStore]:
        opened: list[PostgresqlStore] = []

        def open_with(limits: StoreLimits) -> Store:
            opened.append(schemas.open(limits))
            return opened[-1]

        yield open_with
        for store in opened:
            store.close()
            schemas.take_back(store.schema)


class TestPostgresqlWithBodiesInAFolder(StoreContract, ForgettingContract):
    @pytest.fixture
    def open_store(self, schemas: Schemas, tmp_path: Path) -> Iterator[OpenStore]:
        bodies = Bodies(FolderPlace(tmp_path / "bodies"), least=0)
        bodies.place.put(MARKER, b"")
        opened: list[PostgresqlStore] = []

        def open_with(limits: StoreLimits) -> Store:
            schema = schemas.lend(limits)
            opened.append(PostgresqlStore(schemas.address, schema=schema, limits=limits, bodies=bodies))
            return opened[-1]

        yield open_with
        for store in opened:
            store.close()
            schemas.take_back(store.schema)


def test_no_shard_of_a_forgotten_page_of_a_site_on_several_keeps_a_sketch(tmp_path: Path) -> None:
    store = sharded_sqlite(tmp_path, StoreLimits(), 3, "url")
    ForgettingContract().test_no_shard_keeps_a_sketch_of_its_text_or_finds_a_page_by_it(store)
    store.close()


def test_a_shard_says_that_it_can_be_one(open_shard: OpenShard) -> None:
    assert Capability.SHARD in open_shard(StoreLimits()).capabilities


def test_a_store_that_cannot_be_a_shard_is_refused() -> None:
    plan = FixedPlan(ShardPlan(page_placement("site", 1)))
    with pytest.raises(UsageError, match="cannot be one of several"):
        ShardedStore([cast("Shard", MemoryStore())], plan)
