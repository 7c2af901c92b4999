"""Bodies outside of the database: never named and missing, whatever dies, is away or is damaged."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import BodiesAway, StoreDamaged, StoreError, StoreFull
from levada.store.base import Capability, StoreLimits
from levada.store.bodies import Bodies, reference_to, unpacked_reference
from levada.store.bodies.places import FolderPlace
from levada.store.bodies.references import Keyed, keyed
from levada.store.sqlite import SqliteStore
from levada.testing.store.forgetting import forget
from levada.testing.store.visits import changed, first, links, visited
from tests.faults import PointLog
from tests.sharded import sharded_sqlite
from tests.small_disk import small_disk
from tests.store.bodies.places import WatchedPlace, all_texts, folder_bodies, keys_in, keys_named

ROOT = Path(__file__).parents[3]
_PAGE_IDS = st.integers(0, 2**63 - 1)


@pytest.fixture
def bodies(tmp_path: Path) -> Bodies:
    return folder_bodies(tmp_path / "bodies")


@pytest.fixture
def store(tmp_path: Path, bodies: Bodies) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "pages.db", limits=StoreLimits(keep_versions=2), bodies=bodies)) as opened:
        yield opened


def place_of(bodies: Bodies) -> WatchedPlace:
    return cast(WatchedPlace, bodies.place)


def only_object(tmp_path: Path) -> Path:
    (path,) = (path for path in (tmp_path / "bodies").rglob("*-*-*") if path.is_file() and path.suffix != ".json")
    return path


@given(st.binary(max_size=200), _PAGE_IDS, st.integers(0, 2**32 - 1), _PAGE_IDS)
def test_a_reference_says_what_its_key_says(frame: bytes, page_id: int, version: int, token: int) -> None:
    reference = reference_to(frame, page_id, version, token)
    assert unpacked_reference(reference.pack()) == reference
    assert keyed(reference.key) == Keyed(reference.digest, page_id, version)
    assert reference.matches(frame)
    assert not reference.matches(frame + b"x")


@given(st.binary(max_size=100))
def test_no_frame_is_taken_for_a_reference(content: bytes) -> None:
    from levada.pages.compression import pack_content

    assert unpacked_reference(pack_content(content, content, 1)) is None


def test_small_frames_stay_in_their_rows(tmp_path: Path) -> None:
    bodies = folder_bodies(tmp_path / "bodies")
    only_large = Bodies(bodies.place, least=10_000)
    with closing(SqliteStore(tmp_path / "pages.db", bodies=only_large)) as store:
        visited(store, "http://a/", "a", "few words", 0.0)
        assert keys_in(bodies) == set()
        assert store.document("http://a/").text == "few words"  # type: ignore[union-attr]


def test_what_a_version_no_longer_names_goes_a_day_later(store: SqliteStore, bodies: Bodies) -> None:
    store.add(links("a", 1), [], 0.0)
    for number, result in enumerate((first, changed, changed, changed)):
        (lease,) = store.lease(number * 1000.0, 1, 60.0)
        store.commit([result(lease, number * 1000.0, f"text {number}")])
    assert len(keys_named(store)) == 2
    assert len(keys_in(bodies)) == 4
    assert store.delete_unused_bodies(1_000.0) == 0
    assert store.delete_unused_bodies(3_000.0) == 2
    assert keys_in(bodies) == keys_named(store)


def test_the_same_text_of_two_pages_is_two_objects_and_one_stays(store: SqliteStore, bodies: Bodies) -> None:
    store.add(links("a", 2), [], 0.0)
    store.commit([first(lease, 0.0, "the same") for lease in store.lease(0.0, 2, 60.0)])
    assert len(keys_in(bodies)) == 2
    forget(store, "http://a/0")
    assert store.delete_unused_bodies(0.0) == 1
    assert keys_in(bodies) == keys_named(store)
    assert all_texts(store) == {("http://a/1", 1): "the same"}


def test_a_visit_that_was_under_way_while_its_page_was_forgotten_leaves_nothing(
    store: SqliteStore, bodies: Bodies
) -> None:
    store.add(links("a", 1), [], 0.0)
    (lease,) = store.lease(0.0, 1, 60.0)
    forget(store, "http://a/0")
    assert store.commit([first(lease, 1.0, "too late")]) == [False]
    assert keys_in(bodies) == set()


def test_a_commit_that_is_repeated_keeps_what_the_first_one_named(store: SqliteStore, bodies: Bodies) -> None:
    store.add(links("a", 1), [], 0.0)
    (lease,) = store.lease(0.0, 1, 60.0)
    result = first(lease, 0.0, "a text")
    assert store.commit([result]) == [True]
    assert store.commit([result]) == [False]
    store.delete_unused_bodies(1e9)
    assert keys_in(bodies) == keys_named(store)
    assert len(all_texts(store)) == 1


def test_nothing_is_written_while_the_place_is_away_and_the_same_commit_goes_through_later(
    store: SqliteStore, bodies: Bodies
) -> None:
    store.add(links("a", 3), [], 0.0)
    results = [first(lease, 0.0, f"text {lease.page.id}") for lease in store.lease(0.0, 3, 60.0)]
    place_of(bodies).is_away = True
    with pytest.raises(BodiesAway):
        store.commit(results)
    assert store.stats(0.0).stored == 0
    place_of(bodies).is_away = False
    assert store.commit(results) == [True, True, True]
    assert len(all_texts(store)) == 3


def test_a_body_that_is_missing_or_damaged_is_told_and_holds_up_nobody_who_follows(
    store: SqliteStore, tmp_path: Path
) -> None:
    visited(store, "http://a/", "a", "a text", 0.0)
    path = only_object(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"!")
    with pytest.raises(StoreDamaged, match=r"the body of http://a/ is damaged .*levada doctor"):
        store.document("http://a/")
    path.unlink()
    with pytest.raises(StoreDamaged, match="the body of http://a/ is missing"):
        store.document("http://a/")
    (change,) = store.changes(0, 10)
    assert (change.url, change.document) == ("http://a/", None)
    path.write_bytes(content)
    assert store.document("http://a/").text == "a text"  # type: ignore[union-attr]


def test_a_page_that_is_forgotten_between_its_row_and_its_body_is_not_there(
    store: SqliteStore, bodies: Bodies, monkeypatch: pytest.MonkeyPatch
) -> None:
    visited(store, "http://a/", "a", "a text", 0.0)
    place, read = place_of(bodies), place_of(bodies).get

    def get(key: str) -> bytes | None:
        monkeypatch.setattr(place, "get", read)
        forget(store, "http://a/")
        store.delete_unused_bodies(0.0)
        return read(key)

    monkeypatch.setattr(place, "get", get)
    assert store.document("http://a/") is None


@pytest.mark.parametrize(("room", "asked"), [(1_000_000, 3), (1_000, 6), (0, 6)])
def test_what_was_looked_at_last_is_kept_in_memory_and_a_walk_keeps_nothing(
    tmp_path: Path, room: int, asked: int
) -> None:
    place, log = folder_bodies(tmp_path / "bodies").place, PointLog()
    bodies = Bodies(WatchedPlace(place, log), least=0, cache_bytes=room)
    with closing(SqliteStore(tmp_path / "pages.db", bodies=bodies)) as store:
        for number in range(3):
            text = random.Random(number).randbytes(300).hex()
            visited(store, f"http://{number}/", str(number), text, 0.0)
        assert len(list(store.scan())) == len(store.changes(0, 10)) == 3
        assert log.points.count("get") == 6
        for number in (0, 1, 2, 0, 1, 2):
            assert store.document(f"http://{number}/") is not None
    assert log.points.count("get") == 6 + asked


def test_without_a_place_rows_can_be_read_and_bodies_cannot(store: SqliteStore, tmp_path: Path) -> None:
    visited(store, "http://a/", "a", "a text", 0.0)
    with closing(SqliteStore.open_reader(tmp_path / "pages.db")) as reader:
        assert reader.page("http://a/") is not None
        with pytest.raises(StoreError, match=r"set store\.bodies"):
            reader.document("http://a/")


def test_pages_that_move_to_another_shard_keep_their_objects(tmp_path: Path) -> None:
    bodies = folder_bodies(tmp_path / "bodies")
    with closing(sharded_sqlite(tmp_path, StoreLimits(), 2, bodies=bodies)) as store:
        for number in range(6):
            visited(store, f"http://{number}.example/", f"{number}.example", f"text {number}", 0.0)
        source, target = store.shards
        urls = [url for _, url in source.urls_after(0, 100)]
        before, moved = all_texts(store), source.fence(urls)
        assert urls
        target.import_pages(moved)
        source.let_go([each.page.id for each in moved])
        target.unfence([each.page.id for each in moved])
        for shard in store.shards:
            shard.delete_unused_bodies(1e12)  # type: ignore[attr-defined]  # every shard of this store can
        assert {version: text for shard in store.shards for version, text in all_texts(shard).items()} == before


def test_every_store_but_the_one_in_memory_can_have_bodies_elsewhere(store: SqliteStore) -> None:
    assert Capability.BODIES in store.capabilities


def test_a_folder_that_is_not_mounted_is_away_and_not_empty(tmp_path: Path) -> None:
    place = FolderPlace(tmp_path / "not-mounted")
    for ask in (lambda: place.get("key"), lambda: list(place.list()), lambda: place.put("ab/cd/key", b"x")):
        with pytest.raises(BodiesAway, match="not mounted"):
            ask()
    assert not (tmp_path / "not-mounted").exists()


def test_a_folder_that_is_full_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        bodies = folder_bodies(disk / "bodies")
        with closing(SqliteStore(tmp_path / "pages.db", bodies=bodies)) as store:
            visited(store, "http://a/", "a", "a text", 0.0)
            with pytest.raises(StoreFull, match="no space left for bodies"):
                bodies.place.put("ab/cd/large", os.urandom(2 << 20))
            assert all_texts(store) == {("http://a/", 1): "a text"}
            assert not list((disk / "bodies").rglob("*.part"))


def test_a_process_that_is_killed_leaves_no_name_without_an_object(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.store.bodies.killed", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    ended = json.loads(run.stdout)
    assert {status for status, _, _ in ended.values()} == {-signal.SIGKILL}
    assert ended["put.before 1"][1:] == [0, 0]
    assert ended["put.after 1"][1:] == [0, 1]
    assert ended["settle.before-commit 1"][1:] == [0, 4]
    assert ended["settle.after-commit 1"][1:] == [4, 0]
