"""A moved collection has everything it had, under the same numbers; cut short, it is where it was."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from msgspec.structs import replace

from levada.collection.shards import ReshardOptions, apply_shards
from levada.collection.storage.move import move_folder, move_stores
from levada.core.errors import LevadaError, NotFound, StoreError, StoreLocked, UsageError
from levada.core.folder import DataFolder, only_notifier
from levada.core.settings import StoreSettings
from levada.sharding.page_keys import page_placement
from levada.store.migrations.steps import postgresql_engine, sqlite_engine
from levada.store.opening import make_collection_name, open_store, places_for, plan_of, shard_places
from levada.store.postgresql import PostgresqlStore
from levada.store.postgresql.connection import Address
from levada.store.postgresql.conversion import SchemaSnapshot, load_schema
from levada.store.sharded.plan import PlanFile
from levada.store.sharded.resharding import begin_move
from levada.store.sqlite import SqliteStore
from levada.store.workplace import is_shared, share
from levada.testing.store.visits import first, links
from tests.collection.storage.told import everything, told_collection
from tests.faults import LOAD_POINTS, MOVE_FOLDER_POINTS, MOVE_POINTS, FaultAt, PointLog
from tests.invariants import check_invariants
from tests.store.scenario import STORY_LIMITS, tell
from tests.store.test_migrations import postgresql_tables, sqlite_tables

pytest_plugins = ["tests.servers.fixtures"]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def news(tmp_path: Path) -> DataFolder:
    return told_collection(tmp_path / "news")


def goes_on(folder: DataFolder) -> None:
    """It takes new pages and visits, with numbers that nothing has had before."""
    with closing(open_store(folder, StoreSettings(), STORY_LIMITS)) as store:
        before = store.newest_seq()
        store.add(links(f"new-{before}", 2), [], 0.0)
        assert all(store.commit([first(lease, 2e6, "words") for lease in store.lease(2e6, 30, 60.0)]))
        assert store.newest_seq() > before
        check_invariants(store)


@pytest.mark.parametrize("shards", [1, 2])
def test_a_collection_in_another_folder_has_all_it_had(tmp_path: Path, shards: int) -> None:
    news = told_collection(tmp_path / "news", shards=shards)
    name, before = make_collection_name(news), everything(news)
    moved = move_folder(news, tmp_path / "far" / "away")
    there = DataFolder(tmp_path / "far" / "away")
    assert everything(there) == before
    assert make_collection_name(there) == name
    assert not news.path.exists()
    assert moved.kept == str(tmp_path / "news.moved")
    assert everything(DataFolder(tmp_path / "news.moved")) == before
    goes_on(there)


def test_the_old_folder_is_deleted_if_that_is_asked_for(news: DataFolder, tmp_path: Path) -> None:
    assert move_folder(news, tmp_path / "there", remove=True).kept == ""
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_folder_moves_without_its_shards_on_servers(tmp_path: Path, postgresql: str) -> None:
    news = told_collection(tmp_path / "news", postgresql)
    before, places = everything(news), shard_places(news)
    move_folder(news, tmp_path / "there", remove=True)
    assert shard_places(DataFolder(tmp_path / "there")) == places
    assert everything(DataFolder(tmp_path / "there")) == before


@pytest.mark.parametrize("shards", [1, 3])
def test_a_collection_moves_to_a_server_and_back(tmp_path: Path, postgresql: str, shards: int) -> None:
    news = told_collection(tmp_path / "news", shards=shards)
    before = everything(news)
    assert move_stores(news, (postgresql,)).moved == shards
    assert everything(news) == before
    assert all(place.server for place in shard_places(news))
    assert list(news.path.glob("**/levada.db")) == []
    assert len(list(news.path.glob("**/levada.db.moved.backup"))) == shards
    goes_on(news)
    later = everything(news)
    assert move_stores(news, (postgresql,)).moved == 0
    assert move_stores(news, (), remove=True).moved == shards
    assert everything(news) == later
    assert not any(place.server for place in shard_places(news))
    goes_on(news)
    assert move_stores(news, (postgresql,)).moved == shards


def test_followers_go_on_where_they_were(news: DataFolder, postgresql: str) -> None:
    """Positions in the change log mean the same before and after: nothing is told twice, and nothing is missed."""
    with closing(open_store(news, StoreSettings(), STORY_LIMITS)) as store:
        (log,) = store.logs
        position = log.change_log(0, 3)[-1].seq
        rest = log.change_log(position, 1000)
    move_stores(news, (postgresql,))
    with closing(open_store(news, StoreSettings(), STORY_LIMITS)) as store:
        (log,) = store.logs
        assert log.change_log(position, 1000) == rest


def test_a_collection_moves_from_one_server_to_another(tmp_path: Path, postgresql_trio: list[str]) -> None:
    one, two, _ = postgresql_trio
    news = told_collection(tmp_path / "news", one, shards=2)
    before = everything(news)
    assert move_stores(news, (two,)).moved == 2
    assert {place.server for place in shard_places(news)} == {two}
    assert everything(news) == before


def test_machines_without_the_folder_lose_a_collection_that_went_into_files(tmp_path: Path, postgresql: str) -> None:
    news = told_collection(tmp_path / "news", postgresql)
    make_collection_name(news)
    share(news, news.settings())
    assert is_shared(news)
    before = everything(news)
    move_stores(news, ())
    assert not is_shared(news)
    assert everything(news) == before


def test_the_old_schema_is_kept_until_it_is_removed(tmp_path: Path, postgresql: str) -> None:
    news = told_collection(tmp_path / "news", postgresql)
    (place,) = shard_places(news)
    move_stores(news, ())
    with closing(PostgresqlStore(postgresql, schema=place.schema, read_only=True)) as store:
        check_invariants(store)
    with pytest.raises(StoreError, match="holds something already"):
        move_stores(news, (postgresql,))
    goes_on(news)


def test_a_server_that_is_used_is_not_left(tmp_path: Path, postgresql: str) -> None:
    news = told_collection(tmp_path / "news", postgresql)
    (place,) = shard_places(news)
    with (
        closing(PostgresqlStore(postgresql, schema=place.schema, read_only=True)),
        pytest.raises(StoreLocked, match="used by 1 other session"),
    ):
        move_stores(news, ())
    assert shard_places(news) == (place,)


def test_nobody_crawls_sends_or_moves_pages_meanwhile(news: DataFolder, tmp_path: Path) -> None:
    with DataFolder(news.path).locked(), pytest.raises(StoreLocked, match="another crawl"):
        move_folder(news, tmp_path / "there")
    with only_notifier(news), pytest.raises(StoreLocked, match="sends the notifications"):
        move_folder(news, tmp_path / "there")
    apply_shards(news, ReshardOptions(2))
    with closing(PlanFile(news.placement)) as file:  # as a move that was cut short leaves it
        begin_move(file, page_placement("url", 3, b"secret"), places_for(3))
    with pytest.raises(UsageError, match="pages are moving between shards"):
        move_stores(news, ())


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("news", UsageError, "holds something already"),
        ("news/below", UsageError, "lies in"),
        ("full", UsageError, "holds something already"),
        ("file", UsageError, "is not a folder"),
    ],
)
def test_a_wrong_target_changes_nothing(
    target: str, error: type[LevadaError], message: str, news: DataFolder, tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "file").touch()
    before = everything(news)
    with pytest.raises(error, match=message):
        move_folder(news, tmp_path / target)
    assert everything(news) == before
    with pytest.raises(NotFound):
        move_folder(DataFolder(tmp_path / "none"), tmp_path / "there")


def test_a_server_that_is_away_changes_nothing(news: DataFolder) -> None:
    before = everything(news)
    with pytest.raises(StoreError, match="is away"):
        move_stores(news, ("postgresql://127.0.0.1:1/x",))
    assert everything(news) == before
    assert plan_of(news) is None


def test_moves_pass_every_point(tmp_path: Path, postgresql: str) -> None:
    news = told_collection(tmp_path / "news")
    passed = PointLog()
    move_stores(news, (postgresql,), faults=passed)
    assert set(passed.points) == {*LOAD_POINTS, *MOVE_POINTS}
    passed = PointLog()
    move_stores(news, (), faults=passed)
    assert set(passed.points) == {"move.copied", *MOVE_POINTS}
    passed = PointLog()
    move_folder(news, tmp_path / "there", faults=passed)
    assert set(passed.points) == set(MOVE_FOLDER_POINTS)


@pytest.mark.parametrize("point", ["move.copied", "move.checked", "place.before-rename"])
def test_a_full_disk_leaves_the_folder_where_it_was(news: DataFolder, point: str, tmp_path: Path) -> None:
    before = everything(news)
    with pytest.raises(StoreError, match="no space left"):
        move_folder(news, tmp_path / "there", faults=FaultAt(point, OSError(errno.ENOSPC, "no space")))
    assert everything(news) == before
    assert [path.name for path in tmp_path.iterdir()] == ["news"]


def test_kill_9_at_every_point_leaves_one_whole_collection(tmp_path: Path, postgresql: str) -> None:
    command = [sys.executable, "-m", "tests.collection.storage.kill_move", str(tmp_path), postgresql]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    ends: dict[str, int] = json.loads(done.stdout)
    assert set(ends.values()) == {-signal.SIGKILL}
    assert len(ends) == len(LOAD_POINTS) + 2 * len(MOVE_POINTS) + 1 + len(MOVE_FOLDER_POINTS)


def test_every_table_and_column_is_carried_both_ways(tmp_path: Path, postgresql: str) -> None:
    """A table or column that only one database has would be left behind: then the copying fails here."""
    with closing(SqliteStore(tmp_path / "told.db", limits=STORY_LIMITS)) as store:
        tell(store)
    address = Address(postgresql, "carried")
    load_schema(tmp_path / "told.db", address, 0)
    with closing(SchemaSnapshot(address)) as snapshot:
        snapshot.copy(tmp_path / "back.db")
    assert sqlite_tables(tmp_path / "back.db") == sqlite_tables(tmp_path / "told.db")
    PostgresqlStore(postgresql, schema="made_new").close()
    assert postgresql_tables(postgresql, "carried") == postgresql_tables(postgresql, "made_new")
    assert sqlite_engine().steps[-1].new == 7
    assert postgresql_engine().steps[-1].new == 4


def test_text_that_a_server_refuses_is_carried(tmp_path: Path, postgresql: str) -> None:
    url = f"http://b/{'long/' * 200}"
    with closing(SqliteStore(tmp_path / "odd.db")) as store:
        store.add(links("a", 1), [], 0.0)
        (lease,) = store.lease(1.0, 1, 60.0)
        store.commit([first(lease, 1.0, "nul \0 and \ufdd0")])
        (far,) = links("b", 1)
        store.add([replace(far, url=url)], [], 0.0)
    address = Address(postgresql, "odd")
    load_schema(tmp_path / "odd.db", address, 0)
    with closing(PostgresqlStore(postgresql, schema="odd")) as store:
        (document,) = store.scan()
        assert document.text == "nul \0 and \ufdd0"
        assert store.page(url) is not None
    with psycopg.connect(postgresql) as connection:
        assert connection.execute("SELECT count(*) FROM odd.pages").fetchone() == (2,)
