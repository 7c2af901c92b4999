"""`levada shard advise` on good, bad and partial input."""

from __future__ import annotations

import csv
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from typer.testing import CliRunner, Result

from levada.capture.advice import SampleReading, drawn, read_sample
from levada.cli.app import app
from levada.cli.shard.advise import read_placement
from levada.core.errors import LevadaError, StoreFull
from levada.lab.sharding.ads import AdsModel, ads, ads_log
from levada.sharding.queries import Condition, QueryEntry, query_line
from tests.cli.typed_shard import refused, shard

MODEL = AdsModel(documents=1_500, queries=1_500)
DOCUMENTS = ads(MODEL)
COLUMNS = "_id bigint, category_id int, region_id int, city_id int, properties int"
Command = Callable[..., Result]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    log, sample = tmp_path / "log.jsonl", tmp_path / "docs.jsonl"
    log.write_bytes(b"".join(query_line(query) for query in ads_log(MODEL)))
    sample.write_bytes(lines(DOCUMENTS))
    return str(log), str(sample)


def lines(documents: list[Any]) -> bytes:
    return b"".join(msgspec.json.encode(each) + b"\n" for each in documents)


def test_it_ranks_keys_says_why_and_draws(files: tuple[str, str], tmp_path: Path) -> None:
    picture = tmp_path / "keys.svg"
    result = shard("advise", *files, "--shards", "8", "--picture", str(picture))
    assert result.exit_code == 0, result.output
    assert "category_id leads: 94% of the queries" in result.output
    assert "status is in none of Levada's keys" in result.output
    assert "The paper's method drops is_top: far too few values" in result.output
    assert "█" in result.output
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_the_picture_is_as_wide_as_what_is_drawn_in_it(files: tuple[str, str], tmp_path: Path) -> None:
    picture = tmp_path / "keys.svg"
    shard("advise", *files, "--shards", "8", "--picture", str(picture))
    root = ElementTree.parse(picture).getroot()
    bars = [each for each in root.iter() if each.tag.endswith("rect") and "x" in each.attrib]
    assert bars
    assert max(float(bar.attrib["x"]) + float(bar.attrib["width"]) for bar in bars) <= float(root.attrib["width"])


def test_json_tells_figures_shares_and_combinations(files: tuple[str, str]) -> None:
    result = shard("advise", *files, "--shards", "4", "--json")
    facts = msgspec.json.decode(result.stdout)
    assert facts["collection"] == "board.ads"
    assert facts["partial"] is False
    best = facts["advice"]["tried"][0]
    assert best["placement"]["key"]["parts"][0]["field"] == "category_id"
    assert best["figures"]["capacity"] > 3
    assert ["category_id", "region_id", "status"] in [each["fields"] for each in facts["combinations"]]
    assert facts["changed"] == {"status": facts["operations"]["update"]}


def test_half_lines_other_collections_and_unknown_operators_make_it_partial(
    files: tuple[str, str], tmp_path: Path
) -> None:
    log = Path(files[0])
    near = QueryEntry("board.ads", "find", filter=Condition("place", "other:$near", ("1,2",)))
    other = QueryEntry("board.users", "find")
    log.write_bytes(log.read_bytes() + query_line(near) + query_line(other) + b'{"collection": "board.ads", "o')
    sample = Path(files[1])
    sample.write_bytes(sample.read_bytes() + b'{"_id": 5, "sta\n[1, 2]\n')
    result = shard("advise", *files, "--shards", "4")
    assert result.exit_code == 0, result.output
    assert "Partial: 1 of" in result.output
    assert "1 queries of 1 other collections were left out" in result.output
    assert "operators that do not prune here: $near (1 times)" in result.output
    assert "Partial: 2 of 1,502 lines of the sample are not documents" in result.output


def test_a_sample_without_the_id_is_said(files: tuple[str, str], tmp_path: Path) -> None:
    sample = tmp_path / "anonymous.jsonl"
    sample.write_bytes(lines([{name: value for name, value in each.items() if name != "_id"} for each in DOCUMENTS]))
    result = shard("advise", files[0], str(sample), "--shards", "4", "--json")
    facts = msgspec.json.decode(result.stdout)
    assert facts["partial"] is True
    assert any("the sample has no id" in note for note in facts["notes"])


def test_a_field_of_several_kinds_is_said(files: tuple[str, str], tmp_path: Path) -> None:
    sample = tmp_path / "mixed.jsonl"
    mixed = [{**each, "category_id": str(each["category_id"])} if each["_id"] % 4 == 0 else each for each in DOCUMENTS]
    sample.write_bytes(lines(mixed))
    result = shard("advise", files[0], str(sample), "--shards", "4")
    assert "category_id is of several kinds (number in" in result.output


def test_one_shard_needs_no_key(files: tuple[str, str]) -> None:
    error = refused("advise", *files, "--shards", "1")
    assert "with one shard every document is on it" in str(error)
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("option", "words", "code"),
    [
        (("--shards", "4000"), "at most 1000", 2),
        (("--shards", "4", "--picture", "a.gif"), "must end in .svg", 2),
        (("--shards", "4", "--keep", "/nowhere/at/all"), "there is no folder", 1),
        (("--shards", "4", "--collection", "x.y"), "it has queries of: board.ads", 3),
        (("--shards", "4", "--id", "nix"), "no document of", 2),
        (("--shards", "4", "--queries", "0"), "at least 1", 2),
        (("--shards", "4", "--mutable", "regoin_id"), "has a field 'regoin_id'; did you mean region_id", 2),
        (("--shards", "4", "--immutable", "regoin_id"), "--immutable: neither the log nor the sample", 2),
        (("--shards", "4", "--mutable", "status", "--immutable", "status"), "both name 'status'", 2),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    files: tuple[str, str], option: tuple[str, ...], words: str, code: int
) -> None:
    error = refused("advise", *files, *option)
    assert words in str(error)
    assert error.exit_code == code


def test_a_field_that_only_few_documents_have_may_be_said_to_change(files: tuple[str, str]) -> None:
    sample = Path(files[1])
    sample.write_bytes(sample.read_bytes() + lines([{"_id": 9_999, "place": {"street": "x"}}]))
    assert shard("advise", *files, "--shards", "4", "--mutable", "place.street").exit_code == 0


def test_files_that_are_not_there_or_hold_nothing_are_refused(files: tuple[str, str], tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"{}\nnot json\n")
    none = str(tmp_path / "none.jsonl")
    assert "no log of queries" in str(refused("advise", none, files[1], "--shards", "4"))
    assert "no sample of documents" in str(refused("advise", files[0], none, "--shards", "4"))
    assert "there is no query in" in str(refused("advise", str(empty), files[1], "--shards", "4"))
    blank = tmp_path / "blank.jsonl"
    blank.write_bytes(b"\n")
    assert "there is no document" in str(refused("advise", files[0], str(blank), "--shards", "4"))


def test_csv_parquet_and_extended_json_are_read_alike(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    documents = [{"_id": 1, "name": "a", "code": "007"}, {"_id": 2, "name": "b", "code": "x"}]
    with (tmp_path / "s.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, ["_id", "name", "code"])
        writer.writeheader()
        writer.writerows(documents)
    parquet.write_table(pyarrow.Table.from_pylist(documents), tmp_path / "s.parquet")
    (tmp_path / "s.jsonl").write_bytes(
        lines([{**each, "_id": {"$numberLong": str(each["_id"])}} for each in documents])
    )
    for name in ("s.csv", "s.parquet", "s.jsonl"):
        assert list(read_sample(tmp_path / name, SampleReading())) == documents
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(LevadaError, match="is not a Parquet file"):
        list(read_sample(tmp_path / "bad.parquet", SampleReading()))


def test_a_long_field_of_csv_is_read(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(f"a,b\n1,{'x' * 200_000}\n")
    assert [len(row["b"]) for row in read_sample(tmp_path / "s.csv", SampleReading())] == [200_000]


def test_a_half_line_of_csv_is_counted(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("a,b\n1,2\n3\n")
    reading = SampleReading()
    assert list(read_sample(tmp_path / "s.csv", reading)) == [{"a": 1, "b": 2}]
    assert reading.damaged == 1


def test_a_draw_is_even_and_in_order() -> None:
    assert drawn(range(5), 10) == [0, 1, 2, 3, 4]
    found = drawn(range(10_000), 1_000)
    assert found == sorted(set(found))
    assert 4_500 < sum(found) / 1_000 < 5_500


def test_a_kept_placement_becomes_scripts(files: tuple[str, str], tmp_path: Path) -> None:
    kept = tmp_path / "placement.json"
    assert shard("advise", *files, "--shards", "2", "--keep", str(kept)).exit_code == 0
    assert read_placement(kept).placement.shards == 2
    mongodb = shard("script", "mongodb", str(kept), "--shard", "rs0", "--shard", "rs1")
    assert 'const ns = "board.ads";' in mongodb.stdout
    servers = ("--server", "postgresql://u@a:1/x", "--server", "postgresql://u@b:2/x")
    out = tmp_path / "scripts"
    made = shard("script", "postgresql", str(kept), *servers, "--columns", COLUMNS, "--out", str(out))
    assert made.exit_code == 0, made.output
    assert sorted(path.name for path in out.iterdir()) == ["coordinator.sql", "server0.sql", "server1.sql"]
    assert "-- server0.sql" in shard("script", "postgresql", str(kept), *servers, "--columns", COLUMNS).stdout


def test_scripts_come_as_json_too(files: tuple[str, str], tmp_path: Path) -> None:
    kept = tmp_path / "placement.json"
    shard("advise", *files, "--shards", "2", "--keep", str(kept))
    text = shard("script", "mongodb", str(kept)).stdout
    told = json.loads(shard("script", "mongodb", str(kept), "--json").stdout)
    assert told == {"collection": "board.ads", "shards": ["shard0", "shard1"], "script": text}
    asked = ("script", "postgresql", str(kept), "--server", "postgresql://a", "--server", "postgresql://b")
    out = tmp_path / "scripts"
    written = json.loads(shard(*asked, "--columns", COLUMNS, "--out", str(out), "--json").stdout)
    assert {path.name: path.read_text() for path in out.iterdir()} == written["scripts"]
    assert written["folder"] == str(out)
    assert json.loads(shard(*asked, "--columns", COLUMNS, "--json").stdout) == {**written, "folder": None}


def test_scripts_refuse_what_does_not_fit(files: tuple[str, str], tmp_path: Path) -> None:
    kept = tmp_path / "placement.json"
    shard("advise", *files, "--shards", "2", "--keep", str(kept))
    assert "2 shards, and 1 were named" in str(refused("script", "mongodb", str(kept), "--shard", "a"))
    assert "a database and a name" in str(refused("script", "mongodb", str(kept), "--collection", "ads"))
    wrong = ("--server", "mysql://a", "--server", "x")
    assert "an address is needed" in str(refused("script", "postgresql", str(kept), *wrong, "--columns", "a int"))
    asked = ("script", "postgresql", str(kept), "--server", "postgresql://a", "--server", "postgresql://b")
    for columns, hint in (("", "there is none"), ("_id bigint, category int", "did you mean category?")):
        error = refused(*asked, "--columns", columns)
        assert str(error) == f"--columns: the key needs a column 'category_id'; {hint}"
        assert error.exit_code == 2
    (tmp_path / "other.json").write_text('{"a": 1}')
    assert "holds no placement" in str(refused("script", "mongodb", str(tmp_path / "other.json")))


def test_on_a_full_disk_the_placement_that_was_kept_stays(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "advised.json"
    kept.write_text("the old one")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    done = CliRunner().invoke(app, ["shard", "advise", *files, "--shards", "2", "--keep", str(kept)])
    assert isinstance(done.exception, StoreFull)
    assert kept.read_text() == "the old one"
    assert not list(tmp_path.glob(".*"))
