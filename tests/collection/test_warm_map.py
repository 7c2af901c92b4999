"""A map that is filled from the collection's own shards agrees with the store on each page, or has nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.bulk.entries import decoded_key, decoded_values
from levada.bulk.loads import LoadRequest, load, load_status, noted_load, verify_load
from levada.bulk.maps import Map
from levada.bulk.protocols import RowBatch
from levada.bulk.sources.collection import LevadaSource, open_summaries
from levada.bulk.splitting import BlockRange, Cut, KeyRange, NullKeys, Span, SplitMethod, parts_of, split
from levada.bulk.tasks import LoadState
from levada.collection.shards import ReshardOptions, apply_shards
from levada.collection.warm_map import WarmMapResult, WarmPages, maps_of, warm, warm_request
from levada.core.clock import SystemClock
from levada.core.errors import LevadaError, NotFound, Refused, UsageError
from levada.core.folder import DataFolder
from levada.core.records import FoundUrl, NewVersion, Outcome, PageState, Signals, Visit, VisitResult
from levada.store.opening import open_reading_store
from levada.store.reading import open_collection
from levada.store.sqlite import SqliteStore
from levada.store.summaries import PageSummary, summary_of
from tests.cli.collection import DOWN, FRONT, NEW, NOW, PLAIN, VAPUR, build, settle, version
from tests.manual_clock import ManualClock

pytest_plugins = ["tests.servers.fixtures"]


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return DataFolder(build(tmp_path / "data"))


def opened(folder: DataFolder) -> LevadaSource:
    request = warm_request(folder)
    return open_summaries(request.source, request.plan)


def filled(folder: DataFolder, target: str = "", **more: Any) -> WarmMapResult:
    return warm(folder, msgspec.structs.replace(warm_request(folder, target), **more), lambda status: None)


def told_by_store(folder: DataFolder) -> dict[str, PageSummary]:
    """Of each page that was visited, without where it lies."""
    told = {}
    with open_collection(folder) as collection:
        store = collection.store
        for url in {each for start in ("http://", "https://") for each in store.urls_like(start, 10_000)}:
            page, versions = store.page(url), store.versions(url)
            assert page is not None
            newest = versions[0] if versions else None
            if page.visits:
                facts = (newest.title, newest.words, newest.fetched_at) if newest else (None, None, None)
                told[url] = summary_of(page, *facts)
    return told


def bare(summary: PageSummary) -> PageSummary:
    return msgspec.structs.replace(summary, shard="", met_at=0.0)


def rows_of(batch: RowBatch | int | None) -> dict[str, PageSummary]:
    assert batch is not None
    assert not isinstance(batch, int)
    pairs = batch.entries(False).pairs()
    return {
        str(decoded_key(key, "text")): msgspec.convert(decoded_values(value, "any")[0], PageSummary)
        for key, value in pairs
    }


def whole(source: LevadaSource) -> dict[str, PageSummary]:
    return {url: bare(summary) for url, summary in rows_of(source.read(KeyRange(), None)).items()}


@pytest.mark.parametrize("shards", [1, 3])
def test_the_shards_are_one_table_of_what_the_store_says(folder: DataFolder, shards: int) -> None:
    expected = told_by_store(folder)
    if shards > 1:
        apply_shards(folder, ReshardOptions(shards, "url"))
    with closing(opened(folder)) as source:
        assert whole(source) == expected
    assert len(expected) == 8
    assert NEW not in expected  # nothing was met there yet


def test_shards_on_a_server_say_the_same(folder: DataFolder, postgresql: str) -> None:
    expected = told_by_store(folder)
    name = f"warm_{folder.path.parent.name.lower().replace('-', '_')}"[:60]
    with psycopg.connect(postgresql, autocommit=True) as line:
        line.execute(f'CREATE DATABASE "{name}"'.encode())
    server = psycopg.conninfo.make_conninfo(postgresql, dbname=name)
    apply_shards(folder, ReshardOptions(2, "url", servers=(server,)))
    with closing(opened(folder)) as source:
        assert whole(source) == expected
        assert sorted(source.sample(KeyRange(), 100)) == sorted([*expected, NEW])
    assert filled(folder).pages == len(expected)
    with closing(WarmPages(folder, SystemClock())) as pages:
        assert {url: bare(summary) for url in expected if (summary := pages.summary(url))} == expected


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_however_it_is_split_each_page_is_in_one_task(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    folder = DataFolder(shared(tmp_path_factory))
    with closing(opened(folder)) as source:
        expected = rows_of(source.read(KeyRange(), None))
        drawn = st.lists(st.builds(Cut, st.sampled_from(sorted(expected)) | st.text(), st.booleans()), max_size=4)
        cuts = sorted(data.draw(drawn), key=lambda cut: (str(cut.key), cut.after))
        edges = [None, *cuts, None]
        spans = [KeyRange(low, high) for low, high in pairwise(edges)]
        parts = [rows_of(source.read(span, None)) for span in spans]
    assert sum(map(len, parts)) == len(expected)
    assert {url: summary for part in parts for url, summary in part.items()} == expected


def shared(folders: pytest.TempPathFactory) -> Path:
    path = folders.getbasetemp() / "warming-shared"
    return path if path.exists() else build(path)


def test_tasks_come_from_the_addresses_and_one_that_is_too_big_says_so(folder: DataFolder) -> None:
    with closing(opened(folder)) as source:
        facts = source.facts()
        spans = split(facts, source.sample(KeyRange(), 100), SplitMethod.AUTO, collect=False, task_rows=3)
        assert [type(span) for span in spans] == [KeyRange] * len(spans)
        assert sum(len(rows_of(source.read(span, None))) for span in spans) == 8
        assert source.read(KeyRange(), 3) is None
        assert len(parts_of(KeyRange(), source.sample(KeyRange(), 100))) == 2
        assert source.read(NullKeys(), None) == 0
        with pytest.raises(UsageError, match="ranges"):
            source.read(BlockRange(), None)


def test_a_page_that_stands_on_two_shards_is_met_once(folder: DataFolder) -> None:
    """As while it moves."""
    shelves = []
    for _ in range(2):
        source = opened(folder)
        shelves += list(source._page_summaries)
    with closing(LevadaSource(shelves)) as both:
        assert len(rows_of(both.read(KeyRange(), None))) == 8


def test_a_second_warm_takes_only_what_was_visited_since(folder: DataFolder) -> None:
    first = filled(folder)
    assert (first.pages, first.whole, first.layers) == (8, True, 1)
    with closing(SqliteStore(folder.database)) as store:
        settle(store, PLAIN, NOW + 1, Outcome.CHANGED, new=version("Plain, again", "other words", 0.2))
    second = filled(folder)
    assert (second.whole, second.layers) == (False, 2)
    assert second.pages < 8
    with Map.open(str(maps_of(folder)), "pages") as found:
        assert found.get(PLAIN)[4] == "Plain, again"
        assert found.get(FRONT)[4] == "İstanbul: ana sayfa"
    assert verify_load(warm_request(folder)).current


def test_a_visit_that_fails_is_taken_the_next_time(folder: DataFolder) -> None:
    filled(folder)
    failed: dict[str, Any] = {"failures": 1}
    with closing(SqliteStore(folder.database)) as store:
        settle(store, FRONT, NOW + 5, Outcome.FAILED, **failed)
    filled(folder)
    with closing(WarmPages(folder, SystemClock())) as pages:
        summary = pages.summary(FRONT)
        assert summary is not None
        assert summary.visits == 2


def test_the_map_says_nothing_of_a_page_that_was_visited_since(folder: DataFolder) -> None:
    filled(folder)
    with closing(WarmPages(folder, SystemClock())) as pages, closing(SqliteStore(folder.database)) as store:
        for url in (VAPUR, FRONT, DOWN):
            for _ in range(2):  # by the map, then by what was found right before
                summary = pages.summary(url)
                assert summary is not None
                assert bare(summary) == told_by_store(folder)[url]
        settle(store, VAPUR, NOW + 1, Outcome.UNCHANGED)
        assert pages.summary(VAPUR) is None
        assert pages.summary(VAPUR) is None
        assert pages.summary(FRONT) is not None  # another page of the same shard


def test_the_map_says_nothing_of_a_page_whose_next_visit_was_brought_forward(folder: DataFolder) -> None:
    filled(folder)
    with closing(WarmPages(folder, SystemClock())) as pages, closing(SqliteStore(folder.database)) as store:
        assert pages.summary(VAPUR) is not None
        page = store.page(VAPUR)
        assert page is not None
        store.bring_forward([(page, Signals.SITEMAP, NOW - 100)])
        assert pages.summary(VAPUR) is None


def test_a_page_that_moved_is_asked_of_the_store(folder: DataFolder) -> None:
    filled(folder)
    with closing(WarmPages(folder, SystemClock())) as pages:
        assert pages.summary(VAPUR) is not None
    expected = told_by_store(folder)
    apply_shards(folder, ReshardOptions(3, "url"))
    with closing(WarmPages(folder, SystemClock())) as pages:
        for url, told in expected.items():
            found = pages.summary(url)
            assert found is None or bare(found) == told
    again = filled(folder)
    assert (again.whole, again.pages) == (True, 8)
    with closing(WarmPages(folder, SystemClock())) as pages:
        assert {url: bare(summary) for url in expected if (summary := pages.summary(url))} == expected


def test_the_map_of_a_collection_that_was_made_anew_says_nothing(folder: DataFolder) -> None:
    filled(folder)
    for part in folder.path.glob("levada.db*"):
        part.unlink()
    with closing(SqliteStore(folder.database)) as store:
        store.add([FoundUrl(FRONT, "example.org", admit=True)], [], NOW)
        settle(store, FRONT, NOW, Outcome.FAILED, state=PageState.FAILED, interval=None)
        with closing(WarmPages(folder, SystemClock())) as pages:
            assert pages.summary(FRONT) is None


def test_without_a_map_nothing_is_said_and_one_that_comes_is_found_later(folder: DataFolder) -> None:
    clock = ManualClock(0.0)
    with closing(WarmPages(folder, clock)) as pages:
        assert pages.summary(VAPUR) is None
        filled(folder)
        assert pages.summary(VAPUR) is None  # not looked for at every question
        clock.advance(3.0)
        assert pages.summary(VAPUR) is not None


def test_a_map_that_cannot_be_read_leaves_the_store_to_answer(folder: DataFolder) -> None:
    filled(folder)
    (maps_of(folder) / "loads.json").write_text("[")
    with closing(WarmPages(folder, SystemClock())) as pages:
        assert pages.summary(VAPUR) is None
    shutil.rmtree(maps_of(folder))
    maps_of(folder).mkdir()
    with closing(WarmPages(folder, SystemClock())) as pages:
        assert pages.summary(VAPUR) is None


def test_a_new_generation_is_seen_by_who_has_the_old_one_open(folder: DataFolder) -> None:
    """In another process: within one, a file is open either to be read or to be written."""
    filled(folder)
    with closing(WarmPages(folder, SystemClock())) as pages:
        assert pages.summary(PLAIN) is not None
        with closing(SqliteStore(folder.database)) as store:
            settle(store, PLAIN, NOW + 1, Outcome.UNCHANGED)
        assert pages.summary(PLAIN) is None
        command = [sys.executable, "-m", "levada", "warm", "--data", str(folder.path), "--json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        summary = pages.summary(PLAIN)
        assert summary is not None
        assert summary.visits == 2


def test_a_load_that_was_broken_off_goes_on(folder: DataFolder) -> None:
    request = msgspec.structs.replace(warm_request(folder), task_rows=2)

    class Stop(Exception):
        pass

    def stop(status: Any) -> None:
        if status.done.tasks >= 1:
            raise Stop

    with pytest.raises(Stop):
        warm(folder, request, stop)
    status, manifest = load_status(request)
    assert status is not None
    assert (status.record.state, manifest) == (LoadState.RUNNING, None)
    assert noted_load(maps_of(folder), "pages") == request
    warmed = warm(folder, request, lambda status: None)
    assert (warmed.generation, warmed.pages) == (1, 8)


def test_where_there_is_no_collection_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        filled(DataFolder(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_a_map_elsewhere_that_holds_another_collection_is_left_alone(folder: DataFolder, tmp_path: Path) -> None:
    other = DataFolder(build(tmp_path / "other"))
    target = str(tmp_path / "shared")
    filled(folder, target)
    with pytest.raises(Refused, match="another table"):
        filled(other, target)
    assert filled(other, target, replace=True).generation == 2


def test_redis_holds_the_same_cards(folder: DataFolder, redis: str) -> None:
    request: LoadRequest = msgspec.structs.replace(warm_request(folder, redis), name="warm-cards", keep_old=0.0)
    load(request, lambda status: None)
    with Map.open(redis, "warm-cards") as found, closing(open_reading_store(folder)):
        for url, summary in told_by_store(folder).items():
            assert bare(msgspec.convert(found.get(url), PageSummary)) == summary


@pytest.mark.parametrize("other", [{"table": "sites"}, {"key": "id"}, {"value": "title"}, {"watermark": "seq"}])
def test_it_has_one_table_and_says_so(folder: DataFolder, other: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="--table pages --key url --value card"):
        filled(folder, str(folder.path / "elsewhere"), **other)
    assert not (folder.path / "elsewhere").exists()


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    odd = DataFolder(build(tmp_path / "a b?c#d%20@e"))
    assert filled(odd).pages == 8
    with closing(WarmPages(odd, SystemClock())) as pages:
        assert pages.summary(VAPUR) is not None


def visit(store: SqliteStore, url: str, at: float, new: NewVersion | None) -> None:
    """One that brings a new version, or fails; each at a time when its site has its turn."""
    leases = store.lease(at + 1e9 + 1e5 * (at - NOW), 100, 60.0)
    store.release([lease for lease in leases if lease.page.url != url])
    (lease,) = [lease for lease in leases if lease.page.url == url]
    met = Visit(at, Outcome.CHANGED if new else Outcome.FAILED)
    assert store.commit([VisitResult(lease, met, PageState.LIVE, 60.0, at + 60, version=new, failures=not new)]) == [
        True
    ]


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["visit", "fail", "hint", "look", "look", "warm"]),
            st.sampled_from([FRONT, VAPUR, PLAIN]),
        ),
        max_size=14,
    )
)
def test_whatever_happens_the_map_says_what_the_store_says_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    folder = DataFolder(shutil.copytree(shared(tmp_path_factory), tmp_path_factory.mktemp("steps") / "data"))
    pages = WarmPages(folder, SystemClock())
    with closing(SqliteStore(folder.database)) as store:
        for number, (step, url) in enumerate([("warm", ""), *steps, ("look", PLAIN), ("look", VAPUR)]):
            at = NOW + number
            if step in ("visit", "fail"):
                visit(store, url, at, version(f"title {number}", "some words", 0.5) if step == "visit" else None)
            elif step == "hint":
                page = store.page(url)
                assert page is not None
                store.bring_forward([(page, Signals.FEED, NOW - number)])
            elif step == "warm":
                pages.close()
                filled(folder)
                pages = WarmPages(folder, SystemClock())
            else:
                summary = pages.summary(url)
                assert summary is None or bare(summary) == told_by_store(folder)[url]
    pages.close()


def test_every_span_can_be_asked_for_again(folder: DataFolder) -> None:
    """What a task book keeps of a span gives the same pages."""
    with closing(opened(folder)) as source:
        for span in parts_of(KeyRange(), source.sample(KeyRange(), 100), 4):
            again = msgspec.json.decode(msgspec.json.encode(span), type=Span)
            assert rows_of(source.read(again, None)) == rows_of(source.read(span, None))


def test_a_shard_that_is_not_there_is_an_error_that_says_so(folder: DataFolder) -> None:
    apply_shards(folder, ReshardOptions(2, "url"))
    shutil.rmtree(folder.path / "shard-1")
    with pytest.raises(LevadaError, match="shard-1"):
        filled(folder)
