"""Backups hold all of a collection, beside a crawl too; a damaged one, or none, leaves everything as it is."""

from __future__ import annotations

import errno
import io
import json
import signal
import sqlite3
import stat
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

import levada
from levada.collection.storage.backup import BackupReport, back_up, verify_backup
from levada.collection.storage.restore import restore
from levada.core.errors import (
    LevadaError,
    NotFound,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreTooNew,
    UsageError,
)
from levada.core.folder import DataFolder
from levada.core.settings import StoreSettings
from levada.store.archive import ArchiveWriter, Header
from levada.store.opening import open_reading_store, open_store, shard_places
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import first, links
from tests.collection.storage.told import everything, told_collection
from tests.faults import BACKUP_POINTS, RESTORE_POINTS, FaultAt, PointLog
from tests.invariants import check_invariants
from tests.small_disk import small_disk
from tests.store.older_stores import older_folder
from tests.store.scenario import STORY_LIMITS

pytest_plugins = ["tests.servers.fixtures"]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def news(tmp_path: Path) -> DataFolder:
    return told_collection(tmp_path / "news")


@pytest.mark.parametrize("shards", [1, 3])
def test_a_restored_collection_holds_all_that_the_first_one_did(tmp_path: Path, shards: int) -> None:
    news = told_collection(tmp_path / "news", shards=shards)
    saved = back_up(news, tmp_path / "news.backup")
    restored = restore(tmp_path / "news.backup", tmp_path / "copy")
    assert saved.verified
    assert (saved.pages, saved.versions, len(saved.shards)) == (restored.pages, restored.versions, restored.shards)
    assert saved.pages > 0
    assert everything(DataFolder(tmp_path / "copy")) == everything(news)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "news", "news.backup"]


def test_a_restored_collection_goes_on(news: DataFolder, tmp_path: Path) -> None:
    back_up(news, tmp_path / "news.backup")
    restore(tmp_path / "news.backup", tmp_path / "copy")
    with closing(open_store(DataFolder(tmp_path / "copy"), StoreSettings(), STORY_LIMITS)) as store:
        before = store.newest_seq()
        assert store.add(links("new", 2), [], 0.0) == 2
        assert store.commit([first(lease, 1e6, "words") for lease in store.lease(1e6, 20, 60.0)])
        assert store.newest_seq() > before
        check_invariants(store)


def test_servers_are_backed_up_and_restored_elsewhere(tmp_path: Path, postgresql: str) -> None:
    news = told_collection(tmp_path / "news", postgresql, shards=2)
    before = everything(news)
    saved = back_up(news, tmp_path / "news.backup")
    assert [shard.file for shard in saved.shards] == ["shard-0/levada.db", "shard-1/levada.db"]
    restore(tmp_path / "news.backup", tmp_path / "files")
    assert everything(DataFolder(tmp_path / "files")) == before
    assert not any(place.server for place in shard_places(DataFolder(tmp_path / "files")))
    for name in ("server", "server again"):
        done = restore(tmp_path / "news.backup", tmp_path / name, servers=(postgresql,))
        assert done.servers == 1
        assert everything(DataFolder(tmp_path / name)) == before
    schemas = {place.schema for name in ("news", "server", "server again") for place in _places(tmp_path / name)}
    assert len(schemas) == 6
    assert list((tmp_path / "server").glob("**/levada.db*")) == []


def _places(path: Path) -> Any:
    return shard_places(DataFolder(path))


def test_one_file_is_restored_to_a_server(news: DataFolder, tmp_path: Path, postgresql: str) -> None:
    before = everything(news)
    back_up(news, tmp_path / "news.backup")
    restore(tmp_path / "news.backup", tmp_path / "copy", servers=(postgresql,))
    assert everything(DataFolder(tmp_path / "copy")) == before


def test_a_folder_of_an_older_format_is_saved_as_it_is(tmp_path: Path) -> None:
    older = DataFolder(older_folder(tmp_path))
    assert back_up(older, tmp_path / "older.backup").shards[0].format == 6
    assert restore(tmp_path / "older.backup", tmp_path / "copy").format == 6
    assert everything(DataFolder(tmp_path / "copy")) == everything(older)


def test_a_backup_beside_writers_is_one_moment_of_all_shards(tmp_path: Path) -> None:
    """Each visit finds a page for another shard. In no backup is a visit without its page: the page is known, or it
    waits in an outbox, from which the first opening delivers it."""
    news = told_collection(tmp_path / "news", shards=3)
    ended = threading.Event()
    rounds = 0
    with closing(open_store(news, StoreSettings(), STORY_LIMITS)) as store:

        def write() -> None:
            nonlocal rounds
            while not ended.is_set():
                rounds += 1
                store.add(links(f"from-{rounds}", 1), [], 0.0)
                for lease in store.lease(1e6, 20, 60.0):
                    found = links(f"to-{rounds}-{lease.page.id}", 1)
                    store.commit([first(lease, 1e6 + rounds, f"leads to {found[0].url}", tuple(found))])

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(4):
                saved = back_up(news, tmp_path / f"{number}.backup")
                assert saved.verified
        finally:
            ended.set()
            writer.join()
    for number in range(4):
        restore(tmp_path / f"{number}.backup", tmp_path / str(number))
        with closing(open_store(DataFolder(tmp_path / str(number)), StoreSettings(), STORY_LIMITS)) as store:
            check_invariants(store)
            for document in store.scan():
                if document.text.startswith("leads to "):
                    assert store.page(document.text.removeprefix("leads to ")) is not None


def test_positions_are_never_ahead_of_the_change_log(news: DataFolder, tmp_path: Path) -> None:
    """Notifications are taken before the store: what a restored collection finds next is told."""
    names = [member.name for member in back_up(news, tmp_path / "news.backup").members]
    assert names.index("hooks.db") < names.index("levada.db")


def test_the_file_is_for_its_owner_alone(news: DataFolder, tmp_path: Path) -> None:
    back_up(news, tmp_path / "news.backup")
    assert stat.S_IMODE((tmp_path / "news.backup").stat().st_mode) == 0o600


def test_what_is_built_again_or_belongs_to_one_folder_is_left_out(news: DataFolder, tmp_path: Path) -> None:
    for name in ("collection", "live.json", "levada.db.format-6.backup", "notify.lock", "demo.json"):
        (news.path / name).write_text("0123456789abcdef", encoding="ascii")
    (news.path / "index").mkdir()
    names = {member.name for member in back_up(news, tmp_path / "news.backup").members}
    assert names == {"hooks.db", "levada.db", "queries.jsonl", "settings.json"}


def test_a_backup_goes_through_a_pipe(news: DataFolder, tmp_path: Path) -> None:
    pipe = io.BytesIO()
    assert not back_up(news, pipe).verified
    restore(io.BytesIO(pipe.getvalue()), tmp_path / "copy")
    assert everything(DataFolder(tmp_path / "copy")) == everything(news)


def test_tar_unpacks_it_too(news: DataFolder, tmp_path: Path) -> None:
    back_up(news, tmp_path / "news.backup")
    with (
        (tmp_path / "news.backup").open("rb") as file,
        zstandard.ZstdDecompressor().stream_reader(file) as unpacked,
        tarfile.open(fileobj=unpacked, mode="r|") as archive,
    ):
        archive.extractall(tmp_path / "copy", filter="data")
    assert everything(DataFolder(tmp_path / "copy")) == everything(news)


def test_every_cut_and_every_flipped_bit_is_noticed(news: DataFolder, tmp_path: Path) -> None:
    back_up(news, tmp_path / "news.backup")
    whole = (tmp_path / "news.backup").read_bytes()
    step = max(1, len(whole) // 60)
    damaged = [whole[:length] for length in range(0, len(whole) - 1, step)]
    places = range(0, len(whole), step)
    damaged += [whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :] for place in places]
    bad = tmp_path / "bad.backup"
    for content in damaged:
        bad.write_bytes(content)
        try:
            restore(bad, tmp_path / "copy")
        except StoreDamaged:
            assert not (tmp_path / "copy").exists()
        else:  # a bit that means nothing, such as of a time: everything is there
            assert everything(DataFolder(tmp_path / "copy")) == everything(news)
            (tmp_path / "copy").rename(tmp_path / f"sound-{len(list(tmp_path.iterdir()))}")
    assert not list(tmp_path.glob("*.restoring"))


def test_the_damaged_member_is_named(news: DataFolder, tmp_path: Path) -> None:
    back_up(news, tmp_path / "news.backup")
    plain = zstandard.ZstdDecompressor().stream_reader(io.BytesIO((tmp_path / "news.backup").read_bytes())).read()
    at = plain.index(b'"ferry"')
    (tmp_path / "bad.backup").write_bytes(zstandard.compress(plain[:at] + b'"merry"' + plain[at + 7 :]))
    for attempt in (lambda path: restore(path, tmp_path / "copy"), verify_backup):
        with pytest.raises(StoreDamaged, match=r"queries\.jsonl is not as it was written"):
            attempt(tmp_path / "bad.backup")


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "shard-0/../../evil", "maps/data.mdb", ".hidden", "a b"])
def test_a_member_with_a_foreign_name_is_refused(name: str, tmp_path: Path) -> None:
    with (tmp_path / "evil.backup").open("wb") as out:
        writer = ArchiveWriter(out, Header(1, "0.4", 0.0, 7, 0))
        writer.add(name, io.BytesIO(b"evil"), 4, 0o644)
        writer.finish(())
    with pytest.raises(StoreDamaged, match="which no backup holds"):
        restore(tmp_path / "evil.backup", tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["evil.backup"]


@pytest.mark.parametrize("header", [Header(2, "9.0", 0.0, 7, 0), Header(1, "9.0", 0.0, 99, 0)])
def test_a_backup_of_a_newer_levada_is_not_touched(header: Header, tmp_path: Path) -> None:
    with (tmp_path / "newer.backup").open("wb") as out:
        ArchiveWriter(out, header).finish(())
    with pytest.raises(StoreTooNew, match=r"written by a newer Levada \(9\.0.*update Levada"):
        restore(tmp_path / "newer.backup", tmp_path / "copy")
    with pytest.raises(StoreTooNew):
        verify_backup(tmp_path / "newer.backup")
    assert not (tmp_path / "copy").exists()


def test_a_folder_that_holds_something_is_moved_aside_only_with_force(news: DataFolder, tmp_path: Path) -> None:
    back_up(news, tmp_path / "news.backup")
    before = everything(news)
    with pytest.raises(UsageError, match="add --force"):
        restore(tmp_path / "news.backup", news.path)
    for aside in ("news.1", "news.2"):
        assert restore(tmp_path / "news.backup", news.path, force=True).aside == str(tmp_path / aside)
        assert everything(DataFolder(tmp_path / aside)) == everything(news) == before


def test_a_collection_that_is_crawled_is_not_replaced(news: DataFolder, tmp_path: Path) -> None:
    back_up(news, tmp_path / "news.backup")
    with DataFolder(news.path).locked(), pytest.raises(StoreLocked, match="in use by another crawl"):
        restore(tmp_path / "news.backup", news.path, force=True)


def test_an_empty_folder_is_taken(news: DataFolder, tmp_path: Path) -> None:
    back_up(news, tmp_path / "news.backup")
    (tmp_path / "copy").mkdir()
    assert restore(tmp_path / "news.backup", tmp_path / "copy").aside == ""


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (lambda at: back_up(DataFolder(at / "none"), at / "x"), NotFound, "there is no collection"),
        (lambda at: back_up(DataFolder(at / "news"), at / "no" / "x"), UsageError, "there is no folder"),
        (lambda at: back_up(DataFolder(at / "news"), at), UsageError, "is a folder"),
        (lambda at: back_up(DataFolder(at / "news"), at / "news" / "x"), UsageError, "a file elsewhere"),
        (lambda at: back_up(DataFolder(at / "news"), at / "news.backup"), UsageError, "add --force"),
        (lambda at: restore(at / "none", at / "copy"), UsageError, "there is no file"),
        (lambda at: restore(at, at / "copy"), UsageError, "is not a file"),
        (lambda at: restore(at / "news.backup", at / "news.backup"), UsageError, "is not a folder"),
        (lambda at: restore(at / "news" / "settings.json", at / "copy"), StoreDamaged, "is no backup"),
        (lambda at: verify_backup(at / "none"), UsageError, "there is no file"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(
    attempt: Callable[[Path], object], error: type[LevadaError], message: str, news: DataFolder, tmp_path: Path
) -> None:
    back_up(news, tmp_path / "news.backup")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(error, match=message):
        attempt(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.name != "lock") == before


def test_a_backup_passes_every_point(news: DataFolder, tmp_path: Path) -> None:
    passed = PointLog()
    back_up(news, tmp_path / "news.backup", faults=passed)
    assert set(passed.points) == set(BACKUP_POINTS)
    passed = PointLog()
    restore(tmp_path / "news.backup", news.path, force=True, faults=passed)
    assert set(passed.points) == set(RESTORE_POINTS)


@pytest.mark.parametrize("point", BACKUP_POINTS[:-1])
def test_a_full_disk_leaves_the_collection_and_no_half_backup(news: DataFolder, point: str, tmp_path: Path) -> None:
    before = everything(news)
    with pytest.raises(StoreFull, match="no space left"):
        back_up(news, tmp_path / "news.backup", faults=FaultAt(point, OSError(errno.ENOSPC, "no space")))
    assert [path.name for path in tmp_path.iterdir()] == ["news"]
    assert everything(news) == before


@pytest.mark.parametrize("point", RESTORE_POINTS[:-1])
def test_a_full_disk_during_a_restore_leaves_what_was_there(news: DataFolder, point: str, tmp_path: Path) -> None:
    back_up(news, tmp_path / "news.backup")
    before = everything(news)
    with pytest.raises(StoreFull, match="no space left"):
        restore(
            tmp_path / "news.backup",
            news.path,
            force=True,
            faults=FaultAt(point, OSError(errno.ENOSPC, "no space")),
        )
    kept = tmp_path / ("news.1" if point == "place.aside" else "news")
    assert everything(DataFolder(kept)) == before
    assert not list(tmp_path.glob("*.restoring"))


def test_a_small_disk_says_that_it_is_full(news: DataFolder, tmp_path: Path) -> None:
    back_up(news, tmp_path / "news.backup")
    with small_disk(tmp_path / "small", "128k") as small:
        for attempt in (
            lambda: back_up(news, small / "news.backup"),
            lambda: restore(tmp_path / "news.backup", small / "news"),
        ):
            with pytest.raises(StoreFull, match="make room"):
                attempt()
            assert list(small.iterdir()) == []


def test_kill_9_at_every_point_leaves_all_or_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.collection.storage.kill_backup", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    ends: dict[str, int] = json.loads(done.stdout)
    assert set(ends) == {*BACKUP_POINTS, *RESTORE_POINTS}
    assert set(ends.values()) == {-signal.SIGKILL}
    for point in BACKUP_POINTS:
        there = sorted(path.name for path in (tmp_path / point).iterdir())
        assert there == ["again", "copy", "news", "news.backup"], point
        assert everything(DataFolder(tmp_path / point / "copy")) == everything(DataFolder(tmp_path / point / "news"))
    for point in RESTORE_POINTS:
        folders = [DataFolder(path) for path in (tmp_path / point).iterdir() if path.is_dir()]
        contents = [everything(folder) for folder in folders]
        assert all(each == contents[0] for each in contents), point
        assert not list((tmp_path / point).glob("*.restoring"))


def test_a_backup_is_a_call_of_the_library(tmp_path: Path) -> None:
    told_collection(tmp_path / "news")
    with levada.open(tmp_path / "news") as news:
        report = news.backup(tmp_path / "news.backup")
        known = news.stats().known
    assert isinstance(report, BackupReport)
    assert levada.restore(tmp_path / "news.backup", tmp_path / "copy").pages == report.pages == known
    assert msgspec.json.decode(msgspec.json.encode(report))["verified"] is True


def test_the_store_that_is_saved_keeps_its_format_and_its_log(news: DataFolder, tmp_path: Path) -> None:
    """A killed crawl leaves a log: what is in it is saved too."""
    with closing(SqliteStore(news.database)) as store:
        store.add(links("late", 1), [], 0.0)
        for path in ("levada.db", "levada.db-wal", "levada.db-shm"):
            (tmp_path / path).write_bytes((news.path / path).read_bytes())
    for path in ("levada.db", "levada.db-wal"):
        (news.path / path).write_bytes((tmp_path / path).read_bytes())
    back_up(news, tmp_path / "news.backup")
    restore(tmp_path / "news.backup", tmp_path / "copy")
    with closing(open_reading_store(DataFolder(tmp_path / "copy"))) as copy:
        assert copy.page(links("late", 1)[0].url) is not None
    with closing(sqlite3.connect(tmp_path / "copy" / "levada.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
