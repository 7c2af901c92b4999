"""`levada shard replay` and `levada shard warm-up` on good and bad input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from levada.core.errors import NotFound, UsageError
from levada.lab.sharding.ads import AdsModel, ads, ads_log
from levada.sharding.queries import Condition, QueryEntry, ValueRule, Values, query_line
from tests.cli.typed_shard import refused, shard

pytest_plugins = ["tests.servers.fixtures"]

MODEL = AdsModel(documents=400, queries=600)
NOWHERE = "postgresql://postgres@127.0.0.1:1/postgres"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    log, sample = tmp_path / "log.jsonl", tmp_path / "docs.jsonl"
    log.write_bytes(b"".join(query_line(query) for query in ads_log(MODEL)) + b'{"half')
    sample.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in ads(MODEL)))
    return str(log), str(sample)


@pytest.fixture(scope="module")
def target(postgresql: str) -> Iterator[str]:
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS replay_command")
        connection.execute("CREATE DATABASE replay_command")
        yield postgresql.rpartition("/")[0] + "/replay_command"
        connection.execute("DROP DATABASE replay_command WITH (FORCE)")


def test_it_prints_the_papers_table_beside_ours(files: tuple[str, str], target: str) -> None:
    result = shard("replay", *files, "--target", target, "--shards", "3", "--queries", "200", "--clients", "2")
    assert result.exit_code == 0, result.output
    assert "200 queries, 400 documents, 2 clients" in result.output
    for words in ("362", "193", "23%", "ours against id", "paper against id, printed", "Predicted | measured"):
        assert words in result.output
    assert "lines of the log could not be read" in result.output
    assert "Wrong" not in result.output
    assert "unknown" not in result.output


def test_programs_get_the_same_as_json(files: tuple[str, str], target: str) -> None:
    options = (
        "--shards",
        "2",
        "--queries",
        "100",
        "--rounds",
        "cold,warm,warm",
        "--scheme",
        "id",
        "--scheme",
        "ours",
    )
    result = shard("replay", *files, "--target", target, *options, "--json")
    assert result.exit_code == 0, result.output
    facts: dict[str, Any] = msgspec.json.decode(result.stdout)
    assert facts["partial"] is True
    assert [each["scheme"] for each in facts["schemes"]] == ["id", "ours"]
    ours = facts["schemes"][1]
    assert [each["name"] for each in ours["rounds"]] == ["cold", "warm", "warm"]
    assert sum(ours["documents"]) == 400
    assert ours["rounds"][0]["queries"] == 100
    assert facts["ratios"][0]["scheme"] == "ours"
    assert facts["ratios"][0]["against"] == "id"


def test_values_that_were_dropped_are_said(tmp_path: Path, files: tuple[str, str], target: str) -> None:
    hidden = tmp_path / "hidden.jsonl"
    rule = ValueRule(Values.DROP)
    hidden.write_bytes(b"".join(query_line(rule.apply(query)) for query in ads_log(MODEL)))
    options = ("--target", target, "--shards", "2", "--queries", "50", "--rounds", "cold", "--scheme", "id")
    result = shard("replay", str(hidden), files[1], *options)
    assert result.exit_code == 0, result.output
    assert "Partial: 50 of 50 queries name values that the log does not hold (dropped or hashed)" in result.output
    error = refused("warm-up", str(hidden), "--target", target, "--table", "pg_catalog.pg_class")
    assert isinstance(error, NotFound)
    assert "--values keep" in str(error)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--scheme", "best"), "is none of none, id, paper, ours"),
        (("--shards", "1"), "with one shard every scheme is the same"),
        (("--shards", "1000"), "at most 256"),
        (("--shards", "2", "--clients", "0"), "--clients must be 1 to 64"),
        (("--shards", "2", "--queries", "0"), "at least 1"),
        (("--shards", "2", "--rounds", "hot"), "cold and warm are needed"),
        (("--shards", "2", "--rounds", "warm,cold"), "only the first round can be cold"),
        (("--shards", "2", "--id", "nothing"), "has a field 'nothing'"),
        (("--shards", "2", "--mutable", "regoin_id"), "did you mean region_id"),
        (("--shards", "2", "--mutable", "status", "--immutable", "status"), "both name 'status'"),
        (("--target", NOWHERE), "127.0.0.1:1/postgres (schema levada_replay) twice"),
        (("--target", f"{NOWHERE}?connect_timeout=3", "--shards", "3", "--force"), "twice: give it once"),
        (("--target", "foo"), "this is no address of a PostgreSQL database"),
    ],
)
def test_a_wrong_option_is_one_clear_line(files: tuple[str, str], options: tuple[str, ...], words: str) -> None:
    error = refused("replay", *files, "--target", NOWHERE, *options)
    assert isinstance(error, UsageError)
    assert words in str(error)


def test_a_server_that_is_not_there_is_one_clear_line(files: tuple[str, str]) -> None:
    error = refused("replay", *files, "--target", NOWHERE, "--shards", "2", "--queries", "10")
    assert "no server can be used" in str(error)
    assert "is away" in str(refused("warm-up", files[0], "--target", NOWHERE))


def test_a_log_without_queries_or_a_missing_one_is_said(tmp_path: Path, files: tuple[str, str]) -> None:
    empty = tmp_path / "inserts.jsonl"
    empty.write_bytes(query_line(QueryEntry("board.ads", "insert", inserted=1)))
    error = refused("replay", str(empty), files[1], "--target", NOWHERE, "--shards", "2")
    assert isinstance(error, NotFound)
    for command in (("replay", "none.jsonl", files[1]), ("warm-up", "none.jsonl")):
        assert "there is no log" in str(refused(*command, "--target", NOWHERE, *_shards(command)))


def _shards(command: tuple[str, ...]) -> tuple[str, ...]:
    return ("--shards", "2") if command[0] == "replay" else ()


def test_a_node_is_warmed_up(tmp_path: Path, target: str) -> None:
    log = tmp_path / "log.jsonl"
    queries = [QueryEntry("warm", "find", filter=Condition("n", "eq", (number,))) for number in range(30)]
    log.write_bytes(b"".join(query_line(query) for query in queries))
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute("CREATE TABLE warm AS SELECT generate_series(20, 100) AS n")
    options = ("--target", target, "--queries", "20", "--rate", "100000", "--seconds", "30")
    result = shard("warm-up", str(log), *options)
    assert result.exit_code == 0, result.output
    assert "20 queries in" in result.output
    assert "10 rows read; ended by the end of the log" in result.output  # the last twenty: 10 to 29
    facts = msgspec.json.decode(shard("warm-up", str(log), *options, "--json").stdout)
    assert (facts["asked"], facts["rows"]) == (20, 10)
    error = refused("warm-up", str(log), *options, "--table", "wram")
    assert str(error) == "this server has no table 'wram'; did you mean warm?"
    assert isinstance(error, NotFound)
    log.write_bytes(query_line(QueryEntry("elsewhere", "find")))
    assert "name one with --table" in str(refused("warm-up", str(log), *options))
    for rate in ("0", "nan", "inf"):
        assert isinstance(refused("warm-up", str(log), *options, "--rate", rate), UsageError)
