"""A collection whose bodies lie elsewhere is moved, saved, checked, swept and forgotten like any other."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import levada
from levada.collection.doctor import folder_checks
from levada.collection.forgetting.remains import find_remains
from levada.collection.forgetting.run import forget, wanted
from levada.collection.storage.backup import back_up
from levada.collection.storage.bodies import ROWS, move_bodies, sweep
from levada.collection.storage.move import move_folder
from levada.collection.storage.restore import restore
from levada.core.errors import BodiesAway, SettingsError, StoreDamaged, StoreError, UsageError
from levada.core.folder import DataFolder
from levada.core.settings import BodiesSettings, Settings, StoreSettings
from levada.pages.compression import pack_content
from levada.store.base import StoreLimits
from levada.store.bodies.places import MARKER
from levada.store.opening import open_reading_store, open_store
from levada.testing.store.visits import first, links
from tests.collection.forgotten_folder import CANARY, FORGOTTEN, build
from tests.collection.storage.told import everything, told_collection
from tests.servers.versitygw import BUCKET
from tests.store.bodies.places import keys_named
from tests.store.scenario import STORY_LIMITS

pytest_plugins = ["tests.servers.fixtures"]
ROOT = Path(__file__).parents[3]


def objects_in(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file() and path.name != MARKER)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "bodies"


@pytest.fixture
def news(tmp_path: Path, place: Path) -> DataFolder:
    return told_collection(tmp_path / "news", bodies=f"file://{place}")


def opened(folder: DataFolder, bodies: str = "") -> None:
    open_store(folder, StoreSettings(bodies=bodies), STORY_LIMITS).close()


@pytest.mark.parametrize("shards", [1, 3])
def test_bodies_move_out_across_and_back_and_nothing_else_changes(tmp_path: Path, shards: int) -> None:
    news = told_collection(tmp_path / "news", shards=shards)
    before = everything(news)
    one, two = f"file://{tmp_path}/one", f"file://{tmp_path}/two"
    moved = move_bodies(news, one)
    assert (moved.place, moved.moved, moved.kept) == (one, len(objects_in(tmp_path / "one")), "")
    assert everything(news) == before
    assert move_bodies(news, one).moved == 0
    assert move_bodies(news, two, remove=True).moved == moved.moved
    assert objects_in(tmp_path / "one") == []
    assert everything(news) == before
    assert str(tmp_path / "two") in (news.path / "bodies.json").read_text()
    assert move_bodies(news, ROWS, remove=True).moved == moved.moved
    assert objects_in(tmp_path / "two") == []
    assert everything(news) == before


def test_a_collection_on_a_server_has_bodies_in_a_bucket(tmp_path: Path, postgresql: str, s3: str) -> None:
    news = told_collection(tmp_path / "news", postgresql)
    news.change_settings({"bodies.endpoint": s3}, "a test")
    before = everything(news)
    assert move_bodies(news, f"s3://{BUCKET}/{tmp_path.name}").moved > 0
    assert everything(news) == before
    assert [check for check in folder_checks(news.path) if check.verdict == "fail"] == []
    back_up(news, tmp_path / "news.backup")
    restore(tmp_path / "news.backup", tmp_path / "copy")
    assert everything(DataFolder(tmp_path / "copy"))["versions"] == before["versions"]
    assert move_bodies(news, ROWS, remove=True).moved > 0
    assert everything(news) == before


def test_a_move_that_is_killed_loses_nothing_and_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.collection.storage.kill_bodies", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert set(json.loads(run.stdout).values()) == {-signal.SIGKILL}


def test_a_backup_is_whole_unless_only_keys_are_wanted(news: DataFolder, place: Path, tmp_path: Path) -> None:
    before = everything(news)
    whole = back_up(news, tmp_path / "whole.backup")
    keys = back_up(news, tmp_path / "keys.backup", keys_only=True)
    assert (whole.bodies_in, keys.bodies_in) == ("", str(place))
    restore(tmp_path / "keys.backup", tmp_path / "keys")
    assert everything(DataFolder(tmp_path / "keys")) == before
    restore(tmp_path / "whole.backup", tmp_path / "whole")
    shutil.rmtree(place)
    assert everything(DataFolder(tmp_path / "whole")) == before
    with pytest.raises((StoreDamaged, BodiesAway)):
        everything(DataFolder(tmp_path / "keys"))


def test_a_backup_with_a_body_that_is_missing_is_none(news: DataFolder, place: Path, tmp_path: Path) -> None:
    objects_in(place)[0].unlink()
    with pytest.raises(StoreDamaged, match="is missing"):
        back_up(news, tmp_path / "news.backup")
    assert not (tmp_path / "news.backup").exists()


def test_the_doctor_finds_what_is_missing_or_cut(news: DataFolder, place: Path) -> None:
    (check,) = (check for check in folder_checks(news.path) if check.name == "bodies")
    assert check.verdict == "ok"
    with closing(open_reading_store(news)) as store:
        named = [place / key for key in sorted(keys_named(store))]
    named[0].unlink()
    named[1].write_bytes(b"cut")
    found = [check.found for check in folder_checks(news.path) if check.name == "bodies" and check.verdict == "fail"]
    assert sorted(each.rpartition(" is ")[2].partition(" ")[0] for each in found) == ["damaged", "missing"]
    shutil.rmtree(place)
    (check,) = (check for check in folder_checks(news.path) if check.name == "bodies")
    assert (check.verdict, "not mounted" in check.found + check.advice) == ("fail", True)


def test_a_sweep_deletes_only_what_is_old_and_unnamed(news: DataFolder, place: Path) -> None:
    before, named = everything(news), objects_in(place)
    orphans = [named[0].with_name(f"{'0' * 60}-{page:x}-1-7") for page in (1, 2)]
    for path in orphans:
        path.write_bytes(b"left by a process that was killed")
    draft = named[0].with_name("x.1-2.part")
    draft.write_bytes(b"half")
    other = place / "somebody" / "elses"
    other.parent.mkdir()
    other.write_bytes(b"not ours")
    for path in (*named, orphans[0], draft, other):
        os.utime(path, (0, 0))
    swept = sweep(news)
    assert (swept.deleted, swept.waiting, swept.objects) == (2 + _unnamed(named, news), 1, len(named) + 2)
    assert not orphans[0].exists()
    assert not draft.exists()
    assert orphans[1].exists()
    assert other.exists()
    assert everything(news) == before


def _unnamed(objects: list[Path], news: DataFolder) -> int:
    """How many objects versions named that were dropped since."""
    with closing(open_reading_store(news)) as store:
        return len(objects) - sum(len(store.versions(url)) for url in store.urls_like("http", 1_000))


def test_a_sweep_beside_a_commit_keeps_what_the_commit_will_name(tmp_path: Path, place: Path) -> None:
    news = DataFolder(tmp_path / "news")
    news.make()
    settings = StoreSettings(bodies=f"file://{place}")
    news.save_settings(Settings(store=settings, bodies=BodiesSettings(least=0)))

    class SweepAt:
        def reach(self, point: str) -> None:
            if point == "settle.begin":  # the object is there, and nothing names it yet
                swept.append(sweep(news))

    swept: list[object] = []
    with closing(open_store(news, settings, StoreLimits(), SweepAt())) as store:
        store.add(links("a", 1), [], 0.0)
        store.commit([first(lease, 0.0, "a text") for lease in store.lease(0.0, 1, 60.0)])
        assert len(swept) == 1
        document = store.document("http://a/0")
        assert document is not None
        assert document.text == "a text"


def test_what_is_forgotten_is_in_no_object(tmp_path: Path, place: Path) -> None:
    settings = Settings(store=StoreSettings(bodies=f"file://{place}"), bodies=BodiesSettings(least=0))
    DataFolder(tmp_path / "data").make()
    DataFolder(tmp_path / "data").save_settings(settings)
    data = build(tmp_path / "data", settings)
    objects = objects_in(place)
    assert find_remains(data, CANARY).found
    orphan = objects[0].with_name(f"{'0' * 60}-{1 << 40:x}-1-7")  # of a page that nobody knows any more
    orphan.write_bytes(pack_content(CANARY.encode(), b"", 1))
    report = forget(data, wanted((), FORGOTTEN))
    assert report.finished
    assert find_remains(data, CANARY).found == ()
    assert not orphan.exists()
    assert 0 < len(objects_in(place)) < len(objects)


def test_a_forget_whose_bucket_goes_away_is_finished_by_the_next_one(tmp_path: Path, place: Path) -> None:
    settings = Settings(store=StoreSettings(bodies=f"file://{place}"), bodies=BodiesSettings(least=0))
    DataFolder(tmp_path / "data").make()
    DataFolder(tmp_path / "data").save_settings(settings)
    data, objects = build(tmp_path / "data", settings), len(objects_in(place))

    class AwayAt:
        def reach(self, point: str) -> None:
            if point == "forgetting.deleted":
                place.rename(tmp_path / "away")

    with pytest.raises(StoreError, match="not mounted"):
        forget(data, wanted((), FORGOTTEN), faults=AwayAt())
    (tmp_path / "away").rename(place)
    assert len(objects_in(place)) == objects
    assert find_remains(data, CANARY).found
    assert forget(data, wanted(())).finished
    assert find_remains(data, CANARY).found == ()
    assert len(objects_in(place)) < objects


def test_a_folder_that_moves_keeps_its_place(news: DataFolder, tmp_path: Path) -> None:
    before = everything(news)
    move_folder(news, tmp_path / "elsewhere")
    assert everything(DataFolder(tmp_path / "elsewhere")) == before
    opened(DataFolder(tmp_path / "elsewhere"))


def test_an_object_that_no_version_names_is_found_and_told(news: DataFolder, place: Path) -> None:
    objects_in(place)[0].with_name(f"{'0' * 60}-1-99-7").write_bytes(pack_content(b"xylocarpus", b"", 1))
    (found,) = find_remains(news.path, "xylocarpus").found
    assert found.startswith(f"{place}: 1 object that no version names")


def test_two_collections_cannot_have_one_place(news: DataFolder, place: Path, tmp_path: Path) -> None:
    other = DataFolder(tmp_path / "other")
    other.make()
    with pytest.raises(StoreError, match="holds the bodies of another collection"):
        opened(other, f"file://{place}")
    assert not other.exists()


def test_another_place_in_the_settings_is_refused_with_what_to_do(news: DataFolder, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"bring them there with 'levada move --bodies file:///other'"):
        opened(news, "file:///other")
    opened(news)  # without the setting it goes on where they are


def test_a_place_that_was_emptied_is_not_written_to(news: DataFolder, place: Path) -> None:
    shutil.rmtree(place)
    place.mkdir()
    with pytest.raises(StoreError, match="it is empty, not mounted or another one"):
        opened(news)


def test_a_wrong_address_is_told(tmp_path: Path) -> None:
    for address in ("s3://", "s3://key@bucket/x", "http://bucket", "file://", "bucket"):
        with pytest.raises(SettingsError, match="store"):
            levada.Settings().replace({"store.bodies": address})
    with pytest.raises(UsageError, match="--bodies takes"):
        move_bodies(told_collection(tmp_path / "news"), "bucket")


def test_without_bodies_elsewhere_there_is_nothing_to_sweep(tmp_path: Path) -> None:
    news = told_collection(tmp_path / "news")
    with pytest.raises(UsageError, match="nothing to sweep"):
        sweep(news)
