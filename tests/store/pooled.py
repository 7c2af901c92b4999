"""PgBouncer in transaction mode: each transaction may run in another session of the server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from levada.core.errors import SettingsError, StoreError
from levada.core.records import SiteRecord
from levada.store.base import StoreLimits
from levada.store.postgresql import PostgresqlStore
from levada.store.postgresql.connection import Address
from levada.store.postgresql.conversion import SchemaSnapshot
from levada.store.postgresql.shared_plan import shared_names
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import first, links
from tests.invariants import check_invariants
from tests.servers.pgbouncer import pgbouncer

pytest_plugins = ["tests.servers.fixtures"]


@pytest.fixture(scope="module")
def pool(postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = int(conninfo.conninfo_to_dict(postgresql)["port"] or 0)
    with pgbouncer(tmp_path_factory.mktemp("pool"), port) as listening:
        yield f"postgresql://postgres@127.0.0.1:{listening}/postgres"


def crawl(store: PostgresqlStore) -> None:
    while leases := store.lease(1.0, 5, 60.0):
        store.commit([first(lease, 1.0, f"text {lease.page.url}") for lease in leases])


def test_several_crawls_through_two_sessions_of_a_server(pool: str, postgresql: str, tmp_path: Path) -> None:
    # Two collections: a setting that stayed in a session would lead one of them into the other's tables.
    limits = StoreLimits(busy_seconds=20.0)
    stores = [PostgresqlStore(pool, schema=f"pooled {number % 2}", limits=limits) for number in range(5)]
    for number in range(2):
        stores[number].add([each for site in range(6) for each in links(f"{number}-{site}", 10)], [], 0.0)
        stores[number].save(SiteRecord(f"{number}-0", admitted=True))
    threads = [threading.Thread(target=crawl, args=(store,)) for store in stores]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for number in range(2):
        assert stores[number].stats(1.0).stored == 60
        with closing(PostgresqlStore(postgresql, schema=f"pooled {number}")) as direct:
            check_invariants(direct)
        with closing(PostgresqlStore.open_reader(pool, schema=f"pooled {number}")) as reader:
            assert len(reader.changes(0, 100)) == 60
            with pytest.raises(StoreError, match="open it for writing"):
                reader.add(links("x", 1), [], 0.0)
            reader.check()
    snapshot = SchemaSnapshot(Address(pool, "pooled 1"))
    with closing(snapshot):
        snapshot.copy(tmp_path / "copy.db")
    with closing(SqliteStore(tmp_path / "copy.db")) as copy:
        assert copy.stats(1.0).stored == 60
    for store in stores:
        store.close()
    # Nothing of ours is left in the sessions of the server.
    with psycopg.connect(pool, autocommit=True, prepare_threshold=None) as connection:
        assert connection.execute("SHOW search_path").fetchone() == ('"$user", public',)
        assert connection.execute("SHOW enable_seqscan").fetchone() == ("on",)
        assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


def test_what_needs_a_session_says_so(pool: str) -> None:
    with pytest.raises(SettingsError, match=r"is behind a pool.*an address of the server itself"):
        shared_names(pool)
