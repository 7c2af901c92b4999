"""Collections that machines share by a server: names of their own, and nobody's leases are taken away."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from levada.collection.crawling import open_crawl
from levada.collection.shards import ReshardOptions, apply_shards
from levada.collection.storage.bodies import move_bodies
from levada.core.errors import NotFound, StoreError, UsageError
from levada.core.folder import DataFolder, only_mover
from levada.core.settings import BodiesSettings, CrawlSettings, Settings, StoreSettings
from levada.store.base import StoreLimits
from levada.store.opening import make_collection_name, open_reading_store, open_store, place_if_new, shard_places
from levada.store.workplace import folder_workplace, is_shared, server_workplace, share
from levada.testing.store.visits import first, links

pytest_plugins = ["tests.servers.fixtures"]

LIMITS = StoreLimits()


def made(path: Path, *servers: str, shards: int = 1) -> tuple[DataFolder, Settings]:
    folder = DataFolder(path)
    folder.make()
    settings = Settings(store=StoreSettings(servers=servers, shards=shards), crawl=CrawlSettings(max_depth=7))
    place_if_new(folder, settings.store)
    share(folder, settings)
    make_collection_name(folder)
    folder.save_settings(settings)
    open_store(folder, settings.store, LIMITS).close()
    return folder, settings


def test_two_collections_in_one_database_have_nothing_in_common(tmp_path: Path, postgresql: str) -> None:
    folders = [made(tmp_path / name, postgresql)[0] for name in ("one", "two")]
    with closing(open_store(folders[0], StoreSettings(), LIMITS)) as one:
        one.add(links("a", 3), [], 0.0)
    with closing(open_store(folders[1], StoreSettings(), LIMITS)) as two:
        assert two.stats(0.0).known == 0
    assert len({place.schema for folder in folders for place in shard_places(folder)}) == 2
    with pytest.raises(UsageError, match="--collection"):
        server_workplace(postgresql)
    names = [make_collection_name(folder) for folder in folders]
    for name in names:
        with closing(server_workplace(postgresql, name)) as place:
            assert place.name == name


def test_a_machine_without_the_folder_works_on_the_same_pages(tmp_path: Path, postgresql: str) -> None:
    folder, settings = made(tmp_path / "data", postgresql, shards=2)
    assert is_shared(folder)
    place = server_workplace(postgresql, make_collection_name(folder))
    assert place.settings == settings == folder_workplace(folder).settings
    with (
        closing(place),
        closing(open_store(folder, settings.store, LIMITS)) as ours,
        closing(place.open_store(LIMITS)) as theirs,
    ):
        ours.add([*links("a", 2), *links("b", 2)], [], 0.0)
        leases = ours.lease(0.0, 4, 60.0)
        assert len(leases) == 4
        assert theirs.commit([first(lease, 1.0, "words") for lease in leases[:2]]) == [True, True]
        ours.release(leases[2:])
        assert apply_shards(folder, ReshardOptions(3)).shards == 3
        assert theirs.commit([first(lease, 1.0, "words") for lease in leases[:2]]) == [False, False]
        assert theirs.stats(2.0).known == ours.stats(2.0).known == 4
        assert {theirs.lease(100.0, 4, 60.0)[0].page.site} <= {"a", "b"}


def test_a_crawl_that_begins_leaves_other_machines_what_they_have_in_hand(tmp_path: Path, postgresql: str) -> None:
    async def leased(folder: DataFolder, settings: Settings) -> int:
        async with open_crawl(folder, settings, ()):
            with closing(open_reading_store(folder)) as store:
                return store.stats(time.time()).leased

    found = []
    for name, servers in (("shared", (postgresql,)), ("own", ())):
        folder, settings = made(tmp_path / name, *servers)
        with closing(folder_workplace(folder).open_store(LIMITS)) as store:
            store.add(links("a", 2), [], 0.0)
            store.lease(time.time(), 2, 600.0)
        found.append(asyncio.run(leased(folder, settings)))
    assert found == [2, 0]


def test_files_that_a_move_left_empty_are_no_hindrance(tmp_path: Path, postgresql: str) -> None:
    folder, settings = made(tmp_path / "data", shards=2)
    share(folder, settings)
    assert not is_shared(folder)
    with closing(open_store(folder, StoreSettings(), LIMITS)) as store:
        store.add(links("a", 3), [], 0.0)
    apply_shards(folder, ReshardOptions(servers=(postgresql,)))
    with only_mover(folder):
        share(folder, settings)
    assert not is_shared(folder), "while pages may move, the file stays the truth"
    share(folder, settings)
    assert is_shared(folder)
    place = server_workplace(postgresql, make_collection_name(folder))
    with closing(place), closing(place.open_store(LIMITS)) as far:
        assert far.stats(0.0).known == 3
        (lease, *_) = far.lease(0.0, 1, 60.0)
        assert far.commit([first(lease, 1.0, "words")]) == [True]


def test_who_is_not_there_is_said(tmp_path: Path, postgresql: str) -> None:
    with pytest.raises(NotFound, match="no collection"):
        server_workplace(postgresql, "nosuch")
    with pytest.raises(NotFound, match="levada control"):
        folder_workplace(DataFolder(tmp_path))
    with pytest.raises(StoreError) as error:
        server_workplace("postgresql://me:sEcret@127.0.0.1:9/x")
    assert "sEcret" not in str(error.value)


def test_a_worker_without_the_folder_writes_bodies_where_the_collection_has_them(
    tmp_path: Path, postgresql: str
) -> None:
    folder, settings = made(tmp_path / "news", postgresql)
    move_bodies(folder, f"file://{tmp_path}/bodies")
    share(folder, msgspec.structs.replace(settings, bodies=BodiesSettings(least=0)))
    place = server_workplace(postgresql, make_collection_name(folder))
    with closing(place), closing(place.open_store(LIMITS)) as store:
        store.add(links("a", 1), [], 0.0)
        assert store.commit([first(lease, 0.0, "a text") for lease in store.lease(0.0, 1, 60.0)]) == [True]
    assert [path.parent.parent.parent.name for path in (tmp_path / "bodies").glob("??/??/*")] == ["bodies"]
    with closing(open_reading_store(folder)) as reader:
        document = reader.document("http://a/0")
        assert document is not None
        assert document.text == "a text"
