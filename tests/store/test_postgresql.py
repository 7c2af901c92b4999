"""The store on a server: what it refuses to open, what it keeps, and how it fails."""

from __future__ import annotations

import errno
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from psycopg import sql

from levada.core.errors import (
    MissingExtra,
    SettingsError,
    StoreAway,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreTooNew,
)
from levada.core.hashing import drawn
from levada.core.records import ChangeHint, FoundUrl, Signals, SiteRecord
from levada.store.base import StoreLimits
from levada.store.postgresql import PostgresqlStore
from levada.store.postgresql.connection import translated
from levada.store.postgresql.dialect import restored, storable
from levada.store.postgresql.schema import SCHEMA_VERSION, URL_INDEXED
from levada.store.sql.statements import DRAWN
from levada.testing.store.visits import first, links, visited
from tests.faults import WRITE_POINTS, FaultAt, PointLog
from tests.invariants import check_invariants
from tests.schemas import Schemas
from tests.store.scenario import STORY_LIMITS, tell

pytest_plugins = ["tests.servers.fixtures"]

ROOT = Path(__file__).parents[2]
ODD = "a\0b\ufdd0c\ufdd00\ufdd01\U0010ffff\u202e\ud800"
ODD_STORED = ODD.replace("\ud800", "?")


@pytest.fixture(scope="module")
def schemas(postgresql: str) -> Iterator[Schemas]:
    with closing(Schemas(postgresql)) as lent:
        yield lent


@pytest.fixture
def store(schemas: Schemas) -> Iterator[PostgresqlStore]:
    opened = schemas.open()
    yield opened
    opened.close()
    schemas.take_back(opened.schema)


def admin(store: PostgresqlStore) -> psycopg.Connection[Any]:
    connection: psycopg.Connection[Any] = psycopg.connect(store.address.dsn, autocommit=True)
    connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(store.schema)))
    return connection


def answers(store: PostgresqlStore) -> tuple[object, ...]:
    return store.page("http://a/"), store.document("http://a/"), store.changes(0, 9), list(store.sites())


def test_a_store_is_what_it_was_when_it_is_opened_again(store: PostgresqlStore) -> None:
    visited(store, "http://a/", "a", "words", 1.0)
    with closing(PostgresqlStore(store.address.dsn, schema=store.schema)) as again:
        assert answers(again) == answers(store)
        assert again.format == SCHEMA_VERSION
        again.check()


def test_a_schema_of_another_format_is_left_alone(store: PostgresqlStore) -> None:
    for version, error, words in ((99, StoreTooNew, "newer"), (0, StoreError, "older")):
        with admin(store) as connection:
            connection.execute("UPDATE levada_store SET format = %s", (version,))
        for read_only in (False, True):
            with pytest.raises(error, match=words):
                PostgresqlStore(store.address.dsn, schema=store.schema, read_only=read_only)
    with admin(store) as connection:
        connection.execute("UPDATE levada_store SET format = %s", (SCHEMA_VERSION,))


def test_somebody_elses_schema_is_left_alone(postgresql: str) -> None:
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA elses; CREATE TABLE elses.mine (x int)")
        with pytest.raises(StoreDamaged, match="not of Levada: name another schema"):
            PostgresqlStore(postgresql, schema="elses")
        connection.execute("DROP SCHEMA elses CASCADE")


def test_a_schema_that_was_made_for_us_is_filled(postgresql: str) -> None:
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute('CREATE SCHEMA "made ""for"" us"')
        with closing(PostgresqlStore(postgresql, schema='made "for" us')) as store:
            assert store.add(links("a", 1), [], 0.0) == 1
        connection.execute('DROP SCHEMA "made ""for"" us" CASCADE')


def test_a_reader_of_nothing_says_what_to_do(postgresql: str) -> None:
    with pytest.raises(StoreError, match="crawl something first"):
        PostgresqlStore.open_reader(postgresql, schema="nothing here")


def test_a_database_that_cannot_hold_every_text_is_refused(postgresql: str) -> None:
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE DATABASE old ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
        with pytest.raises(StoreError, match="encoding UTF8"):
            PostgresqlStore(postgresql.replace("/postgres", "/old", 2).replace("//old", "//postgres"))
        connection.execute("DROP DATABASE old")


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://me:sesame@127.0.0.1:1/x",
        "postgresql://me:sesame@127.0.0.1:notaport/x",
        "host=127.0.0.1 password=sesame port='unended",
        "password=sesame nonsense",
        "postgresql://me:open@sesame@127.0.0.1:1/x",
        "postgresql://me:sesame/open@127.0.0.1:1/x",
        "postgresql://me:open/sesame@127.0.0.1:1/x",
    ],
)
def test_what_is_wrong_with_an_address_is_said_without_its_password(dsn: str) -> None:
    with pytest.raises((StoreError, SettingsError)) as said:
        PostgresqlStore(dsn)
    assert "sesame" not in str(said.value)
    assert len(str(said.value).splitlines()) == 1


@pytest.mark.parametrize("schema", ["", "pg_mine", "information_schema", "x" * 64, "nul\0"])
def test_a_schema_that_cannot_be_is_refused(schema: str) -> None:
    with pytest.raises(SettingsError, match="schema"):
        PostgresqlStore("postgresql://127.0.0.1:1/x", schema=schema)


def test_a_reader_sees_what_was_committed_and_cannot_write(store: PostgresqlStore) -> None:
    visited(store, "http://a/", "a", "words", 1.0)
    with closing(PostgresqlStore.open_reader(store.address.dsn, schema=store.schema)) as reader:
        document = reader.document("http://a/")
        assert document is not None
        assert document.text == "words"
        with pytest.raises(StoreError, match="open it for writing"):
            reader.add(links("b", 1), [], 2.0)
        visited(store, "http://b/", "b", "more", 2.0)
        assert len(reader.changes(0, 10)) == 2


def test_a_closed_store_says_so(store: PostgresqlStore) -> None:
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.add(links("a", 1), [], 0.0)
    with pytest.raises(StoreError, match="closed"):
        store.page("http://a/")


def test_a_commit_is_durable_even_if_the_server_does_not_ask_for_it(store: PostgresqlStore) -> None:
    dsn = store.address.dsn
    with closing(PostgresqlStore(f"{dsn}?options=-csynchronous_commit%3Doff", schema=store.schema)) as other:
        assert other._database.rows("SHOW synchronous_commit") == [("on",)]
    with closing(PostgresqlStore(f"{dsn}?options=-csynchronous_commit%3Dremote_apply", schema=store.schema)) as other:
        assert other._database.rows("SHOW synchronous_commit") == [("remote_apply",)]


def test_a_store_held_by_another_is_locked(schemas: Schemas) -> None:
    store = schemas.open(StoreLimits(busy_seconds=0.0))
    store.add(links("a", 1), [], 0.0)
    with admin(store) as other, other.transaction():
        other.execute("SELECT 1 FROM sites FOR UPDATE")
        with pytest.raises(StoreLocked, match="another process"):
            store.save(SiteRecord("a"))
        assert store.lease(0.0, 9, 60.0) == []  # a lease passes over it instead
    assert len(store.lease(0.0, 9, 60.0)) == 1
    store.close()
    schemas.take_back(store.schema)


def test_a_lock_that_is_held_for_a_while_is_waited_for_and_said(
    schemas: Schemas, caplog: pytest.LogCaptureFixture
) -> None:
    store = schemas.open(StoreLimits(busy_seconds=0.2))
    store.add(links("a", 1), [], 0.0)
    with admin(store) as other:
        other.execute("BEGIN")
        other.execute("SELECT 1 FROM sites FOR UPDATE")
        freed = threading.Timer(0.5, lambda: other.execute("COMMIT"))
        freed.start()
        assert store.add(links("a", 1, 1), [], 0.0) == 1
        freed.join()
    assert 1 <= len(caplog.messages) <= 5
    assert "is held by another process" in caplog.messages[0]
    store.close()
    schemas.take_back(store.schema)


def test_threads_take_turns(store: PostgresqlStore) -> None:
    def fill(site: str) -> None:
        for start in range(0, 25, 5):
            store.add(links(site, 5, start), [], 0.0)
            store.stats(0.0)

    threads = [threading.Thread(target=fill, args=(f"s{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.stats(0.0).known == 100
    check_invariants(store)


@given(st.text(st.one_of(st.sampled_from("\0\ufdd001"), st.characters(exclude_categories=["Cs"]))))
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert restored(storable(text)) == text
    assert "\0" not in storable(text)


def test_odd_text_is_kept_wherever_it_stands(store: PostgresqlStore) -> None:
    url, site = "http://a/" + ODD_STORED, "s\0" + ODD_STORED
    store.add([FoundUrl(url, site)], [], 0.0)
    (lease,) = store.lease(0.0, 1, 60.0)
    end = first(lease, 1.0, "x")
    assert end.version is not None
    version = replace(end.version, title=ODD, language="\0", charset="\0", headers=(("h", ODD),))
    assert store.commit([replace(end, version=version, etag=ODD, last_modified=ODD)]) == [True]
    page, document = store.page(url), store.document(url)
    assert page is not None
    assert document is not None
    assert (page.url, page.site, page.etag, page.last_modified) == (url, site, ODD_STORED, ODD_STORED)
    assert (document.title, document.language, document.headers) == (ODD_STORED, "\0", (("h", ODD_STORED),))
    assert store.url_of(page.id) == url
    assert store.urls_like("http://a/a\0", 9) == [url]
    assert [each.site for each in store.sites()] == [site]
    check_invariants(store)


def test_long_addresses_are_told_apart_to_their_end(store: PostgresqlStore) -> None:
    """Of signs that do not compress: an entry of an index that is too long would be refused."""
    signs = "".join(chr(0x10000 + n * 7919 % 0x50000) for n in range(8000))
    urls = [f"http://a/{signs[:length]}{end}" for length in (URL_INDEXED - 10, 2000, 7900) for end in "xy"]
    assert store.add([FoundUrl(url, "a") for url in urls * 2], [], 0.0) == 6
    assert [page.url for url in urls if (page := store.page(url))] == urls
    assert store.urls_like("http://a/", 9) == sorted(urls)
    assert store.urls_like(urls[3][:-1], 9) == sorted(urls[2:])
    assert store.urls_like(urls[3], 9) == [urls[3]]
    hints = [ChangeHint(url, 9.0, Signals.FEED) for url in urls]
    store.commit([first(lease, 1.0, "text") for lease in store.lease(0.0, 9, 60.0)])
    assert {page.url for page in store.outdated(hints)} == set(urls)
    check_invariants(store)


@settings(max_examples=20)
@given(ids=st.lists(st.integers(1, (1 << 63) - 1), min_size=1), power=st.integers(0, 62))
def test_the_database_draws_the_pages_that_we_draw(schemas: Schemas, ids: list[int], power: int) -> None:
    question = f"SELECT p.id FROM unnest(%s::bigint[]) p(id) WHERE {DRAWN.replace('?', '%s')}"
    rows = schemas._admin.execute(question.encode(), (ids, 1 << power)).fetchall()
    assert [id for (id,) in rows] == [id for id in ids if drawn(id, 1 << power)]


def test_a_sitemap_is_looked_up_in_few_statements(store: PostgresqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add(links("a", 300), [], 0.0)
    store.commit([first(lease, 1.0, "text") for lease in store.lease(0.0, 300, 60.0)])
    asked: list[str] = []
    ask = store._database._query

    def noted(sql: str, given: Any) -> list[Any]:
        asked.append(sql)
        return ask(sql, given)

    monkeypatch.setattr(store._database, "_query", noted)
    assert len(store.outdated([ChangeHint(f"http://a/{n}", 2.0, Signals.SITEMAP) for n in range(3000)])) == 300
    assert len(asked) == 4  # three thousands looked up, and the pages of the first read


def test_a_batch_of_visits_takes_few_round_trips(store: PostgresqlStore, tmp_path: Path) -> None:
    store.add([found for n in range(10) for found in links(f"s{n}", 5)], [], 0.0)
    visits = [
        first(lease, 1.0, f"text {lease.page.id}", tuple(links("new", 5))) for lease in store.lease(0.0, 50, 60.0)
    ]
    server = store._database._connection.pgconn
    with (tmp_path / "trace").open("w") as trace:
        server.trace(trace.fileno())
        assert store.commit(visits) == [True] * 50
        server.untrace()
    sent = re.findall(r"\tF\t\d+\t(\w+)", (tmp_path / "trace").read_bytes().decode("latin-1"))
    assert sent.count("Execute") > 100
    assert sum(message in {"Sync", "Query"} for message in sent) <= 16


def test_a_commit_that_the_server_turns_into_a_rollback_is_an_error(store: PostgresqlStore) -> None:
    with pytest.raises(StoreError, match="nothing of this batch"), store._database.write("add") as write:  # noqa: PT012
        write.execute("DELETE FROM counters")
        with suppress(psycopg.Error):
            write.rows("SELECT 1 / 0")


def read_from(store: PostgresqlStore, index: str) -> int:
    """How many entries of the index were read so far."""
    store._database.rows("SELECT pg_stat_force_next_flush()")
    with admin(store) as connection:
        asked = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = %s AND indexrelname = %s"
        ((read,),) = connection.execute(asked, (store.schema, index)).fetchall()
        return int(read)


def test_a_lease_reads_about_as_much_as_it_hands_out_whatever_waits(store: PostgresqlStore) -> None:
    store.add(links("a", 3000), [], 0.0)
    leases = store.lease(0.0, 1000, 60.0)
    store.commit([first(lease, 1.0, "text") for lease in leases])
    for index, now in (("unvisited_pkey", 2.0), ("visited_due", 100.0)):
        store.lease(now, 1, 60.0)  # passes over the entries that the visits before left behind, and marks them
        before = read_from(store, index)
        assert len(store.lease(now, 10, 60.0)) == 10
        assert read_from(store, index) - before < 100, index
    before = read_from(store, "documents_by_change")
    assert len(store.changes(5, 10)) == 10
    assert read_from(store, "documents_by_change") - before < 50


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"levada\[postgresql\]"):
        PostgresqlStore("postgresql://127.0.0.1/x")


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        ("53100", StoreFull, "free some space"),
        ("55P03", StoreLocked, "another process"),
        ("40P01", StoreLocked, "try again"),
        ("XX001", StoreDamaged, "restore a copy"),
        ("42P01", StoreDamaged, "lacks tables"),
        ("53300", StoreAway, "is away"),
        ("57P01", StoreAway, "is away"),
        ("57014", StoreAway, "raise store.statement_seconds"),
        ("42501", StoreError, "as a user who may"),
        ("22012", StoreError, "22012"),
    ],
)
def test_failures_of_the_server_say_what_to_do(code: str, error: type[StoreError], words: str) -> None:
    said = translated(psycopg.errors.lookup(code)("first line\nDETAIL: a page's text"), "PostgreSQL at x")
    assert type(said) is error
    assert words in str(said)
    assert "DETAIL" not in str(said)


def test_the_story_passes_every_write_point(schemas: Schemas) -> None:
    log = PointLog()
    store = schemas.open(STORY_LIMITS, log)
    tell(store)
    check_invariants(store)
    store.close()
    schemas.take_back(store.schema)
    assert set(log.points) == set(WRITE_POINTS)


def snapshot(store: PostgresqlStore) -> str:
    """Every row of every table."""
    with admin(store) as connection:
        names = "SELECT relname::text FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r' ORDER BY 1"
        tables = connection.execute(names, (f'"{store.schema}"',)).fetchall()
        everything = " UNION ALL ".join(f"SELECT '{name}' AS t, x::text AS r FROM {name} x" for (name,) in tables)
        return str(connection.execute(f"{everything} ORDER BY t, r".encode()).fetchall())


class Witness:
    """Remembers what was stored before the write that is to fail."""

    def __init__(self, fault: FaultAt) -> None:
        self.store: PostgresqlStore | None = None
        self.fault = fault
        self.before = ""

    def reach(self, point: str) -> None:
        if self.store and point == f"{self.fault.point.split('.')[0]}.begin":
            self.before = snapshot(self.store)
        self.fault.reach(point)


# Each step of what writes most, and of the others the last one.
POINTS = [point for point in WRITE_POINTS if point.startswith("settle") or point.endswith("before-commit")]


@pytest.mark.parametrize("point", POINTS)
def test_a_write_that_fails_writes_nothing_and_says_so(schemas: Schemas, point: str) -> None:
    witness = Witness(FaultAt(point, OSError(errno.ENOSPC, "no space left on device")))
    store = witness.store = schemas.open(STORY_LIMITS, witness)
    with pytest.raises(StoreFull):
        tell(store)
    assert (snapshot(store) == witness.before) == (not point.endswith("after-commit"))
    tell(store)
    check_invariants(store)
    store.close()
    schemas.take_back(store.schema)


def test_a_process_killed_at_any_point_leaves_a_store_that_goes_on(postgresql: str) -> None:
    points = [point for point in POINTS if point.startswith(("settle", "lease"))]
    command = [sys.executable, "-m", "tests.store.kill_on_server", postgresql, *points]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == dict.fromkeys(points, -signal.SIGKILL)
