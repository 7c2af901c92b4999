"""The guides on upgrades and backups do what they say, by their own commands."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from levada.core.errors import StoreError
from levada.core.folder import DataFolder
from levada.core.settings import Settings, load_settings
from levada.demo.child import Web, serving
from levada.search.tantivy.index import TantivyIndex
from tests.collection.storage.told import everything
from tests.small_disk import small_disk
from tests.store.older_stores import unpack_older
from tests.story.commands import contents, levada, one_line, started, what_it_said
from tests.story.guides import guide_commands, typed

OFTEN_CHANGED = "http://boun.localhost:18417/"


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving("--speed", "500", "--pages", "60", "--no-hostile") as running:
        yield running


@pytest.fixture
def older(tmp_path: Path) -> Path:
    unpack_older(tmp_path).joinpath("plain").rename(tmp_path / "news")
    return tmp_path


def facts(*arguments: str | Path, cwd: Path) -> Any:
    ended = levada(*arguments, "--json", cwd=cwd)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_the_guide_upgrades_a_folder_of_format_6_with_its_history(older: Path) -> None:
    dry, upgrade, why, versions, doctor = guide_commands("upgrade")
    instead = {"https://example.org/": OFTEN_CHANGED}
    before = {path.name: path.read_bytes() for path in (older / "news").iterdir() if path.is_file()}

    looked = typed(dry, older)
    assert looked.returncode == 0, looked.stderr
    assert "format 6, the newest is" in looked.stdout
    assert "52 pages" in looked.stdout
    assert {path.name: path.read_bytes() for path in (older / "news").iterdir() if path.is_file()} == before

    done = typed(upgrade, older)
    assert done.returncode == 0, done.stderr
    assert "upgraded from format 6" in done.stdout
    assert "levada.db.format-6.backup" in done.stdout
    assert typed(upgrade, older).stdout.endswith("nothing to do\n")

    told = typed(why, older, instead)
    assert "Changed 3 of 4 visits" in told.stdout
    assert len(typed(versions, older, instead).stdout.splitlines()) >= 4
    assert typed(doctor, older).returncode == 0
    trends = json.loads(levada("trends", "--data", "news", "--json", cwd=older).stdout)
    assert trends["counting"]["position"] == 41
    why_facts = facts("why", OFTEN_CHANGED, "--data", "news", cwd=older)
    assert (why_facts["visits"], why_facts["policy"]) == (4, "learned")
    assert [visit["outcome"] for visit in why_facts["history"]] == ["first", "changed", "changed", "changed"]


def test_a_disk_that_fails_during_an_upgrade_leaves_the_older_store(older: Path) -> None:
    size = (older / "news" / "levada.db").stat().st_size

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    ended = levada("upgrade", "--data", "news", cwd=older, before=limited)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].endswith("check the disk, then try again")
    _upgrades_now(older)


def test_a_disk_without_room_is_left_as_it_is(older: Path) -> None:
    with small_disk(older / "small", "700k") as disk:
        shutil.copytree(older / "news", disk / "news", ignore=shutil.ignore_patterns("maps", "index"))
        before = (disk / "news" / "levada.db").read_bytes()
        said = one_line(levada("upgrade", "--data", "news", cwd=disk), 1)
        assert "make room, or add --no-backup; nothing was changed" in said
        assert (disk / "news" / "levada.db").read_bytes() == before
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        _upgrades_now(disk)


def _upgrades_now(folder: Path) -> None:
    assert facts("upgrade", "--data", "news", "--dry-run", cwd=folder)["shards"][0]["format"] == 6
    assert facts("upgrade", "--data", "news", cwd=folder)["done"]
    assert facts("why", OFTEN_CHANGED, "--data", "news", cwd=folder)["visits"] == 4


def test_the_guide_backs_up_during_a_crawl_and_restores_elsewhere(web: Web, tmp_path: Path) -> None:
    shutil.copy(web.config, tmp_path / "levada.toml")
    crawl, backup, verify, restore, search = guide_commands("backup")
    running = typed(crawl, tmp_path, {"https://example.org": " ".join(web.start)})
    number = int(running.stdout)
    try:
        _until(lambda: (tmp_path / "news" / "levada.db").exists() and len(contents(tmp_path / "news")) > 20)
        saved = typed(backup, tmp_path)
        assert saved.returncode == 0, saved.stderr
        assert "all of it is whole" in saved.stdout
        os.kill(number, 0)  # it goes on
    finally:
        os.kill(number, signal.SIGTERM)
        _until(lambda: not Path(f"/proc/{number}").exists() or _is_dead(number))
    assert typed(verify, tmp_path).returncode == 0
    restored = typed(restore, tmp_path)
    assert restored.returncode == 0, restored.stderr
    assert restored.stdout.splitlines()[-1] == "everything can be searched"
    with closing(TantivyIndex(tmp_path / "restored" / "index")) as index:
        assert index.position() > 0
    assert levada("doctor", "--data", "restored", cwd=tmp_path).returncode == 0
    found = typed(search.replace("example", "istanbul"), tmp_path)
    assert found.returncode == 0, found.stderr
    stored = contents(tmp_path / "restored")
    assert len(stored) > 20
    everything(DataFolder(tmp_path / "restored"))
    assert load_settings(tmp_path / "levada.toml") != Settings()
    again = levada("crawl", "--once", "--data", "restored", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert set(contents(tmp_path / "restored")) >= set(stored)


def _until(happens: Any) -> None:
    for _ in range(300):
        with suppress(OSError, ValueError, StoreError):
            if happens():
                return
        time.sleep(0.1)
    pytest.fail("it did not happen in half a minute")


def _is_dead(number: int) -> bool:
    return Path(f"/proc/{number}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"


def test_a_backup_goes_through_a_pipe_as_through_ssh(older: Path) -> None:
    sent = typed("levada backup - --data news | levada restore - --data far", older)
    assert sent.returncode == 0, sent.stderr
    assert everything(DataFolder(older / "far")) == everything(DataFolder(older / "news"))


def test_a_collection_moves_by_one_command(older: Path) -> None:
    done = levada("move", "there/news", "--data", "news", cwd=older)
    assert done.returncode == 0, done.stderr
    assert "the old copy is kept in" in done.stdout
    assert facts("why", OFTEN_CHANGED, "--data", "there/news", cwd=older)["visits"] == 4
    assert one_line(levada("why", OFTEN_CHANGED, "--data", "news", cwd=older), 3)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("restore", "none.backup"), 2, "there is no file none.backup"),
        (("restore", "levada.toml"), 1, "is no backup that Levada wrote"),
        (("restore", "news.backup", "--data", "news"), 2, "add --force"),
        (("backup", "news.backup", "--data", "news"), 2, "is there already"),
        (("backup", "x.backup", "--data", "none"), 3, "there is no collection in none"),
        (("backup", "-", "--data", "news", "--json"), 2, "--json reports on a file"),
        (("backup", "-", "--verify"), 2, "--verify reads a file"),
        (("upgrade", "--data", "none"), 3, "there is no collection in none"),
        (("move", "--data", "news"), 2, "name the new folder"),
        (("move", "there", "--to", "files", "--data", "news"), 2, "name the new folder"),
        (("move", "--to", "mysql://me:secret@there/x", "--data", "news"), 2, "--to must be postgresql://"),
        (("move", "--to", "postgresql://me:secret@127.0.0.1:1/x", "--data", "news"), 1, "is away"),
        (("restore", "news.backup", "--data", "x", "--server", "postgresql://me:secret@127.0.0.1:1/x"), 1, "is away"),
    ],
)
def test_wrong_input_is_one_sentence_and_changes_nothing(
    arguments: tuple[str, ...], code: int, says: str, older: Path
) -> None:
    assert levada("backup", "news.backup", "--data", "news", cwd=older).returncode == 0
    before = {path: path.read_bytes() for path in older.rglob("*") if path.is_file() and path.name != "lock"}
    said = one_line(levada(*arguments, cwd=older), code)
    assert says in said
    assert "secret" not in said
    after = {path: path.read_bytes() for path in older.rglob("*") if path.is_file() and path in before}
    assert after == before
    assert not (older / "x").exists()


def test_a_collection_that_is_crawled_is_neither_replaced_nor_moved(web: Web, tmp_path: Path) -> None:
    shutil.copy(web.config, tmp_path / "levada.toml")
    running = started("crawl", *web.start, "--data", "news", cwd=tmp_path)
    try:
        _until(lambda: len(contents(tmp_path / "news")) > 5)
        assert levada("backup", "news.backup", "--data", "news", cwd=tmp_path).returncode == 0
        for arguments in (("restore", "news.backup", "--data", "news", "--force"), ("move", "there", "--data", "news")):
            assert "in use by another crawl" in one_line(levada(*arguments, cwd=tmp_path), 1)
    finally:
        running.terminate()
        what_it_said(running)
