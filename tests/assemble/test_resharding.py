"""A wish for other shards: what cannot be had leaves all as it was, and what was begun can be taken back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from levada.adapters.faults import FaultAt
from levada.adapters.limits import StoreLimits
from levada.adapters.sharded.plan_file import PlacementRecord
from levada.assemble.folder import DataFolder
from levada.assemble.reading import open_collection
from levada.assemble.resharding import ShardWish, apply_shards
from levada.assemble.stores import open_store, plan_of
from levada.errors import LevadaError, StoreError, UsageError
from levada.flow.settings import Settings, StoreSettings
from tests.cli.typed_shard import refused
from tests.visits import links

pytest_plugins = ["tests.servers.fixtures"]

SITES = ("a.org", "b.org", "c.org", "d.net")


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """Twelve pages in one file."""
    folder = DataFolder(tmp_path / "data")
    folder.make()
    with closing(open_store(folder, StoreSettings(), StoreLimits())) as store:
        for site in SITES:
            store.add(links(site, 3), [], 0.0)
    folder.save_settings(Settings())
    return folder


def record_of(folder: DataFolder) -> PlacementRecord:
    file = plan_of(folder)
    assert file is not None
    with closing(file):
        return file.read()


def known(folder: DataFolder) -> int:
    with open_collection(folder) as collection:
        return collection.store.standing(0.0).known


def cut_short(folder: DataFolder, wish: ShardWish) -> None:
    with pytest.raises((StoreError, OSError)):
        apply_shards(folder, wish, faults=FaultAt("move.taken-in", OSError("gone"), nth=1))
    assert record_of(folder).plan.following is not None


@pytest.mark.parametrize("server", ["foo", "postgresql://127.0.0.1:1/x"])
def test_a_server_that_cannot_be_leaves_the_collection_as_it_was(folder: DataFolder, server: str) -> None:
    with pytest.raises(LevadaError):
        apply_shards(folder, ShardWish(3, servers=(server,)))
    assert record_of(folder).plan.following is None
    assert len(record_of(folder).shards) == 1
    assert known(folder) == 12
    assert sum(apply_shards(folder, ShardWish(3)).pages) == 12


def test_a_wrong_wish_while_pages_move_opens_nothing(folder: DataFolder) -> None:
    cut_short(folder, ShardWish(2))
    for wish in (ShardWish(4), ShardWish(servers=("foo",))):
        with pytest.raises(UsageError, match="--back"):
            apply_shards(folder, wish)
    assert not (folder.path / "shard-3").exists()
    apply_shards(folder, ShardWish())
    assert known(folder) == 12


def test_the_same_wish_for_a_server_goes_on_where_it_was(folder: DataFolder, postgresql: str) -> None:
    wish = ShardWish(2, servers=(postgresql,))
    cut_short(folder, wish)
    done = apply_shards(folder, wish)
    assert (done.shards, sum(done.pages)) == (2, 12)
    assert [bool(place.server) for place in record_of(folder).shards] == [False, True, True]


def test_pages_return_from_a_server_that_was_not_meant(folder: DataFolder, postgresql: str) -> None:
    cut_short(folder, ShardWish(2, servers=(postgresql,)))
    done = apply_shards(folder, ShardWish(back=True))
    assert (done.shards, done.pages) == (1, (12,))
    assert record_of(folder).plan.following is None
    # Shards that are asked for afterwards are files again, as the one is.
    done = apply_shards(folder, ShardWish(3))
    assert (done.shards, sum(done.pages)) == (3, 12)
    record = record_of(folder)
    assert not any(record.shards[number].server for number in record.plan.current.ranges.owners)
    assert known(folder) == 12


def test_taking_back_is_a_wish_by_itself(folder: DataFolder) -> None:
    assert "leave the other options out" in str(
        refused("apply", "--data", str(folder.path), "--back", "--shards", "2")
    )
    assert "nothing to take back" in str(refused("apply", "--data", str(folder.path), "--back"))
