"""What is particular to a source of tables: its types, its splits, its snapshots, its files."""

from __future__ import annotations

import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pyarrow
import pyarrow.parquet
import pytest

from levada.bulk.engines import open_source, redacted
from levada.bulk.entries import PlainRows, rows_digest
from levada.bulk.loads import LoadRequest, load
from levada.bulk.maps import Map
from levada.bulk.protocols import Away, TableSource
from levada.bulk.sources import csv as csv_fields
from levada.bulk.sources.csv import CsvSource
from levada.bulk.sources.packed import PackedRows
from levada.bulk.sources.parquet import ParquetSource
from levada.bulk.sources.postgresql import spread
from levada.bulk.sources.postgresql_arrays import closeness
from levada.bulk.splitting import (
    BlockRange,
    Cut,
    HashShare,
    KeyRange,
    Modulus,
    NullKeys,
    RowRange,
    Span,
    SplitMethod,
    parts_of,
)
from levada.bulk.tasks import LoadPlan
from levada.core.errors import LevadaError, NotFound, Refused, UsageError
from tests.bulk.loads import Place, Rows, loaded, read_all, request_for

pytest_plugins = ["tests.servers.fixtures", "tests.bulk.tables"]


def test_every_way_to_split_gives_each_row_once(postgres_table: Place, table: str) -> None:
    rows: Rows = [(n * n % 97 - 40 or None, n % 5 or None) for n in range(300)]
    url = postgres_table.make(table, rows, "bigint", "int")
    plan = LoadRequest(url, table, "k", "v", "map", "", collect=True).plan
    whole = [(key, value) for key, value in rows if key is not None and value is not None]
    nulls = sum(key is None for key, _ in rows)
    ways: list[list[Span]] = [
        [KeyRange()],
        [Modulus(4, remainder) for remainder in range(4)],
        [HashShare(3, remainder) for remainder in range(3)],
        [BlockRange(0, 1), BlockRange(1, None)],
    ]
    for spans in ways:
        with closing(open_source(url, plan)) as source:
            source.share((), None)
            assert source.facts().key_nullable
            limit = None if isinstance(spans[0], BlockRange) else 40
            assert read_all(source, [*spans, NullKeys()], limit) == (len(whole), nulls, rows_digest(whole))


@pytest.mark.parametrize("value", ["smallint", "int", "bigint"])
@pytest.mark.parametrize("base", [0, -(2**31), 2**31, -(2**63), 2**63 - 2**32, 905_320_000_000])
def test_keys_and_values_of_any_sign_and_distance_come_whole(
    postgres_table: Place, table: str, value: str, base: int
) -> None:
    most = {"smallint": 2**15, "int": 2**31, "bigint": 2**63}[value]
    keys = [base, base + 1, base + 7, base + 2**31 - 1, base + 2**31, base + 2**32 - 1]
    rows: Rows = [(key, each) for key in keys for each in (-most, -1, 0, 1, most - 1, None)]
    url = postgres_table.make(table, [*rows, (None, 1)], "bigint", value)
    spans: list[Span] = [
        KeyRange(Cut(base), Cut(base + 7, after=True)),  # close
        KeyRange(Cut(base + 7, after=True), Cut(base + 2**31)),
        KeyRange(Cut(base + 2**31), Cut(base + 2**32 - 1, after=True)),
    ]
    kept = [row for row in rows if row[1] is not None]
    plan = request_for(url, table, Path()).plan
    with closing(open_source(url, plan)) as source:
        for limit in (None, 1_000):  # as a stream, and as columns
            assert read_all(source, [KeyRange()], limit) == (len(kept), 0, rows_digest(kept))
            assert read_all(source, [*spans], limit) == (len(kept), 0, rows_digest(kept))
            batches = [source.read(span, limit) for span in spans]
            assert sum(each.null_values for each in batches if isinstance(each, PackedRows)) == len(keys)


def test_keys_share_an_integer_with_their_values_only_where_they_lie_close() -> None:
    assert closeness(KeyRange(Cut(-5), Cut(2**31 - 6))) == -5
    assert closeness(KeyRange(Cut(-5), Cut(2**31 - 5))) is None
    assert closeness(KeyRange(Cut(5), None)) is None
    assert closeness(KeyRange(None, Cut(5))) is None
    assert closeness(KeyRange(Cut("a"), Cut("b"))) is None
    assert closeness(Modulus(4, 1)) is None


def test_the_ranges_follow_the_statistics_where_there_are_some(postgres_table: Place, table: str) -> None:
    rows: Rows = [(n * n, 1) for n in range(3_000)] + [(7, n) for n in range(2_000)]
    url = postgres_table.make(table, rows, "bigint", "int")
    plan = LoadRequest(url, table, "k", "v", "map", "", collect=True).plan
    with closing(open_source(url, plan)) as source:
        source.share((), None)
        keys = source.sample(KeyRange(), 1_000)
        assert keys == sorted(keys)
        spans = parts_of(KeyRange(), keys, 10)
        sizes = sorted(len(batch) for span in spans if not isinstance(batch := source.read(span, 5_000), int | None))
    assert sum(sizes) == len(rows)
    assert sizes[-1] <= 2_100  # the heavy key, alone
    assert sizes[-2] <= 700


def test_keys_are_spread_as_the_statistics_say() -> None:
    keys = spread([0, 100, 200, 1_000], {7: 0.5}, 1.0, 1_000)
    assert keys == sorted(keys)
    assert keys.count(7) >= 500
    assert sum(key <= 200 for key in keys if key != 7) == pytest.approx(333, abs=5)


def test_all_instances_read_one_snapshot_and_it_outlives_the_first(postgres_table: Place, table: str) -> None:
    url = postgres_table.make(table, [(1, 1)], "bigint", "bigint")
    plan = LoadRequest(url, table, "k", "v", "map", "", collect=True).plan
    first = open_source(url, plan)
    offer = first.share((), None)
    assert offer
    with psycopg.connect(url, autocommit=True) as line:
        line.execute(f"INSERT INTO {table} VALUES (2, 2)")
    with closing(open_source(url, plan)) as second, closing(open_source(url, plan)) as third:
        again = second.share([offer], None)
        assert again
        first.close()
        wait_for_readers(url, 2)
        assert third.share([offer], None) is None
        assert third.share([offer, again], None)
        for source in (second, third):
            batch = source.read(KeyRange(), 100)
            assert batch is not None
            assert not isinstance(batch, int)
            assert len(batch) == 1
    wait_for_readers(url, 0)
    with closing(open_source(url, plan)) as late:
        assert late.share([offer, again], None) is None
        assert late.share((), None)
        batch = late.read(KeyRange(), 100)
        assert batch is not None
        assert not isinstance(batch, int)
        assert len(batch) == 2


def wait_for_readers(url: str, few: int) -> None:
    """A server ends a session, and lets its snapshot go, a moment after the client has closed the line."""
    asked = "SELECT count(*) <= %s FROM pg_stat_activity WHERE application_name = 'levada load'"
    with psycopg.connect(url, autocommit=True) as line:
        while line.execute(asked, (few,)).fetchone() != (True,):
            pass


def test_a_view_of_a_schema_is_read_like_a_table(postgres_table: Place, table: str, tmp_path: Path) -> None:
    url = postgres_table.make(table, [(n, n % 3) for n in range(50)], "numeric(12)", "smallint")
    with psycopg.connect(url, autocommit=True) as line:
        line.execute('CREATE SCHEMA IF NOT EXISTS "Odd ""One"')
        line.execute(f'CREATE VIEW "Odd ""One".{table} AS SELECT k, v FROM {table} WHERE v > 0')
    found = loaded(request_for(url, f'Odd "One.{table}', tmp_path))
    assert found == {n: [n % 3] for n in range(50) if n % 3}


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW odd AS SELECT k, v FROM plain",
        "CREATE VIEW odd AS SELECT rowid, k, v FROM plain",
        "CREATE TABLE odd AS SELECT NULL AS rowid, k, v FROM plain",
        "CREATE TABLE odd AS SELECT 'row ' || k AS RowId, k, v FROM plain",
        "CREATE TABLE odd (k TEXT PRIMARY KEY, v, rowid AS (v) STORED) WITHOUT ROWID",
        "CREATE TABLE odd (k TEXT PRIMARY KEY, v) WITHOUT ROWID",
    ],
)
def test_every_row_comes_of_what_does_not_number_its_rows(sqlite_table: Place, made: str, tmp_path: Path) -> None:
    rows: Rows = [(f"key {n}", f"value {n}") for n in range(50)]
    url = sqlite_table.make("plain", rows, "text", "text")
    with closing(sqlite3.connect(tmp_path / "source.db")) as base, base:
        base.execute(made)
        if " AS SELECT" not in made:
            base.executemany("INSERT INTO odd (k, v) VALUES (?, ?)", rows)
    request = request_for(url, "odd", tmp_path, collect=False)
    assert loaded(request) == dict(rows)
    with closing(open_source(url, request.plan)) as source:
        assert source.facts().blocks is None


@pytest.mark.parametrize("split", [SplitMethod.AUTO, SplitMethod.RANGES, SplitMethod.HASH])
def test_a_column_that_is_declared_integer_is_one_only_if_it_holds_nothing_else(
    sqlite_table: Place, split: SplitMethod, tmp_path: Path
) -> None:
    numbers: Rows = [(n, n) for n in range(40)]
    values: Rows = [*numbers, (40, "forty"), (41, 4.1), (42, b"42"), (None, None)]
    url = sqlite_table.make("odd_values", values, "INTEGER", "INTEGER")
    request = request_for(url, "odd_values", tmp_path, collect=False, split=split)
    assert loaded(request) == dict(values[:-1])
    keys: Rows = [*numbers, ("forty", 40), (4.1, 41), (b"42", 42)]
    sqlite_table.make("odd_keys", keys, "INTEGER", "INTEGER")
    request = request_for(url, "odd_keys", tmp_path / "2", collect=False, split=split)
    assert loaded(request) == {**{str(n): n for n in range(40)}, "forty": 40, "4.1": 41, "42": 42}


def test_blobs_and_texts_that_are_one_key_are_gathered(sqlite_table: Place, tmp_path: Path) -> None:
    rows: Rows = [(b"key %d" % (n % 40) if n < 40 else f"key {n % 40}", n) for n in range(80)]
    url = sqlite_table.make("odd", rows, "ANY", "INTEGER")
    found = loaded(request_for(url, "odd", tmp_path, split=SplitMethod.HASH))
    assert found == {f"key {n}": [n, n + 40] for n in range(40)}


def test_what_may_not_be_read_is_refused(postgres_table: Place, table: str, tmp_path: Path) -> None:
    url = postgres_table.make(table, [(1, 1)], "bigint", "bigint")
    with psycopg.connect(url, autocommit=True) as line:
        line.execute(f"CREATE ROLE reader_{table} LOGIN")
    other = url.replace("//postgres@", f"//reader_{table}@")
    with pytest.raises(Refused, match="may not be read: ask for GRANT SELECT"):
        load(request_for(other, table, tmp_path), lambda status: None)
    assert not (tmp_path / "maps").exists()


def test_only_what_is_newer_is_read_the_next_time(postgres_table: Place, table: str, tmp_path: Path) -> None:
    url = postgres_table.make(table, [(1, 1), (1, 2), (2, 2), (3, 3)], "bigint", "bigint")
    with psycopg.connect(url, autocommit=True) as line:
        line.execute(f"ALTER TABLE {table} ADD at timestamptz DEFAULT '2026-01-01'")
    request = request_for(url, table, tmp_path, watermark="at")
    assert loaded(request) == {1: [1, 2], 2: [2], 3: [3]}
    with psycopg.connect(url, autocommit=True) as line:
        line.execute(f"UPDATE {table} SET at = '2026-01-02' WHERE k <> 3")
        line.execute(f"INSERT INTO {table} VALUES (1, 9, '2026-01-03'), (4, 4, '2026-01-03')")
        line.execute(f"UPDATE {table} SET at = '2025-01-01' WHERE k = 3")
    assert loaded(request) == {1: [1, 2, 9], 2: [2], 3: [3], 4: [4]}
    with Map.open(request.target, "map") as opened:
        assert opened.manifest.layers == (2, 1)
        assert (opened.manifest.keys, opened.manifest.rows) == (3, 5)  # the third key was not read again
        assert opened.manifest.newest == "2026-01-03 00:00:00+00"


STAMPS: dict[str, tuple[Any, Any, Any]] = {
    "integers": (9, 10, 11),
    "beyond 2^53": (2**53, 2**53 + 1, 2**53 + 2),
    "reals": (2468132.1234567891, 2468132.1234567896, 2468132.12345679),
    "whole and broken": (9, 9.5, 10),
    "texts": ("a", "b", "c"),
    "digits": ("100", "20", "3"),
    "dates": ("2025-12-31", "2026-01-01", "2026-01-02"),
}


@pytest.mark.parametrize("column", ["untyped", "typed", "of a view"])
@pytest.mark.parametrize("collect", [True, False])
@pytest.mark.parametrize("kind", STAMPS)
def test_a_watermark_of_sqlite_is_compared_as_what_it_is(kind: str, collect: bool, column: str, tmp_path: Path) -> None:
    older, newest, newer = STAMPS[kind]
    typed = {"untyped": "", "typed": "TEXT" if isinstance(newest, str) else "NUMERIC", "of a view": ""}[column]
    with closing(sqlite3.connect(tmp_path / "source.db")) as base, base:
        base.execute(f"CREATE TABLE stamped (k INTEGER, v INTEGER, at {typed})")
        base.execute("CREATE VIEW seen AS SELECT k, v, max(at, at) AS at FROM stamped")
        base.executemany("INSERT INTO stamped VALUES (?, ?, ?)", [(1, 1, older), (2, 2, newest), (3, 3, None)])
    table = "seen" if column == "of a view" else "stamped"
    request = request_for(f"sqlite://{tmp_path / 'source.db'}", table, tmp_path, collect=collect, watermark="at")
    assert loaded(request) == {key: [key] if collect else key for key in (1, 2, 3)}
    with closing(sqlite3.connect(tmp_path / "source.db")) as base, base:
        base.executemany("INSERT INTO stamped VALUES (?, ?, ?)", [(4, 4, newest), (5, 5, newer)])
    assert loaded(request) == {key: [key] if collect else key for key in (1, 2, 3, 4, 5)}
    with Map.open(request.target, "map") as opened:
        assert opened.manifest.rows == 3  # what is older was not read again


@pytest.mark.parametrize("text", ["2026-01-01", "", "nan", "inf", "9" * 30])
def test_a_text_among_watermarks_that_are_numbers_keeps_none_of_them_back(text: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "source.db")) as base, base:
        base.execute("CREATE TABLE stamped (k INTEGER, v INTEGER, at)")
        base.executemany("INSERT INTO stamped VALUES (?, ?, ?)", [(1, 1, 9), (2, 2, text)])
    request = request_for(f"sqlite://{tmp_path / 'source.db'}", "stamped", tmp_path, watermark="at")
    assert loaded(request) == {1: [1], 2: [2]}
    with closing(sqlite3.connect(tmp_path / "source.db")) as base, base:
        base.execute("INSERT INTO stamped VALUES (3, 3, 10)")
    assert loaded(request) == {1: [1], 2: [2], 3: [3]}


def test_a_column_that_is_of_another_type_now_is_read_whole(postgres_table: Place, table: str, tmp_path: Path) -> None:
    url = postgres_table.make(table, [(1, 1), (2, 2)], "bigint", "bigint")
    with psycopg.connect(url, autocommit=True) as line:
        line.execute(f"ALTER TABLE {table} ADD at timestamptz DEFAULT '2026-01-01'")
    request = request_for(url, table, tmp_path, watermark="at")
    assert loaded(request) == {1: [1], 2: [2]}
    with psycopg.connect(url, autocommit=True) as line:
        line.execute(f"ALTER TABLE {table} ALTER v TYPE text USING 'number ' || v")
        line.execute(f"INSERT INTO {table} VALUES (3, 'number 3', '2026-01-02')")
    assert loaded(request) == {1: ["number 1"], 2: ["number 2"], 3: ["number 3"]}
    with Map.open(request.target, "map") as opened:
        assert opened.manifest.layers == (2,)


def test_a_source_that_is_not_there_says_so(tmp_path: Path) -> None:
    plan = LoadRequest("", "t", "k", "v", "map", "").plan
    for url in ("postgresql://me:secret@127.0.0.1:1/x", "mariadb://me:secret@127.0.0.1:1/x"):
        with pytest.raises(Away, match="cannot be reached"):
            open_source(url, plan)
    for url in (f"sqlite://{tmp_path}/none.db", f"{tmp_path}/none.csv", f"{tmp_path}/none.parquet"):
        with pytest.raises(NotFound, match="there is no file"):
            open_source(url, plan)
    with pytest.raises(UsageError, match="is not a source"):
        open_source("ftp://example.org/x", plan)
    with pytest.raises(UsageError, match="name the database"):
        open_source("mariadb://127.0.0.1:1/", plan)


def test_files_that_are_something_else_say_so(tmp_path: Path) -> None:
    plan = LoadRequest("", "t", "k", "v", "map", "").plan
    for name, opened in (("a.csv", CsvSource), ("a.parquet", ParquetSource)):
        (tmp_path / name).write_bytes(b"k,v\n\xff\xfe,1\n")
        with pytest.raises(LevadaError, match="cannot be read as"):
            opened(tmp_path / name, plan).facts()
    (tmp_path / "a.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(LevadaError, match="cannot be read"):
        open_source(f"sqlite://{tmp_path}/a.db", plan)


def test_a_short_line_of_csv_is_counted_as_left_out_and_an_empty_one_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,v\n1,one\n2\n\n3,three,more\n")
    plan = LoadPlan("m", "a.csv", "a", "k", "v", collect=False)
    source = CsvSource(tmp_path / "a.csv", plan)
    assert source.facts().rows == 3
    batch = source.read(KeyRange(), None)
    assert isinstance(batch, PlainRows)
    assert (len(batch), batch.null_values) == (2, 1)
    assert batch.digest() == rows_digest([(1, "one"), (3, "three")])


def test_a_field_of_csv_may_be_long_but_not_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text(f"k,v\n1,{'x' * 200_000}\n")
    plan = LoadPlan("m", "a.csv", "a", "k", "v", collect=False)
    assert CsvSource(tmp_path / "a.csv", plan).facts().rows == 1
    monkeypatch.setattr(csv_fields, "LONGEST_FIELD", 199_999)
    with pytest.raises(LevadaError, match="field larger than field limit"):
        CsvSource(tmp_path / "a.csv", plan).facts()


def test_a_quote_that_is_never_closed_is_said_and_swallows_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('k,v\n1,"one\n2,two\n')
    source = CsvSource(tmp_path / "a.csv", LoadPlan("m", "a.csv", "a", "k", "v", collect=False))
    with pytest.raises(LevadaError, match="cannot be read as CSV"):
        source.facts()


@pytest.mark.parametrize("url", ["postgresql://me:s3cret@[::1/x", "mariadb://me:s3cret@h:port/x"])
def test_an_address_that_cannot_be_read_is_not_quoted(url: str) -> None:
    with pytest.raises(LevadaError, match=r"(no|not the) address of a") as caught:
        open_source(url, LoadPlan("m", redacted(url), "t", "k", "v", collect=False))
    assert "s3cret" not in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("digits", [18, 19, 30])
def test_integers_of_any_length_are_right_and_found_by_their_digits(
    postgres_table: Place, table: str, digits: int, tmp_path: Path
) -> None:
    numbers = [n for n in (1, -7, 2**53 + 1, 2**63 - 1, 2**63, 10**25) if len(str(abs(n))) <= digits]
    kind = f"numeric({digits})"
    request = request_for(postgres_table.make(table, [(n, -n) for n in numbers], kind, kind), table, tmp_path)
    found = loaded(request)
    if digits == 18:
        assert found == {n: [-n] for n in numbers}
    else:
        assert found == {str(n): [str(-n)] for n in numbers}
    with Map.open(request.target, "map") as opened:
        answers = opened.get_many([str(n) for n in numbers])
    assert [int(answer[0]) for answer in answers] == [-n for n in numbers]


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("float4", ["0.1", "-2.5e-10", "1e+20", "Infinity", "NaN"]),
        ("float8", ["0.1", "16777217.5", "1e+100", "-Infinity", "NaN"]),
        ("bool", ["true", "false"]),
        ("bytea", ["\\x00ff", "\\x", "\\x6162"]),
        ("date", ["2026-01-31", "1999-12-31"]),
        ("uuid", ["00000000-0000-0000-0000-00000000000a"]),
    ],
)
@pytest.mark.parametrize("split", [SplitMethod.RANGES, SplitMethod.BLOCKS, SplitMethod.HASH])
def test_a_key_that_is_no_integer_is_found_by_its_text(
    postgres_table: Place, table: str, kind: str, keys: list[str], split: SplitMethod, tmp_path: Path
) -> None:
    url = postgres_table.make(table, [(key, 1) for key in keys], kind, "float8")
    assert loaded(request_for(url, table, tmp_path, collect=False, split=split)) == dict.fromkeys(keys, 1.0)


def test_a_view_that_is_larger_than_estimated_takes_no_more_memory(postgres_table: Place, table: str) -> None:
    url = postgres_table.url
    peaks = []
    for rows in (20_000, 160_000):
        with psycopg.connect(url, autocommit=True) as line:
            line.execute(
                f"CREATE FUNCTION {table}_{rows}() RETURNS SETOF bigint LANGUAGE sql VOLATILE ROWS 10"
                f" AS 'SELECT generate_series(1, {rows})::bigint'"
            )
            line.execute(f"CREATE VIEW {table}_view_{rows} AS SELECT k, k AS v FROM {table}_{rows}() k")
        with closing(open_source(url, request_for(url, f"{table}_view_{rows}", Path()).plan)) as source:
            source.share((), None)
            assert source.facts().rows < 100
            tracemalloc.start()
            keys = source.sample(KeyRange(), 1_000)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert keys == sorted(keys)
        assert 1_000 <= len(keys) <= 2_000
        assert int(keys[-1]) > 0.99 * rows
    assert peaks[1] < 1.5 * peaks[0]


def test_a_csv_file_is_read_no_more_often_for_more_tasks(
    csv_table: Place, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = csv_table.make(table, [(n % 50, n) for n in range(400)], "bigint", "bigint")
    opened = list[int]()
    lines = CsvSource._lines

    def counted(self: CsvSource) -> Any:
        opened.append(1)
        return lines(self)

    monkeypatch.setattr(CsvSource, "_lines", counted)
    with closing(open_source(url, request_for(url, table, Path()).plan)) as source:
        assert source.facts().indexed
        for parts in (2, 40):
            spans = parts_of(KeyRange(), source.sample(KeyRange(), 100), parts)
            assert read_all(source, [*spans, NullKeys()])[:2] == (400, 0)
    assert len(opened) == 3  # its header, what kind its columns are, and the copy


def test_row_groups_without_rows_of_a_task_are_not_read(tmp_path: Path) -> None:
    """One that cannot be read any more is no trouble, then."""
    path = tmp_path / "a.parquet"
    keys = [*range(100), *([None] * 10)]
    columns = {"n": [{"k": 1}] * 110, "k": keys, "v": [f"value {key}" for key in keys]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=10, compression="none")
    damaged = pyarrow.parquet.read_metadata(path).row_group(4).column(2)
    with path.open("r+b") as file:
        file.seek(damaged.dictionary_page_offset)
        file.write(b"\xff" * damaged.total_compressed_size)
    source = ParquetSource(path, LoadPlan("m", "a.parquet", "a", "k", "v", collect=False))
    assert len(read_rows(source, KeyRange(None, Cut(39, after=True)))) == 40
    assert len(read_rows(source, KeyRange(Cut(49, after=True), Cut(75)))) == 25
    assert source.read(NullKeys(), None) == 10
    assert len(read_rows(source, RowRange(50, 61))) == 11
    for touched in (KeyRange(Cut(49), Cut(75)), KeyRange(None, Cut(40, after=True)), RowRange(49, 50)):
        with pytest.raises(LevadaError, match="cannot be read"):
            source.read(touched, None)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["v", "v", "k"], "a.parquet has several columns 'v'"),
        (["k", "k", "v"], "a.parquet has several columns 'k'"),
        (["k", "x", "v"], "column 'k' of a.parquet is nested: only plain columns can be loaded"),
        (["v", "x", "k"], "column 'v' of a.parquet is nested"),
        (["x", "k", "v"], "column 'k' of a.parquet is nested"),
    ],
)
def test_a_column_that_is_nested_or_stands_twice_is_refused(names: list[str], said: str, tmp_path: Path) -> None:
    columns = [pyarrow.array([{"b": 1}]), pyarrow.array([[1]]), pyarrow.array([1])]
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(columns, names=names), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match=said):
        ParquetSource(tmp_path / "a.parquet", LoadPlan("m", "a.parquet", "a", "k", "v", collect=False))


def test_a_part_of_a_struct_is_not_taken_for_the_key_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {"a": [{"b": 1_000 + n} for n in range(100)], "a.b": list(range(100)), "v": list(range(100))}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=10)
    source = ParquetSource(path, LoadPlan("m", "a.parquet", "a", "a.b", "v", collect=False))
    assert len(read_rows(source, KeyRange(Cut(20), Cut(60)))) == 40


def read_rows(source: TableSource, span: Span) -> PlainRows:
    rows = source.read(span, None)
    assert isinstance(rows, PlainRows)
    return rows


def test_a_watermark_that_is_not_there_is_said_before_that_the_map_is_anothers(
    postgres_table: Place, table: str, tmp_path: Path
) -> None:
    url = postgres_table.make(table, [(1, 1)], "bigint", "bigint")
    load(request_for(url, table, tmp_path), lambda status: None)
    with pytest.raises(UsageError, match="has no column 'changed'"):
        load(request_for(url, table, tmp_path, watermark="changed"), lambda status: None)
    with pytest.raises(Refused, match="holds this table without --watermark, not with --watermark v"):
        load(request_for(url, table, tmp_path, watermark="v"), lambda status: None)
