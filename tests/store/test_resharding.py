"""Pages move to other shards: nothing is lost, nothing is doubled, whenever it ends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from levada.core.errors import StoreDamaged, StoreError, StoreTooNew, UsageError
from levada.core.records import FoundUrl
from levada.follow.feed import Feed, Place
from levada.sharding.page_keys import page_placement, page_values
from levada.store.sharded import ShardedStore
from levada.store.sharded.plan import PlanFile
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import changed, unchanged
from tests.faults import FaultAt
from tests.invariants import check_invariants
from tests.sharded import everything, open_places, places, urls_by_shard
from tests.store.resharding_scenario import POINTS, close_all, fill, open_collection, reshard, take_back

pytest_plugins = ["tests.servers.fixtures"]

SHARDS = ((1, "site", 3, "site"), (3, "site", 2, "site"), (3, "site", 4, "url"), (4, "url", 1, "site"))


@pytest.fixture
def start(tmp_path: Path) -> Path:
    store, file = open_collection(tmp_path / "start", 2)
    fill(store)
    close_all(store, file)
    return tmp_path / "start"


def held(folder: Path) -> dict[str, tuple[object, ...]]:
    """Checks every shard on the way."""
    store, file = open_collection(folder, 0)
    try:
        for shard in store.shards:
            if isinstance(shard, SqliteStore):
                check_invariants(shard)
            shard.check()
            assert shard.fenced() == []
            assert shard.undelivered(10) == []
        return everything(store.shards)
    finally:
        close_all(store, file)


@pytest.mark.parametrize(("before", "old_key", "after", "new_key"), SHARDS)
def test_a_collection_is_the_same_on_other_shards(
    tmp_path: Path, before: int, old_key: str, after: int, new_key: str
) -> None:
    store, file = open_collection(tmp_path, before, old_key)
    fill(store)
    seen = {url: store.document(url) for url in everything(store.shards)}
    change_kind = store.change_log(0, 1_000)
    close_all(store, file)
    pages = held(tmp_path)
    reshard(tmp_path, after, new_key)
    assert held(tmp_path) == pages
    store, file = open_collection(tmp_path, 0)
    placement = page_placement(new_key, after)
    for number, urls in enumerate(urls_by_shard(store.shards)):
        assert all(placement.place(page_values(url)) == number for url in urls)
    assert {url: store.document(url) for url in seen} == seen
    assert [(each.seq, each.url, each.what) for each in store.change_log(0, 1_000)] == [
        (each.seq, each.url, each.what) for each in change_kind
    ]
    close_all(store, file)


@pytest.mark.parametrize(("after", "key"), [(3, "url"), (1, "site")])
def test_who_reads_the_feed_meets_every_change_once_though_pages_move(start: Path, after: int, key: str) -> None:
    met: list[tuple[int, int, str, str]] = []
    place: Place = ()
    for step in range(3):
        store, file = open_collection(start, 0)
        change_kind = len(store.change_log(0, 1_000))
        page = Feed(store.logs).read(place, 5 if step == 0 else 1_000)  # at first only some, then the rest
        met += [(shard, change.seq, change.url, change.title) for shard, change in page.changes]
        place = page.after
        now = 10_000.0 * (step + 1)
        assert any(store.commit([changed(lease, now, f"text {step}") for lease in store.lease(now, 3, 60.0)]))
        close_all(store, file)
        if step == 0:
            reshard(start, after, key)
    assert len(met) == len({(shard, seq) for shard, seq, _, _ in met}) == change_kind
    assert all(title for _, _, _, title in met)


def test_where_nothing_changes_nothing_moves(start: Path) -> None:
    pages = held(start)
    reshard(start, 2, "site")
    assert held(start) == pages


@pytest.mark.parametrize("point", [point for point in POINTS if point.startswith("move.") or "after" in point])
def test_a_move_that_fails_anywhere_is_finished_by_the_next_one(start: Path, point: str) -> None:
    pages = held(start)
    try:
        reshard(start, 3, "url", FaultAt(point, OSError("the disk went away"), nth=2))
    except (StoreError, OSError):
        store, file = open_collection(start, 0)  # in the middle of it everything is found, and once
        assert all(store.page(url) is not None for url in pages)
        assert sorted(document.url for document in store.scan()) == sorted(
            url for url in pages if (document := store.document(url)) is not None and not document.gone
        )
        assert store.add([FoundUrl(url, page_values(url)["site"]) for url in pages], [], 9e9) == 0
        close_all(store, file)
    reshard(start, 3, "url")
    assert held(start).keys() == pages.keys()
    assert held(start) == pages


@pytest.mark.parametrize("point", [point for point in POINTS if point.startswith(("move.", "take-in", "let-go"))])
def test_a_move_that_fails_anywhere_can_be_taken_back(start: Path, point: str) -> None:
    pages = held(start)
    with pytest.raises((StoreError, OSError)):
        reshard(start, 3, "url", FaultAt(point, OSError("the disk went away"), nth=2))
    store, file = open_collection(start, 0)
    store.add([FoundUrl(f"http://new.org/{number}", "new.org") for number in range(9)], [], 9e9)
    close_all(store, file)
    with pytest.raises((StoreError, OSError)):
        take_back(start, FaultAt(point, OSError("the disk went away again")))
    with pytest.raises(UsageError, match="already"):
        reshard(start, 3, "url")
    take_back(start)
    found = held(start)
    assert {url: page for url, page in found.items() if "new.org" not in url} == pages
    assert len(found) == len(pages) + 9
    store, file = open_collection(start, 0)
    placement = page_placement("site", 2)
    for number, urls in enumerate(urls_by_shard(store.shards)):
        assert all(placement.place(page_values(url)) == number for url in urls)
    close_all(store, file)
    with pytest.raises(UsageError, match="nothing to take back"):
        take_back(start)
    reshard(start, 3, "url")


def test_a_move_that_is_killed_anywhere_is_finished_by_the_next_one(start: Path) -> None:
    pages = held(start)
    command = [sys.executable, "-m", "tests.store.resharding_scenario", str(start.parent), "3", "site"]
    ends = json.loads(subprocess.run(command, capture_output=True, check=True, text=True, timeout=120).stdout)
    assert {point for point, end in ends.items() if end != -9} <= {
        point for point in POINTS if point.startswith(("receive", "delivered"))
    }
    for point in POINTS:
        reshard(start.parent / point, 3, "site")
        assert held(start.parent / point) == pages, point
        shutil.rmtree(start.parent / point)


def test_pages_that_somebody_visits_move_when_he_is_done(start: Path) -> None:
    store, file = open_collection(start, 0)
    leases = store.lease(5_000.0, 4, 60.0)
    waited: list[int] = []

    def settle() -> None:
        waited.append(1)
        assert all(store.commit([unchanged(lease, 5_001.0) for lease in leases]))

    _move_beside(start, store, file, settle)
    assert waited == [1]
    for lease in leases:
        page = store.page(lease.page.url)
        assert page is not None
        assert page.visits == lease.page.visits + 1
    close_all(store, file)
    held(start)


def _move_beside(folder: Path, store: ShardedStore, file: PlanFile, wait: object) -> None:
    """As another process would: with stores and a file of its own."""
    from levada.store.sharded.resharding import begin_move, finish_move, move_pages
    from tests.store.resharding_scenario import LIMITS

    own = PlanFile(file.path)
    record = begin_move(own, page_placement("url", 3), places(folder, 3))
    shards = open_places(folder, record.shards, LIMITS)
    move_pages(own, shards, wait=wait)  # type: ignore[arg-type]
    finish_move(own)
    for shard in shards:
        shard.close()
    own.close()


def test_two_moves_at_a_time_are_refused(start: Path) -> None:
    with pytest.raises((StoreError, OSError)):
        reshard(start, 3, "site", FaultAt("move.taken-in", OSError("gone"), nth=1))
    with pytest.raises(UsageError, match="already"):
        reshard(start, 4, "site")
    reshard(start, 3, "site")


def test_a_plan_that_is_not_readable_says_so(tmp_path: Path) -> None:
    file = PlanFile(tmp_path / "placement.json")
    with pytest.raises(StoreError, match="cannot be read"):
        file.read()
    file.path.write_text("{")
    with pytest.raises(StoreDamaged, match="cannot be read"):
        file.read()
    store, good = open_collection(tmp_path / "good", 1)
    text = good.path.read_text()
    close_all(store, good)
    file.path.write_text(text.replace('"format": 1', '"format": 9'))
    with pytest.raises(StoreTooNew, match="newer"):
        file.read()
    file.close()


def test_movers_killed_beside_a_busy_crawl_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    check_load(tmp_path, 20)


def test_nor_do_they_between_three_postgresql_instances(tmp_path: Path, postgresql_trio: list[str]) -> None:
    folder = tmp_path / f"load{os.getpid()}"
    folder.mkdir()
    (folder / "servers").write_text(" ".join(postgresql_trio))
    check_load(folder, 12)


def check_load(tmp_path: Path, kills: int) -> None:
    command = [sys.executable, "-m", "tests.store.moving_under_load", str(tmp_path), str(kills)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert said["visitor"] == 0, ended.stderr
    assert "1" not in said["movers"], ended.stderr
    assert said["movers"]["-9"] >= kills // 3
    pages = held(tmp_path)
    visits = Counter((tmp_path / "visits.txt").read_text().split())
    assert {url: page.visits for url, (page, _) in pages.items() if page.visits} == visits  # type: ignore[attr-defined]
    assert set((tmp_path / "found.txt").read_text().split()) <= set(pages)
    assert len(visits) > 100
