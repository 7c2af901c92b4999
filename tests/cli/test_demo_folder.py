"""A demo replaces its own collection, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from levada.core.clock import SystemClock
from levada.core.errors import UsageError
from levada.core.folder import DataFolder
from levada.core.settings import ClockSettings, GuardSettings, ParseSettings, Settings, TrendsSettings
from levada.demo.folder import clear, mark, stop_hurrying
from levada.store.reading import open_collection
from tests.cli.collection import build, command

OF_A_DEMO = Settings(
    clock=ClockSettings(speed=500.0, origin=1e9, started=1e9),
    guard=GuardSettings(allow=("127.0.0.1:8123",)),
    trends=TrendsSettings(live=True),
    parse=ParseSettings(children=2),
)
OF_A_CRAWL_OF_THE_SERVED_WEB = replace(OF_A_DEMO, trends=TrendsSettings(), parse=ParseSettings())


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return DataFolder(build(tmp_path / "data"))


def bytes_in(folder: DataFolder) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}


def test_a_demo_refuses_the_collection_of_a_crawl(folder: DataFolder) -> None:
    before = bytes_in(folder)
    ended = command("demo")("--data", folder.path, "--seconds", 1, "--no-open")
    assert ended.code == 2
    assert ended.said == (
        f"{folder.path} holds a collection that no demo made: name another folder with --data, or delete it first\n"
    )
    assert bytes_in(folder) == before


@pytest.mark.parametrize("settings", [Settings(), OF_A_CRAWL_OF_THE_SERVED_WEB])
def test_what_a_crawl_collected_stays(folder: DataFolder, settings: Settings) -> None:
    folder.save_settings(settings)
    with pytest.raises(UsageError, match="that no demo made"):
        clear(folder)
    assert folder.exists()


def test_a_demo_replaces_what_a_demo_left(folder: DataFolder) -> None:
    folder.save_settings(OF_A_CRAWL_OF_THE_SERVED_WEB)
    mark(folder, OF_A_CRAWL_OF_THE_SERVED_WEB)
    stop_hurrying(folder, 2e9, 1e9)
    clear(folder)
    assert not folder.exists()
    clear(folder)  # and again, if the demo was ended before it had begun


def keep_as_an_older_version(folder: DataFolder, settings: Settings) -> None:
    (folder.path / "settings.json").write_bytes(msgspec.json.encode(settings))


def test_a_demo_replaces_what_an_older_demo_left_without_a_mark(folder: DataFolder) -> None:
    keep_as_an_older_version(folder, OF_A_DEMO)
    clear(folder)
    assert not folder.exists()


def test_what_a_crawl_added_to_the_folder_of_an_older_demo_stays(folder: DataFolder) -> None:
    keep_as_an_older_version(folder, OF_A_DEMO)
    folder.save_settings(folder.settings())  # as a crawl does that is given no settings
    assert folder.settings() == OF_A_DEMO
    with pytest.raises(UsageError, match="that no demo made"):
        clear(folder)
    assert folder.exists()


@pytest.mark.parametrize("settings", [Settings(), replace(OF_A_DEMO, guard=GuardSettings(allow=("127.0.0.1:9999",)))])
def test_what_was_crawled_into_a_demos_folder_later_stays(folder: DataFolder, settings: Settings) -> None:
    mark(folder, OF_A_DEMO)
    folder.save_settings(settings)
    with pytest.raises(UsageError, match="that no demo made"):
        clear(folder)
    assert folder.exists()


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir])
def test_an_empty_folder_and_none_at_all_are_fine(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "new")
    clear(DataFolder(tmp_path / "new"))


def test_other_files_stay(tmp_path: Path) -> None:
    tmp_path.joinpath("thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="something that is no collection"):
        clear(DataFolder(tmp_path))
    assert tmp_path.joinpath("thesis.txt").read_text() == "mine"


def test_time_no_longer_hurries_when_the_demo_has_ended(folder: DataFolder) -> None:
    folder.save_settings(OF_A_DEMO)
    wall = SystemClock().now()
    stop_hurrying(folder, 2e9, wall)
    with open_collection(folder) as collection:
        assert collection.settings.clock == ClockSettings(speed=1.0, origin=2e9, started=wall)
        assert 2e9 <= collection.clock.now() < 2e9 + 3600.0  # at 500 times the pace, seven seconds would exceed it
    assert replace(folder.settings(), clock=OF_A_DEMO.clock) == OF_A_DEMO
