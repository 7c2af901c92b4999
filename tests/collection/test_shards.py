"""A collection over shards, put together: what every command opens."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from levada.capture.query_log import SearchCapture
from levada.cli.demo.output import shards_line
from levada.collection.search import open_search
from levada.collection.shards import ReshardOptions, apply_shards, own_placement
from levada.core.errors import Refused, SettingsError, StoreLocked
from levada.core.folder import DataFolder
from levada.core.records import FoundUrl
from levada.core.search_records import Query, TermGrowth, TrendQuery
from levada.core.settings import Settings, StoreSettings
from levada.demo.story import QUESTIONS, shard_story
from levada.follow.counter import open_trends
from levada.search.sharded import ShardedIndex
from levada.store.base import Store, StoreLimits
from levada.store.opening import (
    collection_folder,
    open_shard_reader,
    open_store,
    shard_folders,
    shard_places,
)
from levada.store.reading import open_collection
from levada.testing.store.visits import changed, first, links

SITES = ("a.org", "b.org", "c.org:81", "d.net")
ALL_TIME = TrendQuery(-1e9, 0.0, 1e9)


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path / "data")


def filled(folder: DataFolder, shards: int, key: str = "site") -> None:
    """Every page has words of its own, some of which a change added."""
    folder.make()
    settings = StoreSettings(shards=shards, key=key)  # type: ignore[arg-type]
    with closing(open_store(folder, settings, StoreLimits())) as store:
        for site in SITES:
            store.add(links(site, 3), [], 0.0)
        _visit(store, 0.0, "old words")
        _visit(store, 100_000.0, "new things")
    folder.save_settings(Settings())


def _visit(store: Store, now: float, text: str) -> None:
    leases = store.lease(now, 100, 60.0)
    assert len(leases) == 3 * len(SITES)
    store.commit(
        [
            changed(lease, now, f"{text} {lease.page.site}") if lease.page.version else first(lease, now, text)
            for lease in leases
        ]
    )


def counts(folder: DataFolder) -> tuple[list[int], list[TermGrowth]]:
    with open_trends(folder) as (_, trends, _):
        found = [trends.frequency(term) for term in ("", "old", "new", "things", "org")]
        return found, trends.growth(ALL_TIME)


def test_one_shard_is_one_file_as_ever(folder: DataFolder) -> None:
    filled(folder, 1)
    assert folder.database.exists()
    assert not folder.placement.exists()
    assert (shard_folders(folder), list(shard_places(folder))) == ([folder], [])
    assert collection_folder(folder) is folder


def test_several_shards_are_found_counted_and_searched_as_one(tmp_path: Path) -> None:
    one, several = DataFolder(tmp_path / "one"), DataFolder(tmp_path / "several")
    filled(one, 1)
    filled(several, 3)
    assert not several.database.exists()
    assert [shard.path.name for shard in shard_folders(several)] == ["shard-0", "shard-1", "shard-2"]
    assert counts(several) == counts(one)
    with open_search(one) as (_, index), open_search(several) as (collection, sharded):
        assert isinstance(sharded, ShardedIndex)
        for text in ("new", "things site:a.org", '"new things"', "-old"):
            ours, theirs = sharded.search(Query(text, limit=50)), index.search(Query(text, limit=50))
            assert ours.total == theirs.total
            assert {hit.url for hit in ours.hits} == {hit.url for hit in theirs.hits}
            assert all(hit.snippet for hit in ours.hits)
        assert len({page.id for page in collection.store.sample(1)}) == 3 * len(SITES)
        page = collection.store.page("http://a.org/1")
        assert page is not None
        assert collection.store.url_of(page.id) == page.url
        assert collection.store.urls_like("http://a.org/", 2) == ["http://a.org/0", "http://a.org/1"]
    for shard in shard_folders(several):
        assert collection_folder(shard).path == several.path
        open_shard_reader(shard).close()


@pytest.mark.parametrize(("shards", "key"), [(4, "site"), (2, "url"), (1, "site")])
def test_what_was_counted_is_the_same_after_a_move(folder: DataFolder, shards: int, key: str) -> None:
    filled(folder, 3)
    before = counts(folder)
    apply_shards(folder, ReshardOptions(shards, key))
    frequencies, growth = counts(folder)
    assert frequencies == before[0]
    # A site whose pages were told of on two shards counts for each.
    assert [replace(each, sites=0) for each in growth] == [replace(each, sites=0) for each in before[1]]
    with open_search(folder) as (collection, index):
        found = index.search(Query("new", limit=100)).hits
        assert sorted(hit.url for hit in found) == sorted(page.url for page in collection.store.scan())


def test_a_change_after_a_move_is_news_and_only_that(folder: DataFolder) -> None:
    filled(folder, 2)
    counts(folder)
    apply_shards(folder, ReshardOptions(3, "url"))
    with closing(open_store(folder, StoreSettings(), StoreLimits())) as store:
        _visit(store, 200_000.0, "latest things")
    found, growth = counts(folder)
    told = {each.term: each.now for each in growth if each.language == "en"}
    assert (told["latest"], told["new"]) == (12, 12)
    assert found[0] == 12


def test_a_collection_that_has_other_shards_than_the_settings_say_is_an_error(folder: DataFolder) -> None:
    filled(folder, 3)
    with pytest.raises(SettingsError, match="has 3 shards, and the settings ask for 2"):
        open_store(folder, StoreSettings(shards=2), StoreLimits())
    apply_shards(folder, ReshardOptions(2))
    open_store(folder, StoreSettings(shards=2), StoreLimits()).close()


def test_settings_that_could_have_made_a_collection_open_it(folder: DataFolder) -> None:
    filled(folder, 3)
    open_store(folder, StoreSettings(shards=2, servers=("one", "two", "three")), StoreLimits()).close()


@pytest.mark.parametrize(("shards", "option"), [(1, ""), (3, " --shards 3")])
def test_a_collection_in_one_file_where_the_settings_name_servers_is_an_error(
    folder: DataFolder, shards: int, option: str
) -> None:
    filled(folder, 1)
    servers = ("postgresql://levada:secret@one/levada",)
    with pytest.raises(SettingsError) as caught:
        open_store(folder, StoreSettings(shards=shards, servers=servers), StoreLimits())
    assert str(caught.value) == (
        f"the collection in {folder.path} lies in a file, and the settings ask for servers: "
        f"move it with 'levada shard apply --server ADDRESS{option}', or leave store.servers out"
    )


def test_a_collection_in_one_file_is_split_only_while_nobody_crawls(folder: DataFolder) -> None:
    filled(folder, 1)
    with folder.locked(), pytest.raises(StoreLocked, match="stop it"):
        apply_shards(folder, ReshardOptions(2))
    with pytest.raises(SettingsError, match="has 1 shard,"):
        open_store(folder, StoreSettings(shards=2), StoreLimits())
    assert apply_shards(folder, ReshardOptions(2)).pages
    with folder.locked():
        done = apply_shards(folder, ReshardOptions(3))
    assert sum(done.pages) == 12


def test_links_that_an_earlier_process_left_are_delivered_on_opening(folder: DataFolder) -> None:
    filled(folder, 3)
    with closing(open_store(folder, StoreSettings(), StoreLimits())) as store:
        shards = store.shards
        shard = next(each for each in shards if each.lease(300_000.0, 1, 60.0))
        shard.forget_leases()
        (lease,) = shard.lease(300_000.0, 1, 60.0)
        found = tuple(FoundUrl(f"http://{site}/new", site) for site in SITES)
        shard.commit([replace(changed(lease, 300_000.0, "x"), elsewhere=found)])
        assert sum(store.page(each.url) is None for each in found) == len(SITES)
    with closing(open_store(folder, StoreSettings(), StoreLimits())) as store:
        pages = [store.page(each.url) for each in found]
        assert [page.found_on for page in pages if page] == [lease.page.id] * len(SITES)


def test_the_demo_shows_what_the_advised_key_saves(folder: DataFolder) -> None:
    filled(folder, 1)
    story = shard_story(folder, 1)
    assert story is not None
    assert story.questions == QUESTIONS
    assert story.before.shards_per_query > 2 > story.after.shards_per_query
    assert story.after.one_shard > story.before.one_shard
    assert ", advised " in shards_line(story)
    with open_collection(folder) as collection:
        assert collection.store.live_pages() == 12
    assert not folder.placement.exists()


def test_pages_move_to_where_what_was_asked_wants_them(folder: DataFolder) -> None:
    filled(folder, 4, "url")
    with open_collection(folder) as collection, pytest.raises(Refused, match="too little was asked"):
        own_placement(collection, folder.queries, None)
    with closing(SearchCapture(folder.queries)) as capture:
        for number in range(60):
            capture.search(Query(f"words site:{SITES[number % len(SITES)]}"))
    with open_collection(folder) as collection:
        placement = own_placement(collection, folder.queries, 3)
        before = collection.store.stats(0.0).known
    assert placement.key.fields[0] == "site"
    assert placement.key.parts[0].hashed
    assert placement.key.secret
    done = apply_shards(folder, ReshardOptions(placement=placement))
    assert (done.key, sum(done.pages)) == ("site", before)
    with open_search(folder) as (_, index):
        assert isinstance(index, ShardedIndex)
        assert all(len(index.touched(Query(f"words site:{site}"))) <= 2 for site in SITES)
        assert {len(index.touched(Query(f"words site:{site}"))) for site in SITES} >= {1}
