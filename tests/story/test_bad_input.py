"""Messages for wrong input: one clear line that says what to do, and nothing is lost."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from levada.demo.child import Web, serving
from levada.demo.world import DemoWorld
from tests.needs import without_root
from tests.small_disk import small_disk
from tests.story.collections import check_whole
from tests.story.commands import contents, levada, one_line, started

PAGES = 30


@pytest.fixture(scope="module")
def small_web() -> Iterator[Web]:
    with serving("--speed", "1", "--pages", str(PAGES), "--no-hostile") as running:
        yield running


@pytest.fixture(scope="module")
def good(small_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole collection; copied, never touched."""
    folder = tmp_path_factory.mktemp("good")
    ended = levada("crawl", "--once", "--data", "data", "--config", small_web.config, *small_web.start, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return folder / "data"


@pytest.fixture
def data(good: Path, tmp_path: Path) -> Path:
    return shutil.copytree(good, tmp_path / "data")


def crawl(web: Web, data: Path, **more: object) -> subprocess.CompletedProcess[str]:
    return levada("crawl", "--once", "--data", data, "--config", web.config, *web.start, cwd=data.parent, **more)  # type: ignore[arg-type]


# Addresses


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("", "https://example.org"),
        ("exa mple", "not an address: 'exa mple'; write it like https://example.org"),
        ("ht!tp://bad", "not an address: 'ht!tp://bad'; write it like https://example.org"),
        ("user:secret@example.org", "user name or password in it: leave them out, as in https://example.org"),
        ("http://", "not an address"),
        ("http://exa mple/", "not an address"),
        ("http://[::1/", "not an address"),
        ("http://1.2.3.4.5:99999/", "not an address"),
        ("ftp://example.org/x", "http or https"),
        ("file:///etc/passwd", "http or https"),
        ("https://user:secret@example.org/", "user name or password"),
    ],
)
def test_what_is_no_address_is_said_to_be_none(typed: str, says: str, tmp_path: Path) -> None:
    line = one_line(levada("crawl", "--once", "--", typed, cwd=tmp_path), 2)
    assert says in line
    assert "secret" not in line
    assert not list(tmp_path.iterdir()), "something was made all the same"


def test_a_crawl_of_nothing_asks_where_to_start(tmp_path: Path) -> None:
    assert "no start: name one" in one_line(levada("crawl", cwd=tmp_path), 2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flags", [(), ("--once",)])
def test_an_unknown_host_is_said_to_be_unknown(flags: tuple[str, ...], tmp_path: Path) -> None:
    for _ in range(2):  # the same command says the same
        line = one_line(levada("crawl", "http://nosuchhost.invalid/", *flags, cwd=tmp_path), 1)
        assert "check the spelling and your network" in line


def test_a_port_where_nobody_listens_and_one_that_may_not_be_asked(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    tmp_path.joinpath("levada.toml").write_text(f'[guard]\nallow = ["127.0.0.1:{port}"]\n')
    assert "nobody answers" in one_line(levada("crawl", f"http://127.0.0.1:{port}/", cwd=tmp_path), 1)
    assert "guard.allow" in one_line(levada("crawl", "http://127.0.0.1:1/", "--data", "other", cwd=tmp_path), 3)


def test_a_start_address_that_fails_beside_a_good_collection_is_named(small_web: Web, data: Path) -> None:
    before = contents(data)
    bad = "http://nosuchhost.invalid/"
    alone = levada("crawl", bad, "--once", "--data", data, "--config", small_web.config, cwd=data.parent)
    assert bad in one_line(alone, 1)
    beside = levada(
        "crawl", bad, small_web.start[0], "--once", "--data", data, "--config", small_web.config, cwd=data.parent
    )
    assert bad in one_line(beside, 0)
    assert contents(data) == before


# Settings and flags


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"[crawll]\n", "did you mean 'crawl'?"),
        (b"[crawl]\nscop = 'any'\n", "did you mean 'scope'?"),
        (b"delay = 1\n", "unknown key 'delay' outside the sections; did you mean delay in [politeness]?"),
        (b"[fetch]\ndelay = 1\n", "did you mean delay in [politeness]?"),
        (b"[fetch]\nslots = 'many'\n", "fetch.slots: expected a whole number, got a text in quotes"),
        (b"[fetch]\nslots = 0\n", "fetch.slots: expected a whole number >= 1"),
        (b"[fetch]\nslots = 100000000000\n", "fetch.slots: expected a whole number <="),
        (b"[fetch]\nmax_buffered_bytes = 1\n", "fetch.max_buffered_bytes: expected a whole number >="),
        (b"[index]\nheap = 99999999999999\n", "index.heap: expected a whole number <="),
        (b"[fetch]\nseconds = inf\n", "fetch.seconds: expected a number <="),
        (b"[clock]\nstarted = nan\n", "clock.started: expected a number >="),
        (b"[crawl]\nscope = 'both'\n", 'crawl.scope must be "sites" or "any", not "both"'),
        (b"[revisit]\nfloor = 10.0\nfirst = 5.0\n", "floor <= first <= ceiling"),
        (b"[guard]\nallow = ['127.0.0.0/8']\n", 'own.toml: guard: allow takes an exact "ip:port"'),
        (b"[guard]\nallow = ['localhost:80']\n", 'own.toml: guard: allow takes an exact "ip:port"'),
        (b"[guard]\nallow = ['1.2.3:80']\n", "guard.allow in the settings takes an exact"),
        (b"[politeness]\nagent = 'a\xc4\x9f'\n", "one line of ASCII"),
        (b"[fetch]\nca_file = '/no/such.pem'\n", "cannot be read"),
        (b"fetch = 3\n", "fetch: expected a section of keys, got a whole number"),
        (b"not toml at all [", "is not TOML"),
        (b"\xff\xfe\x00", "cannot read"),
        (None, "there is no settings file"),
    ],
)
def test_a_wrong_setting_is_named(text: bytes | None, says: str, tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    if text is not None:
        config.write_bytes(text)
    ended = levada("crawl", "http://127.0.0.1:1/", "--config", config, "--data", "data", cwd=tmp_path)
    assert says in one_line(ended, 2)
    assert not tmp_path.joinpath("data").exists(), "a folder was made all the same"


def test_settings_that_never_end_are_not_read_for_ever(tmp_path: Path) -> None:
    line = one_line(levada("crawl", "--config", "/dev/zero", "https://example.org", cwd=tmp_path), 2)
    assert "/dev/zero is too long to be a settings file" in line


def test_a_bundled_web_that_is_too_large_is_refused_before_it_is_built(tmp_path: Path) -> None:
    ended = levada("demo", "--pages", "99999999999", cwd=tmp_path)
    assert (ended.returncode, "--pages" in ended.stderr) == (2, True)


def test_a_wrong_flag_value_is_named(tmp_path: Path) -> None:
    assert '--scope must be "sites" or "any", not "both"' in one_line(
        levada("crawl", "x.org", "--scope", "both", cwd=tmp_path), 2
    )


@pytest.mark.parametrize(
    "arguments",
    [["crawl", "--nosuch"], ["nosuch"], ["crawl", "x.org", "--max-pages", "0"], ["crawl", "x.org", "--delay", "x"]],
)
def test_a_wrong_flag_is_wrong_usage(arguments: list[str], tmp_path: Path) -> None:
    ended = levada(*arguments, cwd=tmp_path)
    assert ended.returncode == 2
    assert "Usage:" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not list(tmp_path.iterdir())


# The data folder


READERS = ("search x", "postings x", "export --jsonl", "why http://a.example/", "diff http://a.example/")


@pytest.mark.parametrize("arguments", READERS)
def test_where_there_is_no_collection_it_is_said_how_to_start_one(arguments: str, tmp_path: Path) -> None:
    line = one_line(levada(*arguments.split(), "--data", "none", cwd=tmp_path), 3)
    assert "levada crawl URL" in line
    assert not list(tmp_path.iterdir())


def test_a_collection_of_a_newer_levada_is_left_alone(small_web: Web, data: Path) -> None:
    with closing(sqlite3.connect(data / "levada.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = data.joinpath("levada.db").read_bytes()
    assert "update Levada" in one_line(crawl(small_web, data), 1)
    for arguments in (["search", "istanbul"], ["why", small_web.start[0]], ["export", "--jsonl"]):
        ended = levada(*arguments, "--data", data, cwd=data.parent)
        assert "update Levada" in one_line(ended, 1), arguments
    assert data.joinpath("levada.db").read_bytes() == before


def test_a_folder_that_a_crawl_holds_can_be_read_but_not_crawled_into(small_web: Web, data: Path) -> None:
    arguments = ("crawl", "--data", data, "--config", small_web.config)
    with started(*arguments, cwd=data.parent) as holder:
        try:
            _wait_until_locked(data, holder)
            line = one_line(levada(*arguments, cwd=data.parent), 1)
            assert f"process {holder.pid}" in line
            assert "--data" in line
            assert levada("search", "istanbul", "--data", data, cwd=data.parent).returncode == 0
        finally:
            holder.send_signal(signal.SIGINT)
            holder.communicate(timeout=30)
    assert holder.returncode == 0
    check_whole(data, DemoWorld.build(small_web.seed, small_web.pages))


def test_a_file_where_the_folder_should_be(small_web: Web, tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("mine")
    for arguments in (["crawl"], ["search", "x"], ["serve", "--port", "0"], ["demo", "--seconds", "1"]):
        assert "is not a folder" in one_line(levada(*arguments, "--data", file, cwd=tmp_path), 2)
    assert "is not a folder" in one_line(crawl(small_web, file), 2)
    assert file.read_text() == "mine"


def test_a_crawl_whose_folder_was_deleted_ends_and_says_so(small_web: Web, data: Path) -> None:
    """It would go on for ever, in files that nobody finds again."""
    running = started("crawl", "--data", data, "--config", small_web.config, "--json", cwd=data.parent)
    try:
        while not (data / "live.json").exists():  # within the time that a test may take
            assert running.poll() is None
        shutil.rmtree(data, ignore_errors=True)
        _, said = running.communicate(timeout=30)
    finally:
        running.kill()
    assert running.returncode == 1
    assert said == f"levada: {data} was deleted or replaced while the crawl ran: start the crawl again\n"
    assert not data.exists()


def test_a_collection_that_knows_no_page_asks_where_to_start(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "levada.db").touch()
    assert "name a start, as in" in one_line(levada("crawl", "--data", "data", "--json", cwd=tmp_path), 2)


def test_a_command_whose_output_is_closed_has_nobody_to_answer_and_breaks_nothing(data: Path) -> None:
    before = contents(data)
    for arguments in (["search", "istanbul", "--json"], ["export", "--jsonl"], ["doctor"]):
        closed = ["sh", "-c", 'exec "$@" >&-', "sh"]
        ended = levada(*arguments, "--data", data, cwd=data.parent, through=closed)
        assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr
    assert contents(data) == before


def test_a_folder_that_nobody_may_look_into_is_said_to_be_so(data: Path) -> None:
    around = data.parent / "around"
    around.mkdir()
    data.rename(around / "data")
    around.chmod(0)
    try:
        for arguments in (["search", "x"], ["crawl"], ["serve", "--port", "0"]):
            through = without_root()
            ended = levada(*arguments, "--data", around / "data", cwd=data.parent, through=through)
            assert "(Permission denied): check" in one_line(ended, 1)
    finally:
        around.chmod(0o755)


def test_a_name_that_no_folder_can_have_is_said_to_be_too_long(tmp_path: Path) -> None:
    for arguments in (["search", "x"], ["serve", "--port", "0"], ["crawl"]):
        assert "too long" in one_line(levada(*arguments, "--data", "x" * 5000, cwd=tmp_path), 1)


def test_a_folder_that_may_not_be_written_can_be_read_and_is_not_crawled_into(small_web: Web, data: Path) -> None:
    before = contents(data)
    for path in (data, *data.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        ended = crawl(small_web, data, through=without_root())
        assert "cannot write" in one_line(ended, 1)
        for arguments in (["why", small_web.start[0]], ["export", "--jsonl"], ["search", "istanbul"]):
            ended = levada(*arguments, "--data", data, cwd=data.parent, through=without_root())
            assert ended.returncode == 0, ended.stderr
    finally:
        for path in (data, *data.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert contents(data) == before


# The disk


@pytest.mark.parametrize("size", ["128k", "500k"])
def test_a_full_disk_is_said_to_be_full_and_the_same_command_goes_on(size: str, small_web: Web, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", size) as disk:
        assert "space" in one_line(crawl(small_web, disk / "data"), 1)
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        assert crawl(small_web, disk / "data").returncode == 0
        check_whole(disk / "data", DemoWorld.build(small_web.seed, small_web.pages))


def test_a_file_that_may_not_grow_is_like_a_full_disk(small_web: Web, tmp_path: Path) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, 250_000))

    data = tmp_path / "data"
    assert one_line(crawl(small_web, data, before=limited), 1)
    assert crawl(small_web, data).returncode == 0
    check_whole(data, DemoWorld.build(small_web.seed, small_web.pages))


# Damage


def _overwrite(path: Path, start: int, size: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xa5 not what was here \x5a" * (size // 20 + 1))


@pytest.mark.parametrize("damage", ["header", "truncated", "middle", "another file", "empty"])
def test_a_damaged_database_is_said_to_be_damaged_and_left_as_it_is(damage: str, small_web: Web, data: Path) -> None:
    database = data / "levada.db"
    size = database.stat().st_size
    if damage == "header":
        _overwrite(database, 0, 200)
    elif damage == "truncated":
        os.truncate(database, size // 2)
    elif damage == "middle":
        _overwrite(database, size // 4, size // 2)
    elif damage == "another file":
        database.write_text("Dear diary, " * 1000)
    else:
        database.write_bytes(b"")
    before = database.read_bytes()
    for arguments in (["search", "istanbul"], ["export", "--jsonl"]):
        ended = levada(*arguments, "--data", data, cwd=data.parent)
        if ended.returncode != 0:  # a reader may not come across the damage
            one_line(ended, 1)
    doctor = levada("doctor", "--data", data, cwd=data.parent)
    assert doctor.returncode == 1, doctor.stdout
    assert "Traceback" not in doctor.stderr + doctor.stdout
    assert database.read_bytes() == before
    if damage != "empty":  # nothing is there to be lost: that is a new collection
        line = one_line(crawl(small_web, data), 1)
        assert "damaged" in line
        assert "crawl again" in line
        assert database.read_bytes() == before


INDEX_DAMAGE = ("gone", "no segments", "lost segment files", "meta.json", "position.json", "sites.txt", "segment")


@pytest.mark.parametrize("damage", INDEX_DAMAGE)
def test_a_damaged_index_is_rebuilt_by_itself(damage: str, small_web: Web, data: Path) -> None:
    index = data / "index"
    if damage == "gone":
        shutil.rmtree(index)
    elif damage == "no segments":
        shutil.rmtree(index / "segments")
    elif damage == "lost segment files":
        for file in index.glob("segments/*.*"):
            if file.suffix != ".json":
                file.unlink()
    elif damage == "segment":
        for file in index.glob("segments/*.*"):
            if file.suffix not in (".json", ".lock"):
                _overwrite(file, 0, max(file.stat().st_size, 20))
    else:
        (file,) = index.rglob(damage)
        _overwrite(file, 0, max(file.stat().st_size, 20))
    ended = levada("search", "istanbul", "--data", data, "--json", cwd=data.parent)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert crawl(small_web, data).returncode == 0
    check_whole(data, DemoWorld.build(small_web.seed, small_web.pages))


def _wait_until_locked(data: Path, holder: subprocess.Popen[str]) -> None:
    """Until the crawl has written its number into the lock."""
    while data.joinpath("lock").read_text() != str(holder.pid):
        with suppress(subprocess.TimeoutExpired):
            holder.wait(0.05)
        assert holder.poll() is None, "it ended by itself"
