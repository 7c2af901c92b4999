"""A connection that is cut, a server that goes: one clear line, nothing half done, and on when it is back."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from levada.core.errors import StoreAway, StoreError
from levada.store.postgresql import PostgresqlStore
from levada.store.postgresql.schema import SCHEMA_VERSION
from levada.testing.store.visits import first, links, visited
from tests.invariants import check_invariants
from tests.servers.postgresql import Cluster, new_cluster, own_folder

pytest_plugins = ["tests.servers.fixtures"]


class CutAt:
    """Cuts the store's connection, from the server's side, when a write has come so far; once."""

    def __init__(self, point: str) -> None:
        self.point = point
        self.cut: Callable[[], None] | None = None

    def reach(self, point: str) -> None:
        if point == self.point and self.cut:
            cut, self.cut = self.cut, None
            cut()


def cut(store: PostgresqlStore) -> None:
    pid = store._database._connection.info.backend_pid
    with psycopg.connect(store.address.dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))


@pytest.fixture(scope="module")
def cluster(postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One that may be killed: nobody else uses it, unlike the one that says whether it is installed."""
    folder = own_folder(tmp_path_factory.mktemp("cluster"))
    made = new_cluster(folder / "data")
    made.start()
    yield made
    made.kill()
    shutil.rmtree(folder, ignore_errors=True)


def test_a_connection_that_was_cut_while_nobody_used_it_is_made_anew(cluster: Cluster) -> None:
    with closing(PostgresqlStore(cluster.address, schema="cut idle")) as store:
        visited(store, "http://a/", "a", "text", 0.0)
        cut(store)
        assert store.page("http://a/") is not None
        cut(store)
        assert store.add(links("a", 2), [], 1.0) == 2
        cut(store)
        assert store.stats(1.0).known == 3
        assert store.format == SCHEMA_VERSION


@pytest.mark.parametrize("point", ["settle.begun", "settle.fence", "settle.version", "settle.before-commit"])
def test_a_write_that_is_cut_is_made_again(cluster: Cluster, point: str) -> None:
    fault = CutAt(point)
    with closing(PostgresqlStore(cluster.address, schema=f"cut at {point}", faults=fault)) as store:
        store.add(links("a", 3), [], 0.0)
        leases = store.lease(0.0, 3, 60.0)
        visits = [first(lease, 1.0, f"text {lease.page.url}", tuple(links("b", 2))) for lease in leases]
        fault.cut = lambda: cut(store)
        assert store.commit(visits) == [True, True, True]
        assert fault.cut is None
        assert store.commit(visits) == [False, False, False]
        check_invariants(store)


@pytest.mark.parametrize("point", ["settle.begun", "settle.version", "settle.before-commit"])
def test_a_write_whose_server_goes_writes_nothing_and_says_so(cluster: Cluster, point: str) -> None:
    fault = CutAt(point)
    with closing(PostgresqlStore(cluster.address, schema=f"gone at {point}", faults=fault)) as store:
        store.add(links("a", 3), [], 0.0)
        leases = store.lease(0.0, 3, 60.0)
        visits = [first(lease, 1.0, f"text {lease.page.url}", tuple(links("b", 2))) for lease in leases]
        fault.cut = cluster.crash
        with pytest.raises(StoreAway, match=r"is away .*start again") as said:
            store.commit(visits)
        assert len(str(said.value).splitlines()) == 1
        cluster.start()
        assert store.stats(1.0).stored == 0
        assert store.commit(visits) == [True, True, True]
        check_invariants(store)


def test_a_server_that_was_killed_and_started_again_has_all_that_was_committed(cluster: Cluster) -> None:
    with closing(PostgresqlStore(cluster.address, schema="killed")) as store:
        store.add(links("a", 5), [], 0.0)
        leases = store.lease(0.0, 5, 60.0)
        assert all(store.commit([first(lease, 1.0, "text") for lease in leases[:3]]))
        cluster.crash()
        for ask in (lambda: store.page("http://a/0"), lambda: store.add(links("b", 1), [], 0.0)):
            with pytest.raises(StoreError, match=r"is away"):
                ask()
        with pytest.raises(StoreError, match=r"is away"):
            PostgresqlStore(cluster.address, schema="killed")
        cluster.start()
        assert store.stats(1.0).stored == 3
        assert store.commit([first(lease, 2.0, "text") for lease in leases]) == [False, False, False, True, True]
        check_invariants(store)


def test_a_schema_that_was_dropped_under_us_is_said(cluster: Cluster, tmp_path: Path) -> None:
    with closing(PostgresqlStore(cluster.address, schema="dropped")) as store:
        with psycopg.connect(cluster.address, autocommit=True) as connection:
            connection.execute("DROP SCHEMA dropped CASCADE")
        with pytest.raises(StoreError, match="lacks tables that Levada wrote"):
            store.page("http://a/")
        cut(store)
        with pytest.raises(StoreError, match="there is nothing in"):
            store.page("http://a/")
