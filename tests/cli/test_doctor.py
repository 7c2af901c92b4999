from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from levada.collection.doctor import extras_of, installed_packages, requirements_of
from levada.collection.search import open_search
from levada.core.folder import DataFolder
from levada.search.tantivy.index import TantivyIndex
from levada.store.sqlite import SqliteStore
from tests.cli.collection import build, command
from tests.servers.private import free_ports

doctor = command("doctor")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No levada.toml of the developer's is met."""
    monkeypatch.chdir(tmp_path)


def checks(*arguments: object) -> dict[str, dict[str, Any]]:
    found = json.loads(doctor("--json", *arguments).out)
    return {check["name"]: check for check in found["checks"]}


def test_a_sound_machine_and_no_collection_are_fine(tmp_path: Path) -> None:
    answer = doctor("--data", tmp_path / "none")
    assert answer.code == 0, answer.out
    for told in ("Python: 3.", "packages: ", "curl: ", "SQLite: ", "disk: ", "open files: ", "localhost: "):
        assert told in answer.out
    assert "levada crawl URL starts one" in answer.out
    assert not (tmp_path / "none").exists()


def test_what_the_installation_weighs_is_added_up(tmp_path: Path) -> None:
    answer = doctor("--data", tmp_path)
    assert " MB  in all" in answer.out
    report = json.loads(doctor("--json", "--data", tmp_path).out)
    packages = {package["name"]: package for package in report["install"]["packages"]}
    assert {"levada", "tantivy", "pycurl", "rich", "markdown-it-py"} <= set(packages)
    assert not {"pytest", "pyarrow", "mypy"} & set(packages)
    assert report["install"]["bytes"] == sum(package["bytes"] for package in packages.values())
    assert packages["levada"]["bytes"] > 100_000


def test_requirements_are_read_with_their_extras() -> None:
    assert ("msgspec", False) in {(name, optional) for name, _, optional in requirements_of("levada")}
    assert extras_of("levada")["parquet"] == ["pyarrow"]
    assert installed_packages("no-such-package") == []
    assert requirements_of("no-such-package") == []


def test_a_collection_is_looked_through(tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    found = checks("--data", data)
    assert found["database"]["verdict"] == "ok"
    assert "5 pages stored of 9 known" in found["database"]["found"]
    assert "behind the documents" in found["index"]["found"]
    assert found["in use"]["found"] == "by nobody"
    with open_search(DataFolder(data)):
        pass
    assert "up to date" in checks("--data", data)["index"]["found"]


def test_an_index_that_lacks_pages_is_found_out(tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    folder = DataFolder(data)
    with open_search(folder):
        pass
    with closing(SqliteStore.open_reader(folder.database)) as store:
        one = store.changes(0, 1)[0]
        shown = sum(document.searchable for document in store.scan())
    assert f"with {shown} pages" in checks("--data", data)["index"]["found"]
    with closing(TantivyIndex(folder.index, writer=True)) as index:
        index.apply([replace(one, document=None, seq=index.position())])
    found = checks("--data", data)["index"]
    assert found["verdict"] == "warn"
    assert found["found"] == f"finds {shown - 1} pages, and {shown} are to be found"
    assert "the next search rebuilds it" in found["advice"]


def test_the_holder_of_the_lock_is_named(tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    with DataFolder(data).locked():
        assert checks("--data", data)["in use"]["found"] == f"by process {os.getpid()}"
    lock = os.open(data / "lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the doctor has let go of it
    finally:
        os.close(lock)


def test_a_damaged_database_fails_and_says_what_to_do(tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    (data / "levada.db").write_bytes(b"this is no database, whatever its name says" * 200)
    answer = doctor("--data", data)
    assert answer.code == 1
    assert "fail  database: " in answer.out
    assert "→ restore a copy" in answer.out
    assert "1 failed" in answer.out


def test_a_torn_page_of_the_database_is_found(tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    content = bytearray((data / "levada.db").read_bytes())
    for start in range(4096 * 2, len(content), 4096):
        content[start : start + 64] = b"\xff" * 64
    (data / "levada.db").write_bytes(bytes(content))
    assert doctor("--data", data).code == 1


def test_a_newer_format_fails(tmp_path: Path) -> None:
    import sqlite3

    data = build(tmp_path / "data")
    connection = sqlite3.connect(data / "levada.db")
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    answer = doctor("--data", data)
    assert answer.code == 1
    assert "newer Levada" in answer.out


def test_an_index_of_another_collection_is_noticed(tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    with open_search(DataFolder(data)):
        pass
    (data / "levada.db").unlink()
    for leftover in data.glob("levada.db-*"):
        leftover.unlink()
    SqliteStore(data / "levada.db").close()
    found = checks("--data", data)["index"]
    assert found["verdict"] == "warn"
    assert "belongs to another collection" in found["advice"]


def test_an_unreadable_index_is_only_a_warning(tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    with open_search(DataFolder(data)):
        pass
    (data / "index" / "position.json").write_text("{")
    assert checks("--data", data)["index"]["verdict"] == "warn"


def test_wrong_settings_fail(tmp_path: Path) -> None:
    config = tmp_path / "levada.toml"
    config.write_text("[fetch]\nslot = 3\n")
    answer = doctor("--data", tmp_path / "none")
    assert answer.code == 1
    assert "did you mean 'slots'?" in answer.out
    config.write_text("[fetch]\nslots = 3\n")
    assert doctor("--config", config, "--data", tmp_path / "none").code == 0
    assert doctor("--config", tmp_path / "missing.toml", "--data", tmp_path / "none").code == 1


def test_kept_settings_that_cannot_be_read_fail_and_stay(tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    (data / "settings.json").write_text("[")
    found = checks("--data", data)["settings"]
    assert (found["verdict"], str(data / "settings.json") in found["found"]) == ("fail", True)
    assert (data / "settings.json").read_text() == "["


def test_the_settings_in_force_are_checked_and_counted_by_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = build(tmp_path / "data")
    DataFolder(data).change_settings({"politeness.delay": 2.0}, "a test")
    monkeypatch.setenv("LEVADA_BUDGET_PER_HOUR", "100")
    found = checks("--data", data)["settings"]
    assert (found["verdict"], found["found"]) == ("ok", "valid: 4 by collection, 1 by environment")


def test_a_folder_from_the_future_is_a_warning(tmp_path: Path) -> None:
    data = build(tmp_path / "data")
    os.utime(data / "levada.db", (4e9, 4e9))
    assert checks("--data", data)["folder's time"]["verdict"] == "warn"


def test_a_machine_that_does_not_know_itself_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*arguments: object, **options: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert checks("--data", tmp_path)["localhost"]["verdict"] == "warn"


def test_too_few_open_files_are_a_warning(tmp_path: Path) -> None:
    config = tmp_path / "many.toml"
    config.write_text("[fetch]\nslots = 10000000\n")
    found = checks("--config", config, "--data", tmp_path)["open files"]
    assert found["verdict"] in ("warn", "ok")  # ok only where the limit is higher still
    assert ("ulimit -n" in found["advice"]) == (found["verdict"] == "warn")


def test_every_extra_that_users_need_is_told_of_once(tmp_path: Path) -> None:
    names = [check["name"] for check in json.loads(doctor("--json", "--data", tmp_path).out)["checks"]]
    extras = [name for name in names if name.startswith("extra ")]
    assert len(extras) == len(set(extras))
    assert {"extra parquet", "extra lab", "extra rabbitmq", "extra postgresql", "extra mariadb"} <= set(extras)


def test_a_server_that_is_away_fails_and_its_password_is_not_shown(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    config = tmp_path / "levada.toml"
    config.write_text(f'[store]\nservers = ["postgresql://me:hushhush@127.0.0.1:{port}/levada"]\n')
    answer = doctor("--data", tmp_path / "none", "--config", config)
    assert answer.code == 1
    assert f"PostgreSQL at 127.0.0.1:{port}/levada" in answer.out
    assert "hushhush" not in answer.out


def test_what_stands_in_the_way_in_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (nobody,) = free_ports(1)
    monkeypatch.setenv("HELD", "http://me:hush-hush@proxy.example")
    config = tmp_path / "levada.toml"
    login = '{ url = "/in", fields = { password = "env:NOT_SET" } }'
    with socket.create_server(("127.0.0.1", 0)) as there:
        ours = there.getsockname()[1]
        config.write_text(
            f'[fetch]\nproxy = ["http://127.0.0.1:{ours}", "socks5://127.0.0.1:{nobody}", "env:HELD"]\n'
            f'[[site]]\nmatch = "a.test"\nlogin = {login}\nclient_certificate = "{tmp_path}/nothing.pem"\n'
        )
        told = doctor("--data", tmp_path, "--config", config, "--json").out
    found = [each["found"] for each in json.loads(told)["checks"] if each["name"] in ("proxy", "rule of a.test")]
    assert found == [
        f"http://127.0.0.1:{ours} can be reached",
        f"socks5://127.0.0.1:{nobody} cannot be reached (Connection refused)",
        "what env:HELD holds is no address of a proxy",
        f"the variable NOT_SET is not set: set it for the process that fetches; {tmp_path}/nothing.pem cannot be read",
    ]
    assert "hush-hush" not in told


def test_our_own_version_is_that_of_the_code() -> None:
    from levada import __version__

    assert {package.name: package.version for package in installed_packages("levada")}["levada"] == __version__


def test_a_file_in_place_of_the_folder_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = checks("--data", tmp_path / "file")["collection"]
    assert found["verdict"] == "fail"
    assert "is not a folder" in found["found"]


def test_a_name_that_no_folder_can_have_fails(tmp_path: Path) -> None:
    assert checks("--data", "x" * 5000)["collection"]["verdict"] == "fail"


@pytest.mark.parametrize(
    ("file", "name", "verdict"),
    [("orders.db", "orders", "fail"), ("hooks.db", "webhooks", "fail"), ("trends.db", "counts", "warn")],
)
def test_a_small_file_that_is_damaged_is_named(tmp_path: Path, file: str, name: str, verdict: str) -> None:
    data = build(tmp_path / "data")
    assert name not in checks("--data", data)
    (data / file).write_bytes(b"no database at all" * 100)
    found = checks("--data", data)[name]
    (data / file).unlink()
    (data / file).mkdir()
    assert "is not a file" in checks("--data", data)[name]["found"]
    assert (found["verdict"], str(data / file) in found["found"]) == (verdict, True)
    assert found["advice"]
