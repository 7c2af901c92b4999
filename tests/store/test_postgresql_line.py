"""A server far away, or one that does not answer: few round trips, short locks, and a limit to every wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg import conninfo

from levada.core.errors import StoreAway
from levada.core.records import SiteRecord, VisitResult
from levada.store.base import StoreLimits
from levada.store.postgresql import PostgresqlStore
from levada.store.postgresql.session import Session
from levada.testing.store.visits import changed, first, links
from tests.invariants import check_invariants
from tests.schemas import Schemas
from tests.servers.line import Line, line_to

pytest_plugins = ["tests.servers.fixtures"]

QUICK = StoreLimits(statement_seconds=0.5)


@pytest.fixture(scope="module")
def database(postgresql: str) -> Iterator[str]:
    """One of our own: a transaction that hangs keeps the rows that others delete from being forgotten."""
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE DATABASE line")
        yield conninfo.make_conninfo(postgresql, dbname="line")
        connection.execute("DROP DATABASE line WITH (FORCE)")


@pytest.fixture(scope="module")
def schemas(database: str) -> Iterator[Schemas]:
    with closing(Schemas(database)) as lent:
        yield lent


@pytest.fixture
def line(database: str) -> Iterator[Line]:
    with line_to(int(conninfo.conninfo_to_dict(database)["port"] or 0)) as made:
        yield made


@pytest.fixture
def schema(schemas: Schemas) -> Iterator[str]:
    name = schemas.lend()
    yield name
    schemas.take_back(name)


def through(line: Line, schema: str, limits: StoreLimits | None = None, *, read_only: bool = False) -> PostgresqlStore:
    dsn = f"postgresql://postgres@127.0.0.1:{line.port}/line"
    return PostgresqlStore(dsn, schema=schema, limits=limits, read_only=read_only)


class Asked:
    """Counts the round trips of what is done inside, and those from the first lock on."""

    def __init__(self, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
        self._line = line
        self._locked_at: int | None = None
        execute = Session.execute

        def noted(session: Session, query: Any, *args: Any, **kwargs: Any) -> Any:
            if self._locked_at is None and "FOR NO KEY UPDATE" in (
                query.decode() if isinstance(query, bytes) else str(query)
            ):
                self._locked_at = line.asked
            return execute(session, query, *args, **kwargs)

        monkeypatch.setattr(Session, "execute", noted)

    def __enter__(self) -> Asked:
        self._before = self._line.asked
        self._locked_at = None
        return self

    def __exit__(self, *_: object) -> None:
        self.in_all = self._line.asked - self._before
        # The first of these takes the locks, and its answer comes while they are held.
        self.under_locks = 0 if self._locked_at is None else self._line.asked - self._locked_at - 1


def test_a_batch_takes_few_round_trips_however_large_it_is(
    line: Line, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(through(line, schema)) as store:
        asked = Asked(line, monkeypatch)
        for count in (1, 40):
            names = [f"{count}-{number}" for number in range(count)]
            with asked:
                assert store.add([each for name in names for each in links(name, 2)], [], 0.0, found_on=1) == 2 * count
            assert (asked.in_all, asked.under_locks) == (3, 1)
            with asked:
                leases = store.lease(0.0, count, 60.0)
            assert len(leases) == count
            assert (asked.in_all, asked.under_locks) == (4 + (count > 16), 1)  # 40 sites are looked into at twice
            found = tuple(links(f"new-{count}", 3))
            visits = [first(lease, 1.0, f"text {lease.page.url}", found) for lease in leases]
            with asked:
                assert all(store.commit(visits))
            assert (asked.in_all, asked.under_locks) == (3, 1)
            leases = store.lease(0.0, count, 60.0)
            with asked:
                store.release(leases)
            assert (asked.in_all, asked.under_locks) == (2, 1)
        again_leased = store.lease(1e9, 80, 60.0)
        seen = [lease for lease in again_leased if lease.page.visits]
        with asked:
            assert all(store.commit([changed(lease, 1e9, f"other {lease.page.url}") for lease in seen]))
        assert (asked.in_all, asked.under_locks) == (2, 1)
        check_invariants(store)


def test_a_reader_gives_up_on_a_server_that_does_not_answer(line: Line, schema: str) -> None:
    with closing(through(line, schema)) as store:
        store.add(links("a", 1), [], 0.0)
    with closing(through(line, schema, QUICK, read_only=True)) as reader:
        assert reader.page("http://a/0") is not None
        line.is_silent = True
        said: list[str] = []

        def ask() -> None:
            with pytest.raises(StoreAway, match="is away") as error:
                reader.page("http://a/0")
            said.append(str(error.value))

        # One wait for all: whoever waits meanwhile gets the same answer.
        threads = [threading.Thread(target=ask) for _ in range(20)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(said) == 20
        assert len({each for each in said if "no answer within" in each}) == 1
        line.is_silent = False
        assert reader.page("http://a/0") is not None


def test_a_writer_waits_for_a_server_that_is_away(line: Line, schema: str) -> None:
    patient = StoreLimits(statement_seconds=0.3, away_seconds=60.0)
    with closing(through(line, schema, patient)) as store:
        line.is_silent = True
        back = threading.Timer(1.0, lambda: setattr(line, "is_silent", False))
        back.start()
        assert store.add(links("a", 3), [], 0.0) == 3
        back.join()
        assert store.stats(1.0).known == 3
        check_invariants(store)


@pytest.mark.parametrize("arrives", [True, False])
def test_a_commit_that_is_not_answered_is_resolved(
    line: Line, schema: str, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    """The commit may have arrived or not: what is said of each visit is what became of it."""
    patient = StoreLimits(statement_seconds=0.3, away_seconds=60.0)
    with closing(through(line, schema, patient)) as store:
        store.add([*links("a", 3), *links("b", 1)], [], 0.0)
        leases = store.lease(0.0, 4, 60.0)
        (lost,) = [lease for lease in leases if lease.page.site == "b"]
        store.release([lost])
        execute = Session.execute

        def cut_at_commit(session: Session, query: Any, *args: Any, **kwargs: Any) -> Any:
            if query == "COMMIT":
                monkeypatch.setattr(Session, "execute", execute)
                if arrives:
                    done = execute(session, query, *args, **kwargs)
                    session._pipeline.sync()  # type: ignore[union-attr]
                session.pgconn.finish()
                if arrives:
                    return done
            return execute(session, query, *args, **kwargs)

        monkeypatch.setattr(Session, "execute", cut_at_commit)
        visits: list[VisitResult] = [first(lease, 1.0, f"text {lease.page.url}") for lease in leases]
        kept = [lease is not lost for lease in leases]
        assert store.commit(visits) == kept
        assert store.commit(visits) == [False] * 4
        assert [event.url for event in store.change_log(0, 9)] == [
            lease.page.url for lease in leases if lease is not lost
        ]
        check_invariants(store)


def test_a_worker_that_vanished_within_a_transaction_holds_its_sites_for_seconds(
    line: Line, schema: str, database: str
) -> None:
    with closing(through(line, schema)) as vanishing, closing(PostgresqlStore(database, schema=schema)) as other:
        vanishing.add(links("a", 2), [], 0.0)
        with pytest.raises(StoreAway), vanishing._database.write("add") as write:  # noqa: PT012
            write.rows("SELECT 1 FROM sites FOR UPDATE")
            line.is_silent = True
            # Without words or locks of its own: a lease passes over, a write waits, and the server ends the other.
            assert other.lease(0.0, 2, 60.0) == []
            other.save(SiteRecord("a", admitted=True))
            assert len(other.lease(0.0, 2, 60.0)) == 2
            line.is_silent = False
            write.rows("SELECT 1")
