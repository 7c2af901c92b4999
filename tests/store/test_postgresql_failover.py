"""A failover to a standby that was behind: what was lost is visited again, and whoever follows misses nothing."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from levada.core.errors import StoreAway
from levada.core.records import Lease
from levada.core.search_records import Query
from levada.follow.epochs import common_step, epochs_of, steps_between
from levada.follow.index import catch_up_store
from levada.search.tantivy.index import TantivyIndex
from levada.store.base import Epoch, StoreLimits
from levada.store.postgresql import PostgresqlStore
from levada.store.postgresql.epochs import APART
from levada.testing.store.visits import changed, first, links
from tests.invariants import check_invariants
from tests.servers.postgresql import Cluster, new_cluster, own_folder, standby_of

pytest_plugins = ["tests.servers.fixtures"]

PATIENT = StoreLimits(away_seconds=60.0)


@pytest.fixture
def pair(postgresql: str, tmp_path: Path) -> Iterator[tuple[Cluster, Cluster]]:
    """A primary and its standby, which runs."""
    folder = own_folder(tmp_path)
    primary = new_cluster(folder / "primary")
    primary.settings |= {"wal_level": "replica", "hot_standby": "on"}
    primary.start()
    standby = standby_of(primary, folder / "standby")
    standby.start()
    yield primary, standby
    primary.kill()
    standby.kill()
    shutil.rmtree(folder, ignore_errors=True)


def execute(cluster: Cluster, *statements: str) -> None:
    with psycopg.connect(cluster.address, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def wait_for(cluster: Cluster, question: str, *parameters: object) -> None:
    deadline = time.monotonic() + 60.0
    with psycopg.connect(cluster.address, autocommit=True) as connection:
        while not (connection.execute(question.encode(), parameters).fetchone() or (False,))[0]:
            assert time.monotonic() < deadline, question
            time.sleep(0.02)


def leave_behind(primary: Cluster, standby: Cluster) -> None:
    """From now on the standby gets nothing of the primary."""
    with psycopg.connect(primary.address, autocommit=True) as connection:
        (lsn,) = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone() or ("",)
    wait_for(standby, "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", lsn)
    execute(standby, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
    wait_for(standby, "SELECT count(*) = 0 FROM pg_stat_wal_receiver")


def visit(store: PostgresqlStore, count: int, at: float, text: str) -> list[Lease]:
    leases = store.lease(at, count, 60.0)
    ends = [(changed if each.page.visits else first)(each, at, f"{text} {each.page.url[-1]}") for each in leases]
    assert all(store.commit(ends))
    return leases


def shown(index: TantivyIndex, word: str) -> set[str]:
    return {hit.url for hit in index.search(Query(word, limit=100)).hits}


def test_after_a_failover_that_lost_changes_the_index_is_right_again(
    pair: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    primary, standby = pair
    both = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
    journal = tmp_path / "applied"
    with (
        closing(PostgresqlStore(both, schema="lost", limits=PATIENT)) as store,
        closing(TantivyIndex(tmp_path / "index", writer=True)) as index,
    ):
        store.add(links("a", 6), [], 0.0)
        visit(store, 3, 1.0, "kept")
        assert catch_up_store(store, index, 100, journal) == 3
        leave_behind(primary, standby)
        # Lost: three pages of before, three of a new site, and a link.
        lost = visit(store, 3, 2.0, "lost")
        store.add(links("b", 1), [], 2.0)
        visit(store, 1, 3.0, "lost")
        stale = store.lease(3.0, 9, 60.0)
        assert catch_up_store(store, index, 100, journal) == 4
        before = index.position()
        assert len(shown(index, "lost")) == 4

        primary.crash()
        execute(standby, "SELECT pg_promote()")
        # By itself, with the address that names both.
        assert store.add(links("b", 1), [], 4.0) == 1, "what was lost is not taken for known"
        assert [lease.page.url for lease in store.lease(4.0, 1, 0.5)]
        assert not any(store.commit([first(each, 4.0, "stale") for each in stale]))
        assert not any(store.commit([first(each, 4.0, "stale") for each in lost]))
        catch_up_store(store, index, 100, journal)
        assert shown(index, "lost") == set()
        assert len(shown(index, "kept")) == 3
        visit(store, 9, 70.0, "again")
        assert store.newest_seq() > before
        assert min(change.seq for change in store.changes(before, 100)) > APART
        catch_up_store(store, index, 100, journal)
        assert shown(index, "again") == {each.url for each in [*links("a", 6), *links("b", 1)]}
        assert shown(index, "kept") | shown(index, "lost") == set()
        assert [each.begins for each in epochs_of(store)] == [0, 2 * APART]
        check_invariants(store)


def test_an_address_of_several_hosts_finds_the_primary(pair: tuple[Cluster, Cluster]) -> None:
    primary, standby = pair
    hosts = f"postgresql://postgres@127.0.0.1:{standby.port},127.0.0.1:{primary.port}/postgres"
    with closing(PostgresqlStore(hosts, schema="several")) as store:
        assert store.add(links("a", 1), [], 0.0) == 1
        assert f"127.0.0.1:{standby.port},127.0.0.1:{primary.port}/postgres" in store.place
    with pytest.raises(StoreAway, match="standby"):
        PostgresqlStore(standby.address, schema="several")
    leave_behind(primary, standby)
    primary.crash()
    with closing(PostgresqlStore.open_reader(hosts, schema="several")) as reader:
        assert reader.page("http://a/0") is not None, "a standby answers readers while there is no primary"


def test_the_log_keeps_as_many_changes_across_epochs(postgresql: str) -> None:
    limits = StoreLimits(keep_events=300)
    with closing(PostgresqlStore(postgresql, schema="kept across", limits=limits)) as store:
        store.add([each for site in "abcde" for each in links(site, 100)], [], 0.0)
        visit(store, 240, 1.0, "before")
        store._database._connection.execute("UPDATE epochs SET server = 'another'")
        store._database._reconnect()
        visit(store, 260, 2.0, "after")
        # 300 before the last multiple of 256: 256 of this epoch, and 44 of the one before.
        left = [event.seq for event in store.change_log(0, 1000)]
        assert left == [*range(240 - 44 + 1, 240 + 1), *range(2 * APART + 1, 2 * APART + 260 + 1)]
        with psycopg.connect(postgresql, autocommit=True) as connection:
            connection.execute('DROP SCHEMA "kept across" CASCADE')


EPOCHS = [Epoch("a", 0, 0), Epoch("b", 10, 2 * APART), Epoch("c", 2 * APART + 5, 4 * APART)]


def test_the_common_history_ends_where_the_first_later_epoch_left_it() -> None:
    assert common_step("c", EPOCHS) is None
    assert common_step("b", EPOCHS) == 2 * APART + 5
    assert common_step("a", EPOCHS) == 10
    assert common_step("other", EPOCHS) is None


def test_numbers_that_were_never_given_are_no_steps() -> None:
    assert steps_between(4, 9, EPOCHS[:1]) == 5
    assert steps_between(4, 2 * APART + 3, EPOCHS[:2]) == 6 + 3
    assert steps_between(12, 2 * APART + 3, EPOCHS[:2]) == 3  # took in two that were lost
    assert steps_between(4, 4 * APART + 2, EPOCHS) == 6 + 5 + 2
