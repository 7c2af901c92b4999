"""What was forgotten does not come back with a backup, on a server, or on new shards: tombstones go with the pages."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

import levada
from levada.collection.forgetting.run import forget, wanted
from levada.collection.shards import ReshardOptions, apply_shards
from levada.collection.storage.move import move_stores
from levada.core.folder import DataFolder
from levada.core.records import DiscoveredBy, FoundUrl
from levada.store.base import Forgetting, Store, StoreLimits
from levada.store.opening import open_store
from tests.collection.forgotten_folder import CANARY, FORGOTTEN, KEPT, build
from tests.faults import FaultAt

pytest_plugins = ["tests.servers.fixtures"]


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = build(tmp_path_factory.mktemp("forgotten") / "data")
    forget(data, wanted((), FORGOTTEN))
    return data


@pytest.fixture
def data(forgetful: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(forgetful, tmp_path / "data"))


def opened(data: Path) -> Store:
    return open_store(DataFolder(data), DataFolder(data).settings().store, StoreLimits())


def stays_away(data: Path) -> None:
    """No link brings the site back to any shard, and the key of the tombstones is one for all."""
    with closing(opened(data)) as store:
        marks = [cast("Forgetting", shard).tombstones() for shard in store.shards]
        assert marks[0][0]
        assert all(each == marks[0] for each in marks)
        urls = [f"http://{FORGOTTEN}/{name}" for name in (CANARY, "", *map(str, range(20)))]
        refused = store.stats(0.0).refused.get("forgotten", 0)
        links = [FoundUrl(url, FORGOTTEN, how=DiscoveredBy.SITEMAP) for url in urls]
        assert store.add([*links, FoundUrl(f"http://{KEPT}/{store.stats(0.0).known}", KEPT)], [], 9e9) == 1
        assert store.site(FORGOTTEN) is None
        assert all(store.page(url) is None for url in urls)
        assert store.stats(0.0).refused["forgotten"] == refused + len(urls)


def test_after_a_restore(data: Path, tmp_path: Path) -> None:
    with levada.open(data) as news:
        news.backup(tmp_path / "news.backup")
    levada.restore(tmp_path / "news.backup", tmp_path / "copy")
    stays_away(tmp_path / "copy")


def test_on_a_server_and_back_in_a_folder(data: Path, tmp_path: Path, postgresql: str) -> None:
    with levada.open(data) as news:
        news.backup(tmp_path / "news.backup")
    levada.restore(tmp_path / "news.backup", tmp_path / "served", servers=[postgresql])
    stays_away(tmp_path / "served")
    move_stores(DataFolder(data), [postgresql])
    stays_away(data)
    move_stores(DataFolder(data), [])
    stays_away(data)


def test_on_new_shards(data: Path) -> None:
    apply_shards(DataFolder(data), ReshardOptions(shards=3, key="url"))
    stays_away(data)
    apply_shards(DataFolder(data), ReshardOptions(shards=1))
    stays_away(data)


def test_on_new_shards_of_a_server(data: Path, postgresql: str) -> None:
    apply_shards(DataFolder(data), ReshardOptions(servers=(postgresql, postgresql), key="url"))
    stays_away(data)


def test_on_a_new_shard_before_the_first_page_has_moved(data: Path) -> None:
    """A crawl that runs adds pages to the new shards as soon as the plan names them."""
    with pytest.raises(OSError, match="gone"):
        apply_shards(
            DataFolder(data), ReshardOptions(shards=3, key="url"), faults=FaultAt("move.fenced", OSError("gone"))
        )
    stays_away(data)
