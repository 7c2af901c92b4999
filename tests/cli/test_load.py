"""`levada load` and the status of a load, as a user types them."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from levada.bulk import loads as loading
from levada.bulk.engines import redacted
from levada.bulk.loads import LoadRequest, note_load, noted_load
from levada.cli.app import app
from levada.core.errors import LevadaError, StoreDamaged

ROWS = [(905320000000 + n % 40, n % 7) for n in range(200)]


@pytest.fixture
def source(tmp_path: Path) -> str:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as base, base:
        base.execute("CREATE TABLE allowed (msisdn INTEGER, category_id INTEGER)")
        base.executemany("INSERT INTO allowed VALUES (?, ?)", ROWS)
        base.execute("INSERT INTO allowed VALUES (NULL, 1), (905320000000, NULL)")
        base.execute("CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT)")
        base.executemany("INSERT INTO names VALUES (?, ?)", [(1, "one"), (2, "\x1b[31mtwo")])
    return f"sqlite://{tmp_path / 'shop.db'}"


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Any:
        return CliRunner().invoke(app, ["load", *words])

    return run


def collected(typed: Callable[..., Any], source: str, *more: str) -> Any:
    words = ["--from", source, "--table", "allowed", "--key", "msisdn", "--collect", "category_id"]
    return typed(*words, "--name", "categories", "--keep-old", "0", *more)


def test_a_table_is_loaded_into_a_file_and_asked(typed: Callable[..., Any], source: str, tmp_path: Path) -> None:
    done = collected(typed, source, "--task-rows", "20")
    assert done.exit_code == 0
    assert done.stdout == (
        f"categories: 200 rows of 40 keys in levada-maps, generation 1, {done.stdout.split('generation 1, ')[1]}"
    )
    assert "2 rows with NULL left out" in done.stdout
    found = typed("get", "categories", "905320000003")
    assert found.stdout.split() == [str(n % 7) for n in sorted(range(3, 200, 40), key=lambda n: n % 7)]
    both = json.loads(typed("get", "categories", "905320000003", "5", "--json").stdout)
    assert both["found"]["5"] is None
    assert len(both["found"]["905320000003"]) == 5


def test_a_key_that_is_not_there_is_not_found(typed: Callable[..., Any], source: str) -> None:
    collected(typed, source)
    missing = typed("get", "categories", "1")
    assert isinstance(missing.exception, LevadaError)
    assert missing.exception.exit_code == 3
    assert typed("get", "categories", "1", "--json").exit_code == 3
    wrong = typed("get", "categories", "one")
    assert "is not a 64-bit integer key" in str(wrong.exception)


def test_its_json_says_what_was_done(typed: Callable[..., Any], source: str) -> None:
    facts = json.loads(collected(typed, source, "--json").stdout)
    assert (facts["state"], facts["rows"], facts["keys"]) == ("published", 200, 40)
    assert (facts["null_keys"], facts["null_values"]) == (1, 1)
    assert (facts["began"], facts["restarts"], facts["snapshot_shared"]) == (True, 0, False)
    status = json.loads(typed("status", "categories", "--json").stdout)
    assert status["published"]["digest"] == facts["digest"] == status["digest"]
    assert status["tasks"]["waiting"] == 0
    assert sum(each["rows"] for each in status["instances"].values()) == 200


def test_what_others_have_just_loaded_is_not_loaded_again(typed: Callable[..., Any], source: str) -> None:
    collected(typed, source, "--connections", "1")
    late = json.loads(collected(typed, source, "--fresh", "600", "--json").stdout)
    assert (late["generation"], late["began"]) == (1, False)
    assert json.loads(collected(typed, source, "--json").stdout)["generation"] == 2


def test_whoever_comes_when_enough_read_waits_until_one_has_left(typed: Callable[..., Any], source: str) -> None:
    from levada.bulk.engines import open_task_store
    from levada.bulk.instance import NoWakeup
    from levada.bulk.splitting import KeyRange
    from levada.bulk.tasks import LoadRecord

    request = LoadRequest(source, "allowed", "msisdn", "category_id", "m", "levada-maps", collect=True, connections=1)
    with closing(open_task_store(request.target)) as book:
        assert book.begin(LoadRecord(request.plan, 1, "int", "int"), [KeyRange()], 0)
        assert book.lease("m", 1, "another", 600.0, "") is not None
        waits: list[float] = []

        def leave(seconds: float) -> None:
            waits.append(seconds)
            book.begin(LoadRecord(request.plan, 2, "int", "int"), [KeyRange()], 1)

        loading._wait_for_room(request, NoWakeup(leave))
    assert len(waits) == 1


def test_only_where_there_is_an_older_map_its_readers_are_waited_for(
    typed: Callable[..., Any], source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(loading, "_sleep", waits.append)
    collected(typed, source, "--keep-old", "1234")
    assert 1234.0 not in waits
    collected(typed, source, "--keep-old", "1234")
    assert waits.count(1234.0) == 1


def test_whoever_is_interrupted_after_the_map_is_published_is_done(
    typed: Callable[..., Any], source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float) -> None:
        if seconds == 1234.0:
            raise KeyboardInterrupt

    monkeypatch.setattr(loading, "_sleep", interrupted)
    collected(typed, source)
    done = collected(typed, source, "--keep-old", "1234")
    assert done.exit_code == 0
    assert "generation 2" in done.stdout
    assert "interrupted" not in done.stderr


@pytest.mark.parametrize(
    ("maps", "line"),
    [("levada-maps", "levada load resume categories\n"), ("my maps", "load resume categories --maps 'my maps'\n")],
)
def test_whoever_interrupts_a_load_is_told_how_it_goes_on(
    typed: Callable[..., Any], source: str, maps: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loading, "load", interrupted)
    done = collected(typed, source, "--maps", maps)
    assert done.exit_code == 130
    assert done.stderr.endswith(line)


def test_verify_agrees_until_the_source_changes(typed: Callable[..., Any], source: str, tmp_path: Path) -> None:
    collected(typed, source)
    same = json.loads(typed("verify", "categories", "--json").stdout)
    assert same["whole"]
    assert same["current"]
    assert same["source"] == same["stored"] == same["loaded"]
    with closing(sqlite3.connect(tmp_path / "shop.db")) as base, base:
        base.execute("UPDATE allowed SET category_id = 9 WHERE rowid = 1")
    changed = typed("verify", "categories")
    assert "the source has changed since" in str(changed.exception)
    assert typed("verify", "categories", "--stored-only").exit_code == 0


def test_the_status_of_a_finished_load_can_be_read(typed: Callable[..., Any], source: str) -> None:
    collected(typed, source)
    shown = typed("status", "categories").stdout
    assert "categories: generation 1 is published" in shown
    assert "published: generation 1, 40 keys, 200 rows" in shown
    again = typed("resume", "categories")
    assert "there is nothing to resume" in str(again.exception)
    assert "no load of categories is running" in str(typed("cancel", "categories").exception)


def test_a_load_that_failed_says_why_and_can_be_cancelled(typed: Callable[..., Any], tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"id": [1, 1], "name": ["one", "two"]}), tmp_path / "twice.parquet")
    failed = typed("--from", str(tmp_path / "twice.parquet"), "--key", "id", "--value", "name", "--name", "names")
    assert "key '1' has several rows" in str(failed.exception)
    shown = typed("status", "names", "--to", "levada-maps").stdout
    assert "names: generation 1 is failed (key '1' has several rows" in shown
    assert json.loads(typed("cancel", "names", "--to", "levada-maps", "--json").stdout)["state"] == "cancelled"


def test_one_value_per_key_and_nothing_of_it_steers_the_terminal(typed: Callable[..., Any], source: str) -> None:
    done = typed("--from", source, "--table", "names", "--key", "id", "--value", "name", "--keep-old", "0")
    assert done.exit_code == 0
    assert typed("get", "names", "1", "2").stdout == "1: one\n2: two\n"


def test_several_processes_share_a_load(source: str, tmp_path: Path) -> None:
    words = [
        "--from",
        source,
        "--table",
        "allowed",
        "--key",
        "msisdn",
        "--collect",
        "category_id",
        "--name",
        "many",
    ]
    command = [
        sys.executable,
        "-m",
        "levada",
        "load",
        *words,
        "--processes",
        "2",
        "--task-rows",
        "10",
        "--keep-old",
        "0",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "many: 200 rows of 40 keys" in done.stdout
    assert "loading " in done.stderr


@pytest.mark.parametrize(
    ("words", "said", "status"),
    [
        ([], "name one column with --value", 2),
        (["--value", "v"], "--from and --key and --table must be named", 2),
        (["--value", "v", "--collect", "v"], "name one column", 2),
        (
            ["--from", "{source}", "--table", "allowed", "--key", "msisdn", "--value", "category_id"],
            "several rows",
            3,
        ),
        (
            ["--from", "{source}", "--table", "alowed", "--key", "msisdn", "--value", "x"],
            "did you mean allowed?",
            2,
        ),
        (["--from", "{source}", "--table", "allowed", "--key", "msisd", "--value", "x"], "did you mean msisdn?", 2),
        (
            ["--from", "{source}", "--table", "names", "--key", "id", "--value", "name", "--name", "../x"],
            "not a map name",
            2,
        ),
        (["--from", "ftp://x/y", "--table", "t", "--key", "id", "--value", "v"], "is not a source", 2),
        (
            ["--from", "{source}", "--table", "t", "--key", "k", "--value", "v", "--split", "x"],
            "is not one of auto",
            2,
        ),
        (
            ["--from", "{source}", "--table", "names", "--key", "id", "--value", "name", "--to", "s3://x"],
            "not a target",
            2,
        ),
        (
            ["--from", "postgresql://me:s3@cr/et@h/x", "--table", "t", "--key", "k", "--value", "v"],
            "write signs such as @ / ? # as %40",
            2,
        ),
        (
            [
                "--from",
                "{source}",
                "--table",
                "names",
                "--key",
                "id",
                "--value",
                "name",
                "--wake",
                "http://u:p@h:1/",
            ],
            "a broker's address looks like amqp://",
            2,
        ),
        (
            ["--from", "{source}", "--table", "names", "--key", "name", "--value", "id", "--split", "mod"],
            "cannot be split by mod",
            2,
        ),
        (["status", "nothing"], "no load nothing is noted", 3),
        (["status"], "no load is noted in levada-maps", 3),
        (["status", "--to", "elsewhere"], "name the map", 2),
        (["get", "nothing", "1", "--to", "elsewhere"], "no map nothing is published in elsewhere", 3),
        (["verify", "nothing", "--to", "elsewhere", "--stored-only"], "no map nothing is published", 3),
        (["resume", "nothing", "--to", "elsewhere"], "give the whole levada load line again", 2),
    ],
)
def test_bad_input_is_one_clear_line_and_nothing_is_written(
    words: list[str], said: str, status: int, typed: Callable[..., Any], source: str, tmp_path: Path
) -> None:
    before = sorted(tmp_path.iterdir())
    done = typed(*[word.format(source=source) for word in words])
    assert isinstance(done.exception, LevadaError)
    assert said in str(done.exception)
    assert "\n" not in str(done.exception)
    assert done.exception.exit_code == status
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s3@cr/et@db/shop", "postgresql://db/shop"),
        ("postgresql://me:s3/cret@db/shop", "postgresql://db/shop"),
        ("redis://:s3?cret@cache/0", "redis://cache/0"),
        ("mariadb://me:s3#cret@db/shop", "mariadb://db/shop"),
        ("postgres//me:s3cret@db/shop", "postgres//db/shop"),
        ("mysql:/me:s3cret@db/shop", "db/shop"),
        ("postgresql://db/shop?user=me@home&password=s3cret", "postgresql://db/shop"),
        ("sqlite:///home/me@work/shop.db", "sqlite:///home/me@work/shop.db"),
        ("me@work/shop.csv", "me@work/shop.csv"),
    ],
)
def test_no_piece_of_a_password_is_shown_however_it_was_typed(url: str, shown: str) -> None:
    assert redacted(url) == shown


@pytest.mark.parametrize("option", ["--rows-per-second", "--keep-old", "--fresh"])
def test_what_cannot_be_noted_is_refused_and_the_notes_stay_whole(
    option: str, typed: Callable[..., Any], source: str
) -> None:
    collected(typed, source)
    words = ["--from", source, "--table", "names", "--key", "id", "--value", "name"]
    assert typed(*words, option, "inf").exit_code == 2
    assert typed("get", "categories", "905320000003").exit_code == 0


def test_a_name_that_was_mistyped_leads_to_the_near_one(typed: Callable[..., Any], source: str) -> None:
    collected(typed, source)
    assert "did you mean categories?" in str(typed("status", "categores").exception)


def test_where_no_name_is_near_those_that_are_noted_are_a_sentence(typed: Callable[..., Any], source: str) -> None:
    collected(typed, source)
    said = str(typed("get", "y", "1").exception)
    assert said.endswith("levada-maps: there is categories. Or name where the map is with --to")


def test_the_status_of_a_map_of_layers_says_whose_keys_it_counts(
    typed: Callable[..., Any], source: str, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as base, base:
        base.execute("CREATE TABLE prices (id INTEGER PRIMARY KEY, price INTEGER, at INTEGER)")
        base.executemany("INSERT INTO prices VALUES (?, ?, ?)", [(n, n, n) for n in range(9)])
    words = ["--from", source, "--table", "prices", "--key", "id", "--value", "price", "--watermark", "at"]
    typed(*words)
    assert "published: generation 1, 9 keys, 9 rows, 20" in typed("status", "prices").stdout
    with closing(sqlite3.connect(tmp_path / "shop.db")) as base, base:
        base.execute("UPDATE prices SET price = 7, at = 9 WHERE id < 2")
    typed(*words)
    shown = " ".join(typed("status", "prices").stdout.split())
    assert "published: generation 2, 3 keys, 3 rows in the newest of 2 layers, 20" in shown
    known = " ".join(typed("status").stdout.split())
    assert known.endswith("published, generation 2, 3 keys in the newest of 2 layers")


def test_of_several_keys_those_that_are_missing_are_named(typed: Callable[..., Any], source: str) -> None:
    collected(typed, source)
    done = typed("get", "categories", "905320000003", "7")
    assert done.exit_code == 0
    assert "map categories has no 7" in done.stderr


def test_a_map_of_another_table_stays_unless_replaced(typed: Callable[..., Any], source: str) -> None:
    collected(typed, source)
    words = ["--from", source, "--table", "names", "--key", "id", "--value", "name", "--name", "categories"]
    refused = typed(*words)
    assert "categories holds another table" in str(refused.exception)
    assert typed("get", "categories", "905320000003").exit_code == 0
    assert typed(*words, "--replace", "--keep-old", "0").exit_code == 0
    assert typed("get", "categories", "1").stdout == "one\n"


def test_passwords_are_noted_for_their_owner_alone_and_shown_to_nobody(tmp_path: Path) -> None:
    url = "postgresql://me:secret@db/shop"
    assert redacted(url) == "postgresql://db/shop"
    note_load(tmp_path / "maps", LoadRequest(url, "t", "k", "v", "m", "redis://:secret@h/0"))
    assert (tmp_path / "maps" / "loads.json").stat().st_mode & 0o777 == 0o600
    noted = noted_load(tmp_path / "maps", "m")
    assert noted is not None
    assert noted.source == url
    assert "secret" not in str(noted.plan)
    (tmp_path / "maps" / "loads.json").write_text("{")
    with pytest.raises(StoreDamaged, match="is damaged: remove it"):
        noted_load(tmp_path / "maps", "m")


def test_metrics_tell_of_the_load(typed: Callable[..., Any], source: str) -> None:
    from urllib.request import urlopen

    from levada.bulk.loads import load_status
    from levada.bulk.metrics import LoadMetrics
    from tests.servers.private import free_ports

    collected(typed, source)
    status, _ = load_status(LoadRequest("", "", "", "", "categories", "levada-maps"))
    assert status is not None
    port = free_ports(1)[0]
    metrics = LoadMetrics("categories", port)
    try:
        metrics.show(status)
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
    finally:
        metrics.close()
    assert 'levada_load_rows{load="categories"} 200.0' in text
    assert 'levada_load_tasks{load="categories",state="done"}' in text


def test_a_key_that_stands_twice_in_a_csv_file_is_found_before_anything_is_written(
    typed: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "twice.csv").write_text("id,name\n1,one\n1,two\n")
    failed = typed("--from", str(tmp_path / "twice.csv"), "--key", "id", "--value", "name")
    assert "key '1' has several rows" in str(failed.exception)
    assert not (tmp_path / "levada-maps").exists()


def test_status_without_a_name_lists_what_is_noted(typed: Callable[..., Any], source: str, tmp_path: Path) -> None:
    collected(typed, source)
    note_load(Path("levada-maps"), LoadRequest("sqlite://x.db", "t", "k", "v", "away", "redis://127.0.0.1:1/0"))
    shown = typed("status").stdout.splitlines()
    assert shown[0].startswith("away of t in redis://127.0.0.1:1/0: unknown (")
    place = tmp_path / "levada-maps"
    assert shown[1] == f"categories of allowed in {place}: published, generation 1, 40 keys"
    away, there = json.loads(typed("status", "--json").stdout)["loads"]
    assert (away["name"], away["state"]) == ("away", "unknown")
    assert (there["name"], there["state"], there["rows"]) == ("categories", "published", 200)


def test_what_no_longer_runs_has_no_time_left(typed: Callable[..., Any], source: str) -> None:
    from levada.bulk.engines import open_task_store
    from levada.bulk.splitting import KeyRange
    from levada.bulk.tasks import LoadRecord, TaskResult

    request = LoadRequest(source, "allowed", "msisdn", "category_id", "m", "levada-maps", collect=True)
    with closing(open_task_store(request.target)) as book:
        assert book.begin(LoadRecord(request.plan, 1, "int", "int"), [KeyRange(), KeyRange()], 0)
        lease = book.lease("m", 1, "me", 600.0, "")
        assert lease is not None
        assert book.complete(lease, TaskResult(rows=5, keys=5))
    note_load(Path("levada-maps"), request)
    assert " s left" in typed("status", "m").stdout
    assert typed("cancel", "m").exit_code == 0
    assert "50%" in typed("status", "m").stdout
    assert " s left" not in typed("status", "m").stdout
    assert json.loads(typed("status", "m", "--json").stdout)["seconds_left"] is None
