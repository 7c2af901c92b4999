"""SQL is understood table by table, and PostgreSQL's log and statistics are read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.capture.postgresql.log import PostgresLogReading, queries_in_postgres_log, queries_in_statistics
from levada.capture.postgresql.scope import Known
from levada.capture.postgresql.statements import NotSql, StatementReading, queries_of_sql
from levada.core.errors import LevadaError, Refused, SettingsError, UsageError
from levada.sharding.queries import AllOf, AnyOf, Condition, Filter, NoneOf, QueryEntry, Sort

pytest_plugins = ["tests.servers.fixtures"]

A1 = Condition("a", "eq", (1,))
B2 = Condition("b", "eq", (2,))
ELSEWHERE = Condition("", "other:elsewhere")


@pytest.mark.parametrize(
    ("where", "understood"),
    [
        ("a = 1", A1),
        ("1 = a", A1),
        ("t.a = 1 AND public.t.b = 2", AllOf((A1, B2))),
        ("a = 1 OR b = 2", AnyOf((A1, B2))),
        ("NOT a = 1", NoneOf((A1,))),
        ("a IN (1, 'x', NULL)", Condition("a", "in", (1, "x", None), 3)),
        ("a IN ($1, $2)", Condition("a", "in", (), 2)),
        ("a = ANY (ARRAY[1, 2])", Condition("a", "in", (1, 2), 2)),
        ("a = ANY ('{1,\"two, three\"}'::text[])", Condition("a", "in", (1, "two, three"), 2)),
        ("a NOT IN (1)", Condition("a", "other:nin")),
        ("a BETWEEN 1 AND 5", Condition("a", "range", (1, 5))),
        ("a > 1.5", Condition("a", "range", (1.5, None))),
        ("-3 < a", Condition("a", "range", (-3, None))),
        ("a <= $1", Condition("a", "range")),
        ("a <> 1", Condition("a", "other:ne", (1,))),
        ("a LIKE 'Iz%'", Condition("a", "prefix", ("Iz",))),
        (r"a LIKE 'I\_z%x'", Condition("a", "prefix", ("I_z",))),
        ("a LIKE 'Izmir'", Condition("a", "eq", ("Izmir",))),
        ("a LIKE '%mir'", Condition("a", "regex")),
        ("a ILIKE 'iz%'", Condition("a", "other:~~*")),
        ("a ~ '^Iz'", Condition("a", "regex")),
        ("a IS NULL", Condition("a", "eq", (None,))),
        ("a IS NOT NULL", Condition("a", "exists", (True,))),
        ("a", Condition("a", "eq", (True,))),
        ("a IS FALSE", Condition("a", "eq", (False,))),
        ("a = '2024-01-31'::date", Condition("a", "eq", ("2024-01-31",))),
        ("a = now()", Condition("a", "eq")),
        ("d ->> 'city' = 'x'", Condition("d.city", "eq", ("x",))),
        ("d @@ to_tsquery('x')", Condition("d", "text")),
        ("(a, b) = (1, 2)", AllOf((A1, B2))),
        ("(a, b) > (1, 2)", Condition("a", "range", (1, None))),
        ("a = b", Condition("a", "other:join")),
        ("a <-> 'x' < 5", None),
        ("1 = 1", None),
    ],
)
def test_a_where_becomes_conditions(where: str, understood: Filter | None) -> None:
    (query,) = queries_of_sql(f"SELECT * FROM t WHERE {where}")
    assert query == QueryEntry("public.t", "find", filter=understood)


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("SELECT * FROM ads.items i WHERE i.a = 1 ORDER BY i.b DESC, a LIMIT 5",
         [QueryEntry("ads.items", "find", filter=A1, sort=(Sort("b", False), Sort("a")), limit=5)]),
        ("SELECT count(*) FROM t", [QueryEntry("public.t", "count")]),
        ("SELECT a, sum(b) FROM t GROUP BY a", [QueryEntry("public.t", "aggregate")]),
        ("SELECT DISTINCT a FROM t", [QueryEntry("public.t", "distinct")]),
        ("INSERT INTO t (a, b) VALUES (1, 2), (3, 4)", [QueryEntry("public.t", "insert", inserted=2)]),
        ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 1",
         [QueryEntry("public.t", "insert", inserted=1, changes=("b",), upsert=True)]),
        ("UPDATE t SET b = b + 1, c = 2 WHERE a = 1",
         [QueryEntry("public.t", "update", filter=A1, changes=("b", "c"), many=True)]),
        ("DELETE FROM t WHERE a = 1", [QueryEntry("public.t", "delete", filter=A1, many=True)]),
        ("SELECT * FROM t JOIN u ON u.id = t.u WHERE t.a = 1 AND u.b = 2",
         [QueryEntry("public.t", "find", filter=AllOf((Condition("u", "other:join"), A1)), joined=("public.u",)),
          QueryEntry("public.u", "find", filter=AllOf((Condition("id", "other:join"), B2)), joined=("public.t",))]),
        ("SELECT * FROM t LEFT JOIN u ON u.id = t.u AND t.a = 1",
         [QueryEntry("public.t", "find", joined=("public.u",)),
          QueryEntry("public.u", "find", filter=Condition("id", "other:join"), joined=("public.t",))]),
        ("SELECT * FROM t, u WHERE t.a = 1 OR u.b = 2",
         [QueryEntry("public.t", "find", filter=AnyOf((A1, ELSEWHERE)), joined=("public.u",)),
          QueryEntry("public.u", "find", filter=AnyOf((ELSEWHERE, B2)), joined=("public.t",))]),
        ("WITH w AS (SELECT * FROM t WHERE a = 1) SELECT * FROM w", [QueryEntry("public.t", "find", filter=A1)]),
        ("SELECT * FROM t WHERE b IN (SELECT b FROM u WHERE a = 1)",
         [QueryEntry("public.t", "find", filter=Condition("b", "other:subquery")),
          QueryEntry("public.u", "find", filter=A1)]),
        ("SELECT * FROM (SELECT * FROM t WHERE a = 1) s", [QueryEntry("public.t", "find", filter=A1)]),
        ("SELECT * FROM t UNION ALL SELECT * FROM u",
         [QueryEntry("public.t", "find"), QueryEntry("public.u", "find")]),
        ("BEGIN; SELECT 1; SELECT * FROM pg_class; SELECT * FROM information_schema.tables; SET x = 1; COMMIT", []),
    ],
)  # fmt: skip
def test_a_statement_becomes_a_query_of_each_table(sql: str, asked: list[QueryEntry]) -> None:
    assert queries_of_sql(sql) == asked


def test_parameters_and_columns_are_used_where_they_are_known() -> None:
    (query,) = queries_of_sql("SELECT * FROM t WHERE a = $1", {1: Known(1)})
    assert query.filter == A1
    columns = {"public.t": frozenset({"a"}), "public.u": frozenset({"b"})}
    t, u = queries_of_sql("SELECT * FROM t, u WHERE a = 1 AND b = 2", columns=columns)
    assert (t.filter, u.filter) == (A1, B2)
    t, u = queries_of_sql("SELECT * FROM t, u WHERE a = 1 AND b = 2")
    assert (t.filter, u.filter) == (None, None)


@pytest.mark.parametrize(
    "sql",
    ["SELEC 1", "SELECT '", "\0", "SELECT " + "(" * 30_000, "SELECT " + "x" * 200_000],
    ids=["word", "quote", "zero", "brackets", "long"],
)
def test_what_is_no_sql_says_so(sql: str) -> None:
    with pytest.raises(NotSql):
        queries_of_sql(sql)


def test_a_long_chain_of_operators_breaks_nothing() -> None:
    sql = "SELECT * FROM t WHERE a = 1 AND b = " + "+".join(["1"] * 30_000)
    (query,) = queries_of_sql(sql)
    assert query.filter == AllOf((A1, Condition("b", "eq")))
    deep = "SELECT * FROM t WHERE " + "NOT (" * 500 + "a = 1" + ")" * 500
    assert len(queries_of_sql(deep)) == 1


@settings(max_examples=200)
@given(st.text("SELECTFROMWHERE abtu=<>()$1',;.*", max_size=60))
def test_sql_of_any_kind_harms_nobody(text: str) -> None:
    with suppress(NotSql):
        queries_of_sql("SELECT * FROM t WHERE " + text)


def csv_line(message: str, detail: str = "", severity: str = "LOG", columns: int = 26) -> str:
    row = [""] * columns
    row[0], row[11], row[13], row[14] = "2024-01-31 12:00:00.250 UTC", severity, message, detail
    out = io.StringIO()
    csv.writer(out).writerow(row)
    return out.getvalue()


ENTRIES = [
    ("duration: 250.0 ms  statement: SELECT * FROM t WHERE a = 1", ""),
    ("execute S_1: SELECT * FROM t\nWHERE a = $1 AND b = $2", "parameters: $1 = '1', $2 = 'it''s'"),
    ("duration: 1.5 ms  execute <unnamed>: DELETE FROM t WHERE a = $1", "Parameters: $1 = NULL"),
    ("duration: 0.1 ms  parse S_1: SELECT * FROM t", ""),
    ("duration: 0.1 ms  bind S_1: SELECT * FROM t", ""),
    ("execute fetch from S_1/C_1: SELECT * FROM t", ""),
    ("duration: 3.1 ms", ""),
    ("statement: BEGIN", ""),
    ("statement: SELEC", ""),
    ("checkpoint starting: time", ""),
]


def read(data: bytes) -> tuple[list[QueryEntry], PostgresLogReading]:
    reading = PostgresLogReading()
    return list(queries_in_postgres_log(io.BytesIO(data), reading)), reading


def check(found: list[QueryEntry], reading: PostgresLogReading) -> None:
    common: dict[str, Any] = {"at": 1_706_702_400.25, "source": "postgres-log"}
    assert found == [
        QueryEntry("public.t", "find", filter=A1, seconds=0.25, **common),
        QueryEntry("public.t", "find", filter=AllOf((A1, Condition("b", "eq", ("it's",)))), **common),
        QueryEntry("public.t", "delete", filter=Condition("a", "eq", (None,)), many=True, seconds=0.0015, **common),
    ]
    assert (reading.statements, reading.silent, reading.unparsed) == (5, 1, 1)


@pytest.mark.parametrize("columns", [23, 26])
def test_a_csvlog_is_read(columns: int) -> None:
    log = "".join(csv_line(message, detail, columns=columns) for message, detail in ENTRIES)
    log += csv_line("statement: SELECT * FROM t", severity="ERROR") + "half,a,line\n"
    found, reading = read(log.encode())
    check(found, reading)
    assert reading.lines.damaged == 1


def test_a_jsonlog_is_read() -> None:
    lines = [
        {"timestamp": "2024-01-31 12:00:00.250 UTC", "error_severity": "LOG", "message": message, "detail": detail}
        for message, detail in ENTRIES
    ]
    log = "\n".join(map(json.dumps, lines)) + '\n{"timestamp": "2024-01'
    found, reading = read(log.encode())
    check(found, reading)
    assert reading.lines.damaged == 1


def test_another_log_is_refused_with_what_to_do() -> None:
    with pytest.raises(UsageError, match="csvlog"):
        read(b"LOG:  statement: SELECT 1\n")


@given(st.binary(max_size=200))
def test_logs_of_any_kind_harm_nobody(noise: bytes) -> None:
    read(csv_line(*ENTRIES[0]).encode() + noise)
    read(b'{"message": 5}\n{' + noise)


@pytest.fixture
def counted(postgresql: str) -> Iterator[str]:
    """A database whose statements are counted, if the server was started so."""
    with psycopg.connect(postgresql, autocommit=True) as server:
        server.execute("DROP DATABASE IF EXISTS asked")
        server.execute("CREATE DATABASE asked")
        loaded = server.execute("SHOW shared_preload_libraries").fetchone()
    dsn = psycopg.conninfo.make_conninfo(postgresql, dbname="asked")
    with psycopg.connect(dsn, autocommit=True) as server:
        server.execute("CREATE TABLE items (id int, city text)")
        if loaded and "pg_stat_statements" in str(loaded[0]):
            server.execute("CREATE EXTENSION pg_stat_statements")
    yield dsn
    with psycopg.connect(postgresql, autocommit=True) as server:
        server.execute("DROP DATABASE asked")


def test_statistics_of_statements_are_read_from_a_server(counted: str) -> None:
    with psycopg.connect(counted, autocommit=True) as server:
        for number in range(5):
            server.execute("SELECT * FROM items WHERE city = %s AND id > 5", (f"c{number}",))
        has = server.execute("SELECT count(*) FROM pg_extension WHERE extname = 'pg_stat_statements'").fetchone()
    reading = StatementReading()
    if not has or not has[0]:
        with pytest.raises(Refused, match="shared_preload_libraries"):
            list(queries_in_statistics(counted, reading))
        return
    found = [query for query in queries_in_statistics(counted, reading) if query.op == "find"]
    expected = AllOf((Condition("city", "eq"), Condition("id", "range")))
    assert [(query.collection, query.filter, query.times) for query in found] == [("public.items", expected, 5)]


def test_a_server_that_is_not_there_is_one_line() -> None:
    with pytest.raises(LevadaError) as error:
        list(queries_in_statistics("postgresql://127.0.0.1:1/x", StatementReading()))
    assert "\n" not in str(error.value)


def test_an_address_that_cannot_be_read_is_not_quoted() -> None:
    with pytest.raises(SettingsError, match="no address of a PostgreSQL") as caught:
        list(queries_in_statistics("postgresql://me:s3cret@[::1/x", StatementReading()))
    assert "s3cret" not in str(caught.value)
