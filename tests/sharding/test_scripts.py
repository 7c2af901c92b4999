"""The scripts work on a real PostgreSQL, and MongoDB's shell understands its own."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from levada.lab.sharding.ads import ads
from levada.sharding.evaluation import assigned, pieces_of, shared_by
from levada.sharding.placement import KeyPart, Placement, ShardKey, Zone, hashed_placement, quantile_ranges
from levada.sharding.scripts.mongodb import mongodb_script
from levada.sharding.scripts.postgresql import PostgresqlScript, Server, column_names, postgresql_script
from tests.needs import program
from tests.sharding.boards import small_board

pytest_plugins = ["tests.servers.fixtures"]

COLUMNS = "_id bigint, status int, category_id int, region_id int, city_id int, properties int, is_top int"
DOCUMENTS: list[dict[str, int]] = [
    # One category in three is the same: too hot for one of three shards.
    {**ad, "category_id": 7 if number % 5 < 2 else ad["category_id"]}
    for number, ad in enumerate(ads(small_board(900)))
]


def ours(documents: list[dict[str, int]], shards: int) -> tuple[Placement, list[int]]:
    key = ShardKey((KeyPart("category_id", hashed=True), KeyPart("region_id"), KeyPart("_id")))
    starts = [key.encode_part(key.parts[0], ad["category_id"]) for ad in documents]
    pieces = pieces_of(starts, [key.encode(ad) for ad in documents], Counter(starts), shards)
    ranges, owners = assigned(pieces, [piece.documents for piece in pieces], shards)
    values = list(dict.fromkeys(ad["category_id"] for ad in documents))
    value_of = {key.encode_part(key.parts[0], value): value for value in values}
    zones = tuple(Zone(value_of[first], homes) for first, homes in shared_by(pieces, owners).items())
    return Placement(key, ranges, shards, "_id", zones), values


def plain(documents: list[dict[str, int]], shards: int) -> Placement:
    key = ShardKey((KeyPart("region_id"), KeyPart("category_id"), KeyPart("_id")))
    return Placement(key, quantile_ranges([key.encode(ad) for ad in documents], shards), shards)


class Spread:
    """A table over three servers; the first is the coordinator too, in a database of its own."""

    def __init__(self, addresses: list[str]) -> None:
        self._addresses = addresses
        self.databases = [f"shard{number}" for number in range(3)]
        self._make("coordinator", *self.databases)
        self.coordinator = psycopg.connect(self._of(0, "coordinator"), autocommit=True)
        self.shards = [psycopg.connect(self._of(n, name), autocommit=True) for n, name in enumerate(self.databases)]

    def _make(self, *names: str) -> None:
        for number, name in ((0, names[0]), *enumerate(names[1:])):
            with psycopg.connect(self._addresses[number], autocommit=True) as made:
                made.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
                made.execute(f"CREATE DATABASE {name}")

    def _of(self, number: int, database: str) -> str:
        return self._addresses[number].rsplit("/", 1)[0] + f"/{database}"

    def servers(self) -> list[Server]:
        parts = [urlsplit(address) for address in self._addresses]
        return [
            Server(part.hostname or "", part.port or 0, name, part.username or "")
            for part, name in zip(parts, self.databases, strict=True)
        ]

    def run(self, script: PostgresqlScript) -> None:
        for connection, text in zip(self.shards, script.shards, strict=True):
            connection.execute(text.encode())
        self.coordinator.execute(script.coordinator.encode())

    def insert(self, table: str, documents: list[dict[str, Any]]) -> None:
        fields = ", ".join(documents[0])
        marks = ", ".join(f"%({field})s" for field in documents[0])
        with self.coordinator.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} ({fields}) VALUES ({marks})".encode(), documents)

    def homes(self, table: str) -> dict[int, int]:
        """The server of each id, as the servers themselves see it."""
        found = {}
        for number, connection in enumerate(self.shards):
            names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            for (name,) in names:
                if name.startswith(table):
                    rows = connection.execute(f'SELECT _id FROM "{name}"'.encode()).fetchall()
                    found.update({row[0]: number for row in rows})
        return found

    def touched(self, query: str) -> set[int]:
        """The servers that a query's plan asks."""
        rows = self.coordinator.execute(f"EXPLAIN (VERBOSE, ANALYZE, TIMING off) {query}".encode()).fetchall()
        names = [row[0].split(" on ")[1].split()[0] for row in rows if "Foreign Scan on " in row[0]]
        never = [n for n, row in enumerate(rows) if "never executed" in row[0] and "Foreign Scan on" in row[0]]
        scans = [n for n, row in enumerate(rows) if "Foreign Scan on " in row[0]]
        used = [name for name, n in zip(names, scans, strict=True) if n not in never]
        found = set()
        for name in used:
            server = self.coordinator.execute(
                "SELECT srvname FROM pg_foreign_table JOIN pg_foreign_server s ON s.oid = ftserver "
                "WHERE ftrelid = %s::regclass",
                (name,),
            ).fetchone()
            assert server is not None
            found.add(int(server[0][-1]))
        return found

    def close(self) -> None:
        for connection in (self.coordinator, *self.shards):
            connection.close()


@pytest.fixture(scope="module")
def spread(postgresql_trio: list[str]) -> Iterator[Spread]:
    made = Spread(postgresql_trio)
    yield made
    made.close()


def test_documents_land_on_the_server_that_the_placement_says(spread: Spread) -> None:
    placement, values = ours(DOCUMENTS, 3)
    assert [zone.value for zone in placement.zones] == [7]
    spread.run(postgresql_script("ads", COLUMNS, placement, spread.servers(), values))
    spread.insert("ads", DOCUMENTS)
    homes = spread.homes("ads")
    assert homes == {ad["_id"]: placement.place(ad) for ad in DOCUMENTS}
    counts = Counter(homes.values())
    assert max(counts.values()) <= 1.1 * len(DOCUMENTS) / 3


def test_a_query_by_the_leading_field_asks_one_server(spread: Spread) -> None:
    whole = next(ad for ad in DOCUMENTS if ad["category_id"] != 7)["category_id"]
    assert len(spread.touched(f"SELECT * FROM ads WHERE category_id = {whole}")) == 1
    assert len(spread.touched("SELECT * FROM ads WHERE status = 4")) == 3
    assert len(spread.touched("SELECT * FROM ads WHERE category_id = 7")) > 1
    region = next(ad for ad in DOCUMENTS if ad["category_id"] == 7)
    asked = f"category_id = 7 AND region_id = {region['region_id']} AND _id = {region['_id']}"
    assert len(spread.touched(f"SELECT * FROM ads WHERE {asked}")) == 1
    found = spread.coordinator.execute("SELECT count(*) FROM ads").fetchone()
    assert found == (len(DOCUMENTS),)


def test_the_directory_leads_to_the_servers_of_one_value(spread: Spread) -> None:
    spread.coordinator.execute("INSERT INTO ads_directory SELECT _id, category_id FROM ads")
    wanted = next(ad for ad in DOCUMENTS if ad["category_id"] != 7)["_id"]
    by_id = f"SELECT * FROM ads WHERE _id = {wanted}"
    assert len(spread.touched(by_id)) == 3
    led = f"{by_id} AND category_id = (SELECT category_id FROM ads_directory WHERE _id = {wanted})"
    assert len(spread.touched(led)) == 1


def test_values_that_nobody_has_seen_are_spread_by_a_hash(spread: Spread) -> None:
    new = [{**DOCUMENTS[0], "_id": 90_000_000 + number, "category_id": 5_000 + number} for number in range(60)]
    spread.insert("ads", new)
    homes = spread.homes("ads")
    assert {homes[ad["_id"]] for ad in new} == {0, 1, 2}
    assert len(spread.touched("SELECT * FROM ads WHERE category_id = 5001")) == 1


def test_a_plain_key_becomes_ranges(spread: Spread) -> None:
    placement = plain(DOCUMENTS, 3)
    spread.run(postgresql_script("public.ranged", COLUMNS, placement, spread.servers()))
    spread.insert("ranged", DOCUMENTS)
    assert spread.homes("ranged") == {ad["_id"]: placement.place(ad) for ad in DOCUMENTS}
    spread.coordinator.execute("INSERT INTO ranged (_id) VALUES (1)")
    assert len(spread.touched("SELECT * FROM ranged WHERE region_id = 3 AND category_id = 9 AND _id = 1")) == 1


def test_a_hashed_id_becomes_hashes(spread: Spread) -> None:
    spread.run(postgresql_script("hashed", COLUMNS, hashed_placement("_id", 3), spread.servers()))
    spread.insert("hashed", DOCUMENTS)
    counts = Counter(spread.homes("hashed").values())
    assert sum(counts.values()) == len(DOCUMENTS)
    assert max(counts.values()) < 1.2 * len(DOCUMENTS) / 3
    assert len(spread.touched("SELECT * FROM hashed WHERE _id = 9")) == 1


def test_text_and_nulls_have_their_place_in_ranges_too(spread: Spread) -> None:
    key = ShardKey((KeyPart("site"), KeyPart("_id")))
    documents: list[dict[str, Any]] = [{"_id": n, "site": f"{'Zz' if n % 2 else 'é'}{n % 30}"} for n in range(90)]
    documents += [{"_id": 1_000 + n, "site": None} for n in range(60)]
    placement = Placement(key, quantile_ranges([key.encode(each) for each in documents], 3), 3)
    script = postgresql_script("texts", '_id bigint, site text COLLATE "C"', placement, spread.servers())
    assert "must be declared COLLATE" in script.coordinator
    spread.run(script)
    spread.insert("texts", documents)
    homes = spread.homes("texts")
    assert len(homes) == len(documents)
    named = [each for each in documents if each["site"] is not None]
    assert [homes[each["_id"]] for each in named] == [placement.place(each) for each in named]
    assert len(spread.touched("SELECT * FROM texts WHERE site = 'Zz3' AND _id = 3")) == 1


def test_names_and_values_of_outsiders_stay_names_and_values() -> None:
    key = ShardKey((KeyPart('a"; DROP TABLE x; --', hashed=True), KeyPart("b")))
    placement = Placement(key, hashed_placement("x", 2).ranges, 2)
    values = ["'); DROP TABLE y; --", "back\\slash", "nul\x00"]
    script = postgresql_script("t", "a int", placement, [Server("h'x"), Server("h")], values)
    assert '"a""; DROP TABLE x; --"' in script.coordinator
    assert "'''); DROP TABLE y; --'" in script.coordinator
    assert "back" not in script.coordinator
    assert "host 'h''x'" in script.coordinator


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("", []),
        ("id bigint, Site text NOT NULL", ["id", "site"]),
        ('"Site" text, "a ""b"", c" int DEFAULT 1', ["Site", 'a "b", c']),
        (
            "price numeric(10, 2), kind text DEFAULT 'a, (b' CHECK (kind <> ','), last date",
            ["price", "kind", "last"],
        ),
        ("id int, LIKE other INCLUDING ALL", None),
        ('"like" int', ["like"]),
    ],
)
def test_columns_are_read_as_postgresql_reads_them(columns: str, names: list[str] | None) -> None:
    assert column_names(columns) == names


def test_the_servers_must_be_as_many_as_the_shards() -> None:
    with pytest.raises(ValueError, match="3 shards need as many servers, not 1"):
        postgresql_script("t", "a int", hashed_placement("a", 3), [Server("h")])


_STUBS = """
const told = [];
const MinKey = 'MinKey', MaxKey = 'MaxKey';
const NumberLong = text => 'long ' + text;
const convertShardKeyToHashed = value => 'hash of ' + value;
const record = name => new Proxy({}, {get: (_, method) => (...given) => {
  told.push([name + '.' + String(method), ...given]);
  if (method === 'estimatedDocumentCount') return 0;
  if (method === 'getName') return 'ads';
  return record(name + '.' + String(method));
}});
const sh = record('sh'), db = record('db'), print = (...words) => told.push(['print', ...words]);
"""


def run_in_node(script: str, folder: Path) -> list[list[Any]]:
    import msgspec

    node = program("node")
    path = folder / "script.js"
    path.write_text(f"{_STUBS}\n{script}\nconsole.log(JSON.stringify(told));\n", encoding="utf-8")
    done = subprocess.run([node, str(path)], capture_output=True, text=True, check=True, timeout=60)
    return msgspec.json.decode(done.stdout, type=list[list[Any]])


def test_the_mongodb_script_says_key_chunks_zones_and_check(tmp_path: Path) -> None:
    placement, _ = ours(DOCUMENTS, 3)
    told = run_in_node(mongodb_script("board.ads", placement, ["rs0", "rs1", "rs2"]), tmp_path)
    key = {"category_id": "hashed", "region_id": 1, "_id": 1}
    assert ["sh.shardCollection", "board.ads", key, False, {"numInitialChunks": 12}] in told
    zones = [each for each in told if each[0] == "sh.updateZoneKeyRange"]
    assert len(zones) == len([each for each in told if each[0] == "sh.addShardToZone"]) >= 2
    assert zones[0][2] == {"category_id": "hash of 7", "region_id": "MinKey", "_id": "MinKey"}
    assert zones[-1][3] == {"category_id": "hash of 7", "region_id": "MaxKey", "_id": "MaxKey"}
    assert [low[3] for low in zones[:-1]] == [high[2] for high in zones[1:]]
    assert any("analyzeShardKey" in str(each) for each in told)
    assert ["sh.shardCollection", "board.ads_directory", {"_id": "hashed"}] in told


def test_a_present_key_is_refined_where_it_fits_and_replaced_where_not(tmp_path: Path) -> None:
    placement = plain(DOCUMENTS, 3)
    names = ["a", "b", "c"]
    fits = run_in_node(mongodb_script("x.y", placement, names, [KeyPart("region_id")]), tmp_path)
    assert any("refineCollectionShardKey" in str(each) for each in fits)
    other = run_in_node(mongodb_script("x.y", placement, names, [KeyPart("city_id")]), tmp_path)
    assert any("reshardCollection" in str(each) for each in other)
    moves = [each for each in other if each[0] == "sh.moveChunk"]
    assert [each[3] for each in moves] == ["b", "c"]
