"""`levada serve` as it is started and ended: what it says, and what it refuses."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli.collection import build

SERVE = [sys.executable, "-m", "levada", "serve"]


def refused(*options: str, token: str = "") -> str:
    done = subprocess.run(
        [*SERVE, "--port", "0", *options],
        capture_output=True,
        text=True,
        timeout=60,
        env={"LEVADA_TOKEN": token, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 2, done
    assert done.stderr.startswith("levada: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def begun(data: Path) -> subprocess.Popen[str]:
    command = [*SERVE, "--port", "0", "--data", str(data)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_being_told_to_end_is_no_failure(tmp_path: Path, number: signal.Signals) -> None:
    with begun(tmp_path / "none") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().rpartition(" ")[2].strip()
        assert "levada crawl URL --data" in process.stdout.readline()
        _wait_for_answer(address)
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize("path", ["/api/v1/live/stream", "/api/v1/changes/stream"])
def test_whoever_listens_is_told_of_the_end_and_no_trouble_is_logged(tmp_path: Path, path: str) -> None:
    with begun(build(tmp_path / "data")) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().rpartition(" ")[2].strip().rstrip("/")
        with urlopen(f"{address}{path}", timeout=30) as events:
            events.readline()
            process.send_signal(signal.SIGINT)
            events.read()  # to its end: a stream that is cut off raises
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


def test_a_program_reads_the_address_from_the_first_line_and_no_secret(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*SERVE, "--port", "0", "--data", str(tmp_path / "none"), "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env={"LEVADA_TOKEN": "a-secret-of-ours", "PYTHONUTF8": "1"},
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        told = json.loads(line)
        _wait_for_answer(told.pop("url"))
        assert told == {"data": str(tmp_path / "none"), "collection": False, "token": True}
        assert "secret" not in line
        process.terminate()
        assert process.wait(30) == 0


def test_beside_a_crawl_that_was_killed_nobody_goes_on_serving(tmp_path: Path) -> None:
    code = f"""
import time
from pathlib import Path
from levada.cli.run.crawl import served_beside
with served_beside(Path({str(tmp_path)!r}), port=0) as address:
    print(address, flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as crawl:
        assert crawl.stdout is not None
        address = crawl.stdout.readline().strip()
        _wait_for_answer(address)
        crawl.kill()
    while True:
        try:
            _wait_for_answer(address)
        except OSError:
            return  # within the time that a test may take


def _wait_for_answer(address: str) -> None:
    """The door is open before anybody stands behind it: an answer means that signals are listened to."""
    host, _, port = address.removeprefix("http://").strip("/").partition(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        if not connection.recv(20).startswith(b"HTTP/1.1 200"):
            raise ConnectionResetError


def test_a_file_is_no_data_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert "is not a folder" in refused("--data", str(file))


def test_a_port_that_is_taken_is_said_in_plain_words(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        told = refused("--data", str(tmp_path), "--port", str(taken.getsockname()[1]))
    assert "name another --port" in told


def test_a_token_that_no_header_can_carry_is_refused(tmp_path: Path) -> None:
    assert "LEVADA_TOKEN" in refused("--data", str(tmp_path), token="gizli-şifre")


@pytest.mark.parametrize("endless", ["/dev/zero", "/dev/urandom"])
def test_a_file_of_tokens_that_never_ends_is_refused(tmp_path: Path, endless: str) -> None:
    assert endless in refused("--data", str(tmp_path), "--token-file", endless)


@pytest.mark.parametrize("name", ["http://levada.example", "levada.example:8443", ""])
def test_a_name_that_no_browser_could_send_is_refused(tmp_path: Path, name: str) -> None:
    assert "is no host name" in refused("--data", str(tmp_path), "--name", name)
