"""`levada shard capture` writes clean lines, and reports an error in one line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from levada.cli.shard.options import parse_address, parse_size
from levada.core.errors import UsageError
from tests.capture.captured_packets import pcapng, segments_of
from tests.capture.mongodb_responder import msg
from tests.capture.mongodb_traffic import logged
from tests.cli.collection import build, command

search = command("search")


capture = command("shard")


FIND = msg({"find": "items", "filter": {"city": "Izmir", "price": {"$lt": 5}}, "$db": "ads"})


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    file = tmp_path / "traffic.pcapng"
    file.write_bytes(pcapng(segments_of(FIND * 3, [50])))
    return file


def test_traffic_becomes_lines_on_standard_output(traffic: Path) -> None:
    command = [sys.executable, "-m", "levada", "shard", "capture", "pcap", str(traffic)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["collection"], line["op"], line["source"]) for line in lines] == [("ads.items", "find", "pcap")] * 3
    assert "Traceback" not in done.stderr
    assert "3 queries" in done.stderr


def test_a_file_and_a_report_of_it(traffic: Path, tmp_path: Path) -> None:
    out = tmp_path / "queries.jsonl"
    answer = capture("capture", "pcap", traffic, "--out", out, "--json")
    report = json.loads(answer.out)
    assert (report["written"]["queries"], report["partial"], report["losses"]) == (3, False, [])
    assert report["heard"]["messages"] == 3
    assert len(logged(out)) == 3
    again = capture("capture", "pcap", traffic, "--out", out)
    assert again.code == 2
    assert "--force" in again.said
    assert capture("capture", "pcap", traffic, "--out", out, "--force").code == 0


def test_values_are_kept_hashed_or_dropped(traffic: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"0123456789abcdef0123")
    texts = {}
    ways: dict[str, list[object]] = {
        "keep": [],
        "hash": ["--values", "hash", "--hash-key", key],
        "again": ["--values", "hash", "--hash-key", key],
        "unknown": ["--values", "hash"],
        "drop": ["--values", "drop"],
    }
    for name, options in ways.items():
        out = tmp_path / f"{name}.jsonl"
        assert capture("capture", "pcap", traffic, "--out", out, *options).code == 0
        texts[name] = out.read_text()
    assert "Izmir" in texts["keep"]
    assert all("Izmir" not in texts[name] for name in texts if name != "keep")
    assert texts["hash"] == texts["again"] != texts["unknown"]
    assert "#" not in texts["drop"]


def test_what_is_lost_is_said_and_marked_as_partial(tmp_path: Path) -> None:
    file, out = tmp_path / "cut.pcapng", tmp_path / "queries.jsonl"
    packets = segments_of(FIND * 5, [len(FIND)])
    del packets[2]
    file.write_bytes(pcapng(packets)[:-20])
    answer = capture("capture", "pcap", file, "--out", out, "--json")
    report = json.loads(answer.out)
    assert answer.code == 0
    assert report["partial"] is True
    assert any("segments are missing" in words for words in report["losses"])
    assert any("could not be read to its end" in words for words in report["losses"])
    spoken = capture("capture", "pcap", file, "--out", out, "--force")
    assert "partial: segments are missing in 1 places" in spoken.said


def test_logs_of_both_engines_are_read(tmp_path: Path) -> None:
    mongod, postgres = tmp_path / "mongod.log", tmp_path / "postgresql.json"
    entry = {"c": "COMMAND", "attr": {"ns": "ads.items", "command": {"find": "items", "filter": {"a": 1}}}}
    mongod.write_text(json.dumps(entry) + "\nhalf a li")
    line = {"error_severity": "LOG", "message": "statement: SELECT * FROM items WHERE a = 1"}
    postgres.write_text(json.dumps(line) + "\n")
    for kind, file, collection in (("log", mongod, "ads.items"), ("postgres-log", postgres, "public.items")):
        out = tmp_path / f"{kind}.jsonl"
        assert capture("capture", kind, file, "--out", out).code == 0
        assert [query.collection for query in logged(out)] == [collection]


def test_nothing_found_is_status_3_and_leaves_no_file(tmp_path: Path) -> None:
    file, out = tmp_path / "empty.log", tmp_path / "queries.jsonl"
    file.write_text("nothing here\n")
    answer = capture("capture", "log", file, "--out", out)
    assert answer.code == 3
    assert "no query was found; 1 lines or documents could not be read" in answer.said
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["pcap", "missing.pcap"], 1, "cannot read"),
        (["pcap", __file__, "--out", "x.jsonl"], 2, "not a capture file"),
        (["pcap", __file__, "--values", "burn"], 2, "keep, hash, drop"),
        (["pcap", __file__, "--sample", "0"], 2, "--sample"),
        (["pcap", __file__, "--json"], 2, "--out"),
        (["pcap", __file__, "--hash-key", __file__], 2, "--values hash"),
        (["log", ".", "--out", "x.jsonl"], 1, "cannot read"),
        (["postgres-log", __file__, "--out", "x.jsonl"], 2, "csvlog"),
        (["postgres", "postgresql://127.0.0.1:1/x", "--out", "x.jsonl"], 1, "PostgreSQL"),
        (["mongo", "--to", "nowhere"], 2, "HOST:PORT"),
        (["mongo", "--to", "a:1", "--rotate", "much"], 2, "no size"),
        (["mongo", "--to", "a:1", "--out", "/nowhere/at/all"], 1, "cannot write"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(
    words: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = capture("capture", *words)
    assert answer.code == code
    assert said in answer.said
    assert "Traceback" not in answer.said


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "levada", "shard", "capture", "mongo", "--to", "127.0.0.1:1"]
        options = ["--listen", str(port), "--out", str(tmp_path / "q.jsonl")]
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "cannot listen" in done.stderr
    assert not (tmp_path / "q.jsonl").exists()


@pytest.mark.parametrize("before", [None, b'{"collection": "a"}\n'])
def test_a_proxy_that_nobody_asked_anything_leaves_no_file(tmp_path: Path, before: bytes | None) -> None:
    out = tmp_path / "q.jsonl"
    if before is not None:
        out.write_bytes(before)
    command = [sys.executable, "-m", "levada", "shard", "capture", "mongo", "--to", "127.0.0.1:1"]
    proxy = subprocess.Popen([*command, "--listen", "0", "--out", str(out)], stderr=subprocess.PIPE, text=True)
    assert proxy.stderr is not None
    with proxy.stderr:
        assert "passes on" in proxy.stderr.readline()
        proxy.send_signal(signal.SIGINT)
        said = proxy.stderr.read()
    assert proxy.wait(60) == 3
    assert said.splitlines() == ["no query was found"]
    assert (out.read_bytes() if out.exists() else None) == before


def test_addresses_and_sizes() -> None:
    assert parse_address("27018", "--listen", "127.0.0.1") == ("127.0.0.1", 27018)
    assert parse_address("[::1]:5", "--to") == ("::1", 5)
    assert [parse_size(text, "--rotate") for text in ("7", "5KB", "100mb", "2G")] == [7, 5_000, 10**8, 2 * 10**9]
    for wrong in ("", "x", "host:", "host:99999", "host:-1"):
        with pytest.raises(UsageError):
            parse_address(wrong, "--to")


def test_a_search_can_be_written_to_the_log(tmp_path: Path) -> None:
    data, log = build(tmp_path / "data"), tmp_path / "queries.jsonl"
    for words in ("istanbul site:example.org", "ferry OR vapur -bridge lang:tr"):
        search(words, "--data", data, "--capture", log)
    first, second = logged(log)
    assert first.collection == second.collection == "levada.pages"
    assert first.source == "search"
    assert search("istanbul", "--data", data, "--capture", "/dev/full").code == 0
