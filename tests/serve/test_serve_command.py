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


def refused(*options: str, token: str = "", home: Path | None = None, status: int = 2) -> str:
    done = subprocess.run(
        [*SERVE, "--port", "0", *options],
        capture_output=True,
        text=True,
        timeout=60,
        env={"LEVADA_TOKEN": token, "PYTHONUTF8": "1", **(at_home(home) if home else {})},
    )
    assert done.returncode == status, done
    assert done.stderr.startswith("levada: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def at_home(home: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(home / "share"), "XDG_CONFIG_HOME": str(home / "config")}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two collections that have names, one of them elsewhere."""
    (tmp_path / "share" / "levada" / "shop").mkdir(parents=True)
    (tmp_path / "config" / "levada").mkdir(parents=True)
    given = json.dumps({"blog": str(tmp_path / "elsewhere")})
    (tmp_path / "config" / "levada" / "collections.json").write_text(given, encoding="utf-8")
    return tmp_path


def told_by(home: Path, *words: str, **environment: str) -> dict[str, object]:
    """What `levada WORDS --port 0 --json` says once it listens."""
    command = [sys.executable, "-m", "levada", *words, "--port", "0", "--json"]
    env = {"PYTHONUTF8": "1", **at_home(home), **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=home) as process:
        assert process.stdout is not None
        told: dict[str, object] = json.loads(process.stdout.readline())
        _wait_for_answer(str(told["url"]))
        process.terminate()
        assert process.wait(30) == 0
    return told


def test_collections_are_served_by_their_names(home: Path) -> None:
    several = told_by(home, "serve", "--in", "blog", "--in", "shop", "--data", "law=laws")
    url = several["url"]
    assert several["collections"] == {name: f"{url}c/{name}/" for name in ("blog", "shop", "law")}
    everything = told_by(home, "serve", "--all")
    assert everything["collections"] == {name: f"{everything['url']}c/{name}/" for name in ("blog", "shop")}
    both = told_by(home, "--in", "shop", "serve", "--in", "blog")["collections"]
    assert isinstance(both, dict)
    assert set(both) == {"blog", "shop"}


@pytest.mark.parametrize("words", [["--in", "blog", "serve"], ["serve", "--in", "blog"]])
def test_one_name_before_or_after_the_command_serves_that_collection_alone(home: Path, words: list[str]) -> None:
    assert told_by(home, *words, LEVADA_DATA="other")["data"] == str(home / "elsewhere")


def test_the_folder_of_the_variable_is_served_unless_another_is_named(home: Path) -> None:
    assert told_by(home, "serve", LEVADA_DATA="a b")["data"] == "a b"
    assert told_by(home, "serve", "--data", "c", LEVADA_DATA="a b")["data"] == "c"


def test_all_keeps_its_addresses_and_its_users_however_many_collections_there_are(home: Path) -> None:
    (home / "config" / "levada" / "collections.json").unlink()
    access = home / "share" / "levada" / "access.db"
    subprocess.run(
        [sys.executable, "-m", "levada", "users", "add", "ada", "--openid", "ada", "--access", str(access)],
        check=True,
        capture_output=True,
        env={"PYTHONUTF8": "1", **at_home(home)},
    )
    told = told_by(home, "serve", "--all")
    assert told["collections"] == {"shop": f"{told['url']}c/shop/"}
    assert told["token"] is True


def test_a_name_that_no_collection_has_is_refused_with_the_nearest(home: Path, tmp_path: Path) -> None:
    assert "no collection named 'shopp': did you mean shop?" in refused("--in", "shopp", home=home, status=3)
    nobody = tmp_path / "nobody"
    assert "'levada crawl --in NAME URL' starts one" in refused("--all", home=nobody, status=3)
    assert "two collections are called shop" in refused("--in", "shop", "--data", "x/shop", home=home)


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
