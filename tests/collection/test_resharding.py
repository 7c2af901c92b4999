"""Resharding: an impossible request changes nothing, and a started one can be reverted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from msgspec.structs import replace

import levada
from levada.collection.shards import ReshardOptions, apply_shards, planned_move, spread_by_citus
from levada.core.errors import LevadaError, Refused, StoreError, StoreLocked, UsageError
from levada.core.folder import DataFolder
from levada.core.settings import Settings, StoreSettings
from levada.store.base import StoreLimits
from levada.store.moving_lock import nobody_moves_anywhere, only_mover_anywhere
from levada.store.opening import make_collection_name, open_store, plan_of
from levada.store.postgresql.shared_plan import SharedPlan
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


def test_a_move_takes_no_more_pages_than_it_must_and_says_before_how_many(folder: DataFolder, postgresql: str) -> None:
    apply_shards(folder, ReshardOptions(2))
    for reshard_options in (
        ReshardOptions(3),
        ReshardOptions(5),
        ReshardOptions(2),
        ReshardOptions(2, servers=(postgresql,)),
        ReshardOptions(3, servers=(postgresql,)),
        ReshardOptions(3, "url"),
    ):
        before = record_of(folder)
        planned = planned_move(folder, reshard_options)
        assert record_of(folder) == before
        done = apply_shards(folder, reshard_options)
        assert (done.moved, sum(done.pages)) == (planned.moves, planned.pages) == (planned.moves, PAGES)
        after = record_of(folder)
        kept = {before.shards[number] for number in before.plan.current.ranges.owners}
        now = {after.shards[number] for number in after.plan.current.ranges.owners}
        assert len(kept & now) == (0 if kept.isdisjoint(now) else min(len(kept), len(now)))
        assert len(after.shards) <= len(before.shards) + done.shards
    assert planned_move(folder, ReshardOptions(3, "url")).moves == 0


def test_a_shard_that_was_left_is_not_needed_any_more(folder: DataFolder, postgresql: str) -> None:
    apply_shards(folder, ReshardOptions(servers=(postgresql,)))
    apply_shards(folder, ReshardOptions(servers=(f"{postgresql}?application_name=other",)))
    record = record_of(folder)
    gone = [replace(each, server="postgresql://127.0.0.1:9/gone") for each in record.shards[1:2]]
    file = plan_of(folder)
    assert file is not None
    file.replace(replace(record, shards=(record.shards[0], *gone, *record.shards[2:])))
    file.close()
    assert sum(apply_shards(folder, ReshardOptions(2)).pages) == PAGES


def test_pages_of_a_crawl_that_died_move_once_their_leases_have_ended(folder: DataFolder, postgresql: str) -> None:
    """Also where other machines may lease pages, so that not all leases can be forgotten."""
    apply_shards(folder, ReshardOptions(2, servers=(postgresql,)))
    with closing(open_store(folder, StoreSettings(), StoreLimits())) as store:
        assert len(store.lease(1.0, 10, 60.0)) == 10  # ended half a century ago
    file = plan_of(folder)
    assert file is not None
    shared = SharedPlan(postgresql, make_collection_name(folder))
    record = replace(file.read(), home=postgresql)
    shared.publish(record)
    file.replace(record)
    for each in (file, shared):
        each.close()
    assert sum(apply_shards(folder, ReshardOptions(3)).pages) == PAGES


def test_a_mover_with_another_data_folder_is_noticed(folder: DataFolder, postgresql: str, tmp_path: Path) -> None:
    apply_shards(folder, ReshardOptions(2, servers=(postgresql,)))
    theirs = DataFolder(tmp_path / "theirs")
    shutil.copytree(folder.path, theirs.path)
    with only_mover_anywhere(theirs), pytest.raises(StoreLocked, match="by another machine"):
        apply_shards(folder, ReshardOptions(3))
    with only_mover_anywhere(theirs), pytest.raises(StoreLocked, match="by another machine"):
        levada.open(folder.path).export(tmp_path / "pages.jsonl")
    with nobody_moves_anywhere(theirs), pytest.raises(StoreLocked, match="moved or exported by another machine"):
        apply_shards(folder, ReshardOptions(3))
    with nobody_moves_anywhere(theirs), nobody_moves_anywhere(folder):
        pass
    assert sum(apply_shards(folder, ReshardOptions(3)).pages) == PAGES


def test_a_lost_lock_ends_the_move(folder: DataFolder, postgresql: str) -> None:
    apply_shards(folder, ReshardOptions(2, servers=(postgresql,)))
    with only_mover_anywhere(folder) as check:
        check()
        name = make_collection_name(folder)
        key = int.from_bytes(sha256(f"levada moving {name}".encode()).digest()[:8], "big", signed=True)
        with closing(psycopg.connect(postgresql, autocommit=True)) as admin:
            admin.execute(
                """SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory'
                AND ((classid::bigint << 32) | objid::bigint) = %s""",
                (key,),
            )
        with pytest.raises(StoreError, match="is away"):
            check()


@pytest.fixture
def pretended_citus(postgresql: str) -> Iterator[str]:
    """A database with functions of Citus's names that write down their calls: what Citus itself does is not tested."""
    name = f"citus_{uuid4().hex[:12]}"
    address = postgresql.rpartition("/")[0] + f"/{name}"
    with closing(psycopg.connect(postgresql, autocommit=True)) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        with closing(psycopg.connect(address, autocommit=True)) as own:
            own.execute(
                """CREATE TABLE pg_dist_node (noderole text, isactive bool, shouldhaveshards bool);
                CREATE TABLE pg_dist_schema (schemaid oid, colocationid int);
                CREATE FUNCTION citus_schema_distribute(schemaname regnamespace) RETURNS void LANGUAGE sql
                AS 'INSERT INTO public.pg_dist_schema VALUES (schemaname, 1)'"""
            )
        yield address
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_citus_is_given_each_schema_once(folder: DataFolder, pretended_citus: str) -> None:
    apply_shards(folder, ReshardOptions(2, servers=(pretended_citus,)))
    with pytest.raises(Refused, match="has no node that takes shards"):
        spread_by_citus(folder, dry_run=False)
    with closing(psycopg.connect(pretended_citus, autocommit=True)) as admin:
        admin.execute("INSERT INTO pg_dist_node VALUES ('primary', true, true), ('primary', true, true)")
        record = record_of(folder)
        schemas = [record.shards[number].schema for number in sorted(record.plan.holders)]
        statements = tuple(f"SELECT citus_schema_distribute('\"{schema}\"')" for schema in schemas)
        (planned,) = spread_by_citus(folder, dry_run=True)
        assert (planned.nodes, planned.sql) == (2, statements)
        assert admin.execute("SELECT count(*) FROM pg_dist_schema").fetchone() == (0,)
        assert spread_by_citus(folder, dry_run=False) == [planned]
        called = admin.execute("SELECT schemaid::regnamespace::text FROM pg_dist_schema ORDER BY 1").fetchall()
        assert [name for (name,) in called] == schemas
        apply_shards(folder, ReshardOptions(3))
        (later,) = spread_by_citus(folder, dry_run=False)
        assert (len(later.schemas), len(later.sql)) == (3, 1)
    assert known(folder) == PAGES


def test_where_there_is_no_citus_one_sentence_says_so(folder: DataFolder, postgresql: str) -> None:
    with pytest.raises(UsageError, match="no shard is on a server"):
        spread_by_citus(folder, dry_run=True)
    assert "run it by itself" in str(refused("apply", "--data", str(folder.path), "--citus", "--shards", "2"))
    apply_shards(folder, ReshardOptions(2, servers=(postgresql,)))
    with closing(psycopg.connect(postgresql)) as admin:
        there = admin.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'citus'").fetchone()
    if there is None:
        assert "has no Citus" in str(refused("apply", "--data", str(folder.path), "--citus"))
