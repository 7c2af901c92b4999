"""Resharding: an impossible request changes nothing, and a started one can be reverted."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from levada.collection.shards import ReshardOptions, apply_shards
from levada.core.errors import LevadaError, StoreError, UsageError
from levada.core.folder import DataFolder
from levada.core.settings import Settings, StoreSettings
from levada.store.base import StoreLimits
from levada.store.opening import open_store, plan_of
from levada.store.reading import open_collection
from levada.store.sharded.plan import PlacementRecord
from levada.testing.store.visits import links
from tests.cli.typed_shard import refused
from tests.faults import FaultAt

pytest_plugins = ["tests.servers.fixtures"]

PAGES = 40
SITES = tuple(
    f"site-{number}.org" for number in range(PAGES)
)  # so many that some always move: their hash has a random key


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """Forty pages of as many sites in one file."""
    folder = DataFolder(tmp_path / "data")
    folder.make()
    with closing(open_store(folder, StoreSettings(), StoreLimits())) as store:
        for site in SITES:
            store.add(links(site, 1), [], 0.0)
    folder.save_settings(Settings())
    return folder


def record_of(folder: DataFolder) -> PlacementRecord:
    file = plan_of(folder)
    assert file is not None
    with closing(file):
        return file.read()


def known(folder: DataFolder) -> int:
    with open_collection(folder) as collection:
        return collection.store.stats(0.0).known


def cut_short(folder: DataFolder, reshard_options: ReshardOptions) -> None:
    with pytest.raises((StoreError, OSError)):
        apply_shards(folder, reshard_options, faults=FaultAt("move.taken-in", OSError("gone"), nth=1))
    assert record_of(folder).plan.following is not None


@pytest.mark.parametrize("server", ["foo", "postgresql://127.0.0.1:1/x"])
def test_a_server_that_cannot_be_leaves_the_collection_as_it_was(folder: DataFolder, server: str) -> None:
    with pytest.raises(LevadaError):
        apply_shards(folder, ReshardOptions(3, servers=(server,)))
    assert record_of(folder).plan.following is None
    assert len(record_of(folder).shards) == 1
    assert known(folder) == PAGES
    assert sum(apply_shards(folder, ReshardOptions(3)).pages) == PAGES


def test_a_wrong_wish_while_pages_move_opens_nothing(folder: DataFolder) -> None:
    cut_short(folder, ReshardOptions(2))
    for reshard_options in (ReshardOptions(4), ReshardOptions(servers=("foo",))):
        with pytest.raises(UsageError, match="--back"):
            apply_shards(folder, reshard_options)
    assert not (folder.path / "shard-3").exists()
    apply_shards(folder, ReshardOptions())
    assert known(folder) == PAGES


def test_the_same_wish_for_a_server_goes_on_where_it_was(folder: DataFolder, postgresql: str) -> None:
    reshard_options = ReshardOptions(2, servers=(postgresql,))
    cut_short(folder, reshard_options)
    done = apply_shards(folder, reshard_options)
    assert (done.shards, sum(done.pages)) == (2, PAGES)
    assert [bool(place.server) for place in record_of(folder).shards] == [False, True, True]


def test_pages_return_from_a_server_that_was_not_meant(folder: DataFolder, postgresql: str) -> None:
    cut_short(folder, ReshardOptions(2, servers=(postgresql,)))
    done = apply_shards(folder, ReshardOptions(back=True))
    assert (done.shards, done.pages) == (1, (PAGES,))
    assert record_of(folder).plan.following is None
    # Shards that are asked for afterwards are files again, as the one is.
    done = apply_shards(folder, ReshardOptions(3))
    assert (done.shards, sum(done.pages)) == (3, PAGES)
    record = record_of(folder)
    assert not any(record.shards[number].server for number in record.plan.current.ranges.owners)
    assert known(folder) == PAGES


def test_taking_back_is_a_wish_by_itself(folder: DataFolder) -> None:
    assert "leave the other options out" in str(refused("apply", "--data", str(folder.path), "--back", "--shards", "2"))
    assert "nothing to take back" in str(refused("apply", "--data", str(folder.path), "--back"))
