"""The contract of a table source, run on every source: each row is read once, and odd tables are read alike."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from levada.bulk.engines import open_source
from levada.bulk.loads import LoadRequest, load
from levada.bulk.maps import Map
from levada.bulk.splitting import Cut, KeyRange, SplitMethod
from levada.core.errors import NotFound, Refused, UsageError
from tests.bulk.loads import Place, Rows, gathered, loaded, request_for, run

pytest_plugins = ["tests.servers.fixtures", "tests.bulk.tables"]
UNICODE = [
    "a",
    "A",
    "á",
    "ä",
    "z",
    "Z",
    "ı",
    "İ",
    "ß",
    "ss",
    "\U0001f600",
    "\u0301",
    "ﬁ",
    "10",
    "9",
    " ",
    "a ",
    "'",
    '"',
    "\\",
    "%s",
    "?",
]


ENGINES = ["postgres_table", "maria_table", "sqlite_table", "csv_table", "parquet_table"]


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(request.param)
    return found


SKEWED: Rows = [(7, value) for value in range(60)] + [(key, 1) for key in range(60)]
TABLES: dict[str, tuple[Rows, str, str]] = {
    "one key with half of the rows": (SKEWED, "bigint", "bigint"),
    "one row": ([(5, 5)], "bigint", "bigint"),
    "beyond 2^53": ([(2**53 + n, n) for n in range(-2, 3)] + [(2**63 - 1, 1), (-(2**63), 2)], "bigint", "bigint"),
    "any Unicode": ([(key, key * 2) for key in UNICODE], "text", "text"),
    "nulls": ([(None, 1), (1, None), (None, None), (1, 2), (3, 4)], "bigint", "bigint"),
    "text by number": ([(n % 13, f"value {n}") for n in range(40)], "bigint", "text"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_an_odd_table_is_loaded_right(place: Place, table: str, kind: str, tmp_path: Path) -> None:
    rows, key, value = TABLES[kind]
    request = request_for(place.make(table, rows, key, value), table, tmp_path)
    if request.source.endswith(".csv") and kind == "any Unicode":
        rows = [row for row in rows if row[0] not in ("9", "10")] + [("9", "99"), ("10", "1010")]
    assert loaded(request) == gathered(rows)


def test_an_empty_table_is_an_empty_map(place: Place, table: str, tmp_path: Path) -> None:
    assert loaded(request_for(place.make(table, [], "bigint", "bigint"), table, tmp_path)) == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_without_collect_a_value_stands_alone_and_a_second_row_is_refused(
    request: pytest.FixtureRequest, engine: str, table: str, tmp_path: Path
) -> None:
    place: Place = request.getfixturevalue(engine)
    rows: Rows = [(key, key * 2) for key in range(40)]
    asked = request_for(place.make(table, rows, "bigint", "bigint"), table, tmp_path, collect=False)
    assert loaded(asked) == dict(rows)
    doubled = f"{table}_twice"
    asked = request_for(
        place.make(doubled, [*rows, (3, 3)], "bigint", "bigint"), doubled, tmp_path / "2", collect=False
    )
    with pytest.raises(Refused, match="key '3' has several rows"):
        load(asked, lambda status: None)
    with pytest.raises(NotFound):
        Map.open(asked.target, "map")


def test_wrong_names_are_answered_with_the_near_ones(place: Place, table: str, tmp_path: Path) -> None:
    url = place.make(table, [(1, 1)], "bigint", "bigint")
    asked = LoadRequest(url, table, "kk", "v", "map", str(tmp_path / "maps"))
    with pytest.raises(UsageError, match=r"has no column 'kk': did you mean k"):
        load(asked, lambda status: None)
    if "." not in Path(url).suffix:
        asked = LoadRequest(url, f"{table}x", "k", "v", "map", str(tmp_path / "maps"))
        with pytest.raises(UsageError, match=rf"there is no table or view '{table}x': did you mean .*{table}"):
            load(asked, lambda status: None)
    assert not (tmp_path / "maps").exists()


_SHARE = """
import sys
from levada.bulk.engines import open_source
from levada.bulk.tasks import LoadPlan
from levada.bulk.splitting import HashShare
source = open_source(sys.argv[1], LoadPlan("m", sys.argv[1], sys.argv[2], "k", "v"))
print(len(source.read(HashShare(2, int(sys.argv[3])), None)))
source.close()
"""


@pytest.mark.parametrize("engine", ["sqlite_table", "csv_table", "parquet_table"])
def test_the_shares_of_a_hash_are_the_same_in_every_process(
    request: pytest.FixtureRequest, engine: str, table: str
) -> None:
    place: Place = request.getfixturevalue(engine)
    url = place.make(table, [(f"key {n}", f"{n}") for n in range(400)], "text", "text")
    rows = 0
    for share in (0, 1):  # Python's own hash has another seed in each
        command = [sys.executable, "-c", _SHARE, url, table, str(share)]
        seeded = os.environ | {"PYTHONHASHSEED": str(share + 1)}
        rows += int(subprocess.run(command, env=seeded, capture_output=True, check=True).stdout)
    assert rows == 400


@pytest.mark.parametrize(
    ("engine", "quoted"),
    [("postgres_table", '"{}.part.one"'), ("maria_table", "`{}.part.one`"), ("sqlite_table", '"{}.part.one"')],
)
def test_a_dot_may_stand_in_the_name_of_a_table(
    request: pytest.FixtureRequest, engine: str, quoted: str, table: str, tmp_path: Path
) -> None:
    place: Place = request.getfixturevalue(engine)
    rows: Rows = [(key, key * 2) for key in range(40)]
    url = place.make(quoted.format(table), rows, "bigint", "bigint")
    assert loaded(request_for(url, f"{table}.part.one", tmp_path, collect=False)) == dict(rows)


@pytest.mark.parametrize("engine", ["postgres_table", "maria_table", "sqlite_table"])
@pytest.mark.parametrize("key", ["text", "bigint"])
def test_what_elsewhere_stands_for_a_value_may_stand_in_a_name(
    request: pytest.FixtureRequest, engine: str, key: str, table: str, tmp_path: Path
) -> None:
    place: Place = request.getfixturevalue(engine)
    rows: Rows = [(f"key {n}" if key == "text" else n, n) for n in range(40)]
    url = place.make(table, rows, key, "bigint")
    odd, quote = "{}? %s 5% `?` :v", "`" if engine == "maria_table" else '"'
    names = [odd.format(name) for name in (table, "k", "v")]
    view, k, v = (f"{quote}{name.replace(quote, quote * 2)}{quote}" for name in names)
    run(url, f"CREATE VIEW {view} AS SELECT k AS {k}, v AS {v} FROM {table}")
    for split in (SplitMethod.AUTO, SplitMethod.HASH):
        target = f"{tmp_path}/{split}"
        asked = LoadRequest(url, names[0], names[1], names[2], "map", target, watermark=names[2], split=split)
        assert loaded(asked) == dict(rows)
        assert loaded(asked) == dict(rows)


@pytest.mark.parametrize(
    ("engine", "schema"), [("postgres_table", "public"), ("maria_table", "bulk"), ("sqlite_table", "main")]
)
def test_a_table_is_found_behind_its_schema(
    request: pytest.FixtureRequest, engine: str, schema: str, table: str, tmp_path: Path
) -> None:
    place: Place = request.getfixturevalue(engine)
    rows: Rows = [(key, key * 2) for key in range(40)]
    url = place.make(table, rows, "bigint", "bigint")
    assert loaded(request_for(url, f"{schema}.{table}", tmp_path, collect=False)) == dict(rows)
    with pytest.raises(UsageError, match=f"there is no table or view 'nowhere.{table}'"):
        load(request_for(url, f"nowhere.{table}", tmp_path), lambda status: None)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sample_is_in_order_and_no_larger_than_asked_for(
    request: pytest.FixtureRequest, engine: str, table: str
) -> None:
    place: Place = request.getfixturevalue(engine)
    rows: Rows = [(n * 7919 % 3_001, n) for n in range(3_000)]
    url = place.make(table, rows, "bigint", "bigint")
    with closing(open_source(url, request_for(url, table, Path()).plan)) as source:
        source.share((), None)
        for span in (KeyRange(), KeyRange(Cut(1_000), None)):
            keys = source.sample(span, 100)
            assert keys == sorted(keys)
            assert 40 <= len(keys) <= 210  # PostgreSQL draws by a chance of its own
            middle = int(keys[len(keys) // 2])
            assert middle == pytest.approx(1_500 if span == KeyRange() else 2_000, abs=800)
