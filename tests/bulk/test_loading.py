"""Instances come, stall and are killed at any instant: the map is whole, once, and never mixed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.bulk.entries import DuplicateKey, PlainRows, decoded_key, decoded_values
from levada.bulk.instance import (
    Instance,
    Loaded,
    Pace,
    Patience,
    ThreadedPipeline,
    ThreadHeartbeat,
    run_load,
)
from levada.bulk.protocols import Away, Entries, LoadEnded, LostGround, TaskStore
from levada.bulk.splitting import Cut, KeyRange, NullKeys, SplitMethod
from levada.bulk.start import Splitting, Starter
from levada.bulk.tasks import LoadPlan, LoadState, LoadStatus, Manifest, TaskLease, TaskResult
from levada.bulk.verify import Content, content_of_map, content_of_table
from levada.core.errors import LevadaError, Refused, StoreFull
from tests.bulk.memory import DirectPipeline, MemoryMaps, MemoryTable, MemoryTaskStore, NoHeartbeat
from tests.manual_clock import ManualClock

PLAN = LoadPlan("categories", "memory", "allowed", "msisdn", "category", collect=True)
LEASE = 10.0
Row = tuple[int | str | None, int | None]


class Killed(BaseException):
    """kill -9: nothing is cleaned up."""


class World:
    """What outlives instances."""

    def __init__(
        self, rows: Sequence[Row], plan: LoadPlan = PLAN, pipeline: Callable[[], ThreadedPipeline] = DirectPipeline
    ) -> None:
        self.pipeline = pipeline
        self.clock = ManualClock(1_000.0)
        self.book = MemoryTaskStore(self.clock)
        self.maps = MemoryMaps()
        self.rows = rows
        self.kinds = ("int", "int")
        self.plan = plan
        self.names = 0

    def load(self, target: MemoryMaps | None = None, *, replace: bool = False, tries: int = 0) -> Loaded:
        self.names += 1
        owner = f"instance-{self.names}"

        def opened() -> tuple[Starter, Instance, TaskStore]:
            table = MemoryTable(self.rows, self.kinds)
            maps = target or self.maps
            starter = Starter(
                self.plan,
                table,
                self.book,
                maps,
                self.maps,
                splitting=Splitting(SplitMethod.AUTO, 7),
                replace=replace,
            )
            pace = Pace(lease=LEASE, most_rows=12)
            instance = Instance(
                table,
                self.book,
                maps,
                self.clock,
                owner,
                pace=pace,
                wait=self.clock.advance,
                heartbeat=NoHeartbeat,
                pipeline=self.pipeline,
            )
            return starter, instance, self.book

        return run_load(opened, lambda status: None, self.clock.advance, Patience(tries=tries))

    def content(self) -> dict[Any, list[Any]]:
        manifest = self.maps.manifest("categories")
        assert manifest is not None
        found: dict[Any, list[Any]] = {}
        for layer in reversed(manifest.layers):
            for key, value in self.maps.entries("categories", layer):
                found[decoded_key(key, manifest.key_kind)] = decoded_values(value, manifest.value_kind)
        return found

    def expected(self) -> dict[Any, list[Any]]:
        found: dict[Any, list[Any]] = {}
        for key, value in self.rows:
            if key is not None and value is not None:
                found.setdefault(key, []).append(value)
        return {key: sorted(values) for key, values in found.items()}


class Fragile(MemoryMaps):
    """The same maps, seen by an instance to which something happens before or after a write."""

    def __init__(self, maps: MemoryMaps, before: Callable[[], None], after: Callable[[], None]) -> None:
        self.__dict__ = maps.__dict__
        self.before = before
        self.after = after

    def fence(self, name: str, generation: int, action: str) -> int:
        before, after = self.before, self.after
        if action != "open":
            before()
        epoch = super().fence(name, generation, action)
        if action != "open":
            after()
        return epoch

    def write(self, name: str, generation: int, epoch: int, entries: Entries) -> bool:
        before, after = self.before, self.after
        before()
        written = super().write(name, generation, epoch, entries)
        after()
        return written


class OneBehind(ThreadedPipeline):
    """A lane on which each task is delivered only when the next one has been leased and read."""

    def __init__(self) -> None:
        self._waiting: Callable[[], None] | None = None

    def put(self, work: Callable[[], None]) -> None:
        self.empty()
        self._waiting = work

    def empty(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting()

    def close(self) -> None:
        with suppress(Killed, LevadaError):
            self.empty()


def nothing() -> None:
    pass


LANES = pytest.mark.parametrize("pipeline", [DirectPipeline, OneBehind, ThreadedPipeline])


ROWS = st.lists(st.tuples(st.none() | st.integers(0, 30), st.none() | st.integers(0, 9)), max_size=80)


@LANES
@given(rows=ROWS)
def test_a_table_becomes_a_map_and_nulls_are_left_out_and_counted(
    pipeline: Callable[[], ThreadedPipeline], rows: list[Row]
) -> None:
    world = World(rows, pipeline=pipeline)
    done = world.load().status
    assert world.content() == world.expected()
    assert done.record.state is LoadState.PUBLISHED
    assert done.done.null_keys == sum(key is None for key, _ in rows)
    assert done.done.null_values == sum(key is not None and value is None for key, value in rows)
    assert done.done.rows + done.done.null_keys + done.done.null_values == len(rows)


@settings(max_examples=60)
@given(ROWS, st.randoms(use_true_random=False), st.booleans(), st.sampled_from([DirectPipeline, OneBehind]))
def test_whoever_is_killed_or_stalls_the_map_is_whole(
    rows: list[Row], chance: random.Random, changing: bool, pipeline: Callable[[], ThreadedPipeline]
) -> None:
    world = World(rows, pipeline=pipeline)

    def fate() -> None:
        turn = chance.random()
        if changing:  # a source without a snapshot: the values are others at every look
            world.rows = [(key, value if value is None else chance.randrange(9)) for key, value in world.rows]
        if turn < 0.1:
            raise Killed
        if turn < 0.2:  # stalls past its lease while another instance does much
            world.clock.advance(LEASE + 1)
            with suppress(Killed):
                world.load(Fragile(world.maps, nothing, struck))

    def struck() -> None:
        if chance.random() < 0.3:
            raise Killed

    for _ in range(4):
        world.clock.advance(chance.choice([0.0, LEASE + 1]))
        try:
            world.load(Fragile(world.maps, fate, fate))
        except Killed:
            continue
    world.clock.advance(LEASE + 1)
    manifest = world.maps.manifest("categories")
    if manifest is not None:
        assert content_of_map(world.maps, manifest) == Content(manifest.keys, manifest.rows, manifest.digest)
    last = world.load().status
    manifest = world.maps.manifest("categories")
    assert manifest is not None
    assert content_of_map(world.maps, manifest) == Content(last.done.keys, last.done.rows, last.done.digest)
    if changing:
        return
    assert world.content() == world.expected()
    assert content_of_table(MemoryTable(rows), collect=True, task_rows=9, most_rows=9) == content_of_map(
        world.maps, manifest
    )


def test_a_zombie_cannot_touch_what_is_published() -> None:
    """It stalls just before it writes; the table changes; others load and publish; it wakes."""
    world = World([(1, 1), (2, 2)])
    stalled: list[bool] = []

    def stall() -> None:
        if not stalled:
            stalled.append(True)
            world.clock.advance(LEASE + 1)
            world.rows = [(1, 7), (2, 8)]
            world.load()

    world.load(Fragile(world.maps, stall, nothing))
    assert stalled
    assert world.content() == {1: [7], 2: [8]}


def test_what_is_seen_of_the_gate_for_one_task_opens_it_for_no_other() -> None:
    """It holds two tasks and stalls; another takes the second one and settles it; then it looks, for the first."""
    first, second = KeyRange(None, Cut(5)), KeyRange(Cut(5))
    world = World([(1, 1), (9, 1)], pipeline=OneBehind)
    assert world.book.begin(_record(world), [first, second], 0)
    world.maps.fence("categories", 1, "open")
    stalled: list[bool] = []

    def stall() -> None:
        stalled.append(True)
        if len(stalled) == 2:  # after the look at the start: the first write
            assert world.book.renew(TaskLease("categories", 1, 0, 1, first), 5 * LEASE)
            world.clock.advance(LEASE + 1)
            _taken_and_settled(world, second)

    world.load(Fragile(world.maps, stall, nothing))
    assert world.content() == {1: [1], 9: [7]}


def _taken_and_settled(world: World, span: KeyRange) -> None:
    lease = world.book.lease("categories", 1, "elsewhere", LEASE, "")
    assert lease is not None
    assert lease.span == span
    batch = MemoryTable([(9, 7)]).read(span, None)
    assert isinstance(batch, PlainRows)
    epoch = world.maps.fence("categories", 1, "move")
    assert world.maps.write("categories", 1, epoch, batch.entries(True))
    assert world.book.complete(lease, TaskResult(1, 1, batch.digest()))


def test_readers_see_the_old_map_until_the_new_one_is_whole() -> None:
    world = World([(key, 1) for key in range(40)])
    world.load()
    world.rows = [(key, 2) for key in range(40)]
    seen: list[set[int]] = []

    def look() -> None:
        seen.append({value for values in world.content().values() for value in values})

    world.load(Fragile(world.maps, look, look))
    assert seen
    assert all(values == {1} for values in seen)
    assert world.content() == world.expected()


def test_two_that_start_at_once_begin_one_load() -> None:
    world = World([(key, key) for key in range(40)])
    joined: list[Loaded] = []

    def join() -> None:
        if not joined:
            joined.append(world.load())

    first = world.load(Fragile(world.maps, join, nothing))
    assert first.began
    assert not joined[0].began
    assert world.maps.generations("categories") == [1]
    assert first.status.record.generation == joined[0].status.record.generation == 1


def test_a_task_too_big_for_the_memory_is_split() -> None:
    world = World([(key, key) for key in range(40)])
    world.book.begin(_record(world), [*_whole()], 0)
    world.maps.fence("categories", 1, "open")
    done = world.load().status
    assert done.done.tasks >= 4
    assert world.content() == world.expected()


def test_a_key_heavier_than_the_memory_of_a_task_is_loaded_all_the_same() -> None:
    world = World([(7, value) for value in range(200)] + [(key, 1) for key in range(200)])
    world.load()
    assert world.content() == world.expected()


@LANES
def test_a_second_row_of_a_key_fails_the_load_and_nothing_is_published(
    pipeline: Callable[[], ThreadedPipeline],
) -> None:
    world = World([(1, 1), (1, 2)], msgspec.structs.replace(PLAN, collect=False), pipeline)
    with pytest.raises(DuplicateKey):
        world.load()
    status = world.book.status("categories")
    assert status is not None
    assert status.record.state is LoadState.FAILED
    assert "several rows" in status.record.reason
    assert world.maps.manifest("categories") is None


@LANES
def test_a_full_target_fails_the_load_and_the_next_one_goes_on(pipeline: Callable[[], ThreadedPipeline]) -> None:
    world = World([(key, key) for key in range(40)], pipeline=pipeline)
    room = [2]

    def fill() -> None:
        room[0] -= 1
        if room[0] < 0:
            raise StoreFull("full")

    with pytest.raises(StoreFull):
        world.load(Fragile(world.maps, fill, nothing))
    failed = world.book.status("categories")
    assert failed is not None
    assert failed.record.reason == "full"
    assert world.maps.manifest("categories") is None
    resumed = world.load()
    assert not resumed.began
    assert world.content() == world.expected()


def test_a_load_whose_keys_are_of_another_type_now_begins_again() -> None:
    world = World([(key, key) for key in range(40)])

    def kill() -> None:
        raise Killed

    with pytest.raises(Killed):
        world.load(Fragile(world.maps, nothing, kill))
    world.rows, world.kinds = [(f"key {key}", key) for key in range(40)], ("text", "int")
    again = world.load()
    assert again.began
    assert again.status.record.generation == 2
    assert world.content() == world.expected()


@LANES
def test_a_server_that_is_away_for_a_moment_is_tried_again(pipeline: Callable[[], ThreadedPipeline]) -> None:
    world = World([(key, key) for key in range(40)], pipeline=pipeline)
    troubles = [2]

    def cut() -> None:
        if troubles[0]:
            troubles[0] -= 1
            raise Away("cut")

    assert world.load(Fragile(world.maps, cut, nothing), tries=3).status.record.state is LoadState.PUBLISHED
    assert world.content() == world.expected()
    troubles[0] = 9
    with pytest.raises(Away):
        world.load(Fragile(world.maps, cut, nothing), tries=3)


@LANES
def test_a_target_that_lost_everything_is_loaded_again_under_a_new_generation(
    pipeline: Callable[[], ThreadedPipeline],
) -> None:
    world = World([(key, key) for key in range(40)], pipeline=pipeline)
    lost: list[bool] = []

    def lose() -> None:
        if not lost:
            lost.append(True)
            world.maps.__dict__.update(MemoryMaps().__dict__)

    loaded = world.load(Fragile(world.maps, nothing, lose))
    assert loaded.restarts == 1
    assert loaded.status.record.generation == 2
    assert world.content() == world.expected()


def test_ground_that_is_lost_again_and_again_is_given_up() -> None:
    world = World([(key, key) for key in range(40)])
    with pytest.raises(LostGround):
        world.load(Fragile(world.maps, nothing, lambda: world.maps.__dict__.update(MemoryMaps().__dict__)))
    assert world.maps.manifest("categories") is None


def test_a_cancelled_load_stops_whoever_works_on_it() -> None:
    world = World([(key, key) for key in range(40)])

    def cancel() -> None:
        world.book.finish("categories", 1, LoadState.CANCELLED, "enough")
        world.maps.remove("categories", 1)

    with pytest.raises(LoadEnded, match="cancelled: enough"):
        world.load(Fragile(world.maps, cancel, nothing))
    assert world.maps.generations("categories") == []


def test_a_map_of_another_table_is_not_overwritten_unless_asked() -> None:
    world = World([(1, 1)])
    world.load()
    world.plan = msgspec.structs.replace(PLAN, table="others")
    world.rows = [(2, 2)]
    with pytest.raises(Refused, match=r"categories holds another table: .* --replace"):
        world.load()
    assert world.content() == {1: [1]}
    world.load(replace=True)
    assert world.content() == {2: [2]}


def test_where_only_the_watermark_is_another_the_message_says_so() -> None:
    world = World([(1, 1)])
    world.load()
    world.plan = msgspec.structs.replace(PLAN, watermark="at")
    with pytest.raises(
        Refused, match=r"categories holds this table without --watermark, not with --watermark at\. .*--replace"
    ):
        world.load()


def test_what_earlier_generations_left_is_removed_by_the_next() -> None:
    world = World([(key, key) for key in range(40)])
    for _ in range(3):
        world.load()
    assert world.maps.generations("categories") == [2, 3]


def test_a_server_that_stays_away_ends_the_load_whatever_was_written_before() -> None:
    world, waits, writes = World([(key, key) for key in range(40)]), list[float](), list[int]()

    def cut_at_the_third() -> None:
        writes.append(1)
        if len(writes) == 3:
            raise Away("cut")

    def opened() -> tuple[Starter, Instance, TaskStore]:
        if writes:
            raise Away("still away")
        table, maps = MemoryTable(world.rows), Fragile(world.maps, cut_at_the_third, nothing)
        starter = Starter(PLAN, table, world.book, maps, world.maps, splitting=Splitting(SplitMethod.AUTO, 7))
        instance = Instance(
            *(table, world.book, maps, world.clock, "instance"),
            pace=Pace(lease=LEASE, most_rows=12),
            wait=world.clock.advance,
            heartbeat=NoHeartbeat,
            pipeline=DirectPipeline,
        )
        return starter, instance, world.book

    def wait(seconds: float) -> None:
        waits.append(seconds)
        assert len(waits) < 10

    with pytest.raises(Away, match="still away"):
        run_load(opened, lambda status: None, wait, Patience(tries=4, seconds=0.5))
    assert waits == [0.5] * 4


def test_a_heart_beats_beside_the_work_until_it_is_refused() -> None:
    beats: list[int] = []

    def beat() -> bool:
        beats.append(1)
        if len(beats) == 1:
            raise Away("for a moment")
        return len(beats) < 3

    heartbeat = ThreadHeartbeat(0.001)
    with heartbeat.beating(beat) as beating:
        while beating.alive:
            pass
    assert len(beats) == 3


def _record(world: World) -> Any:
    from levada.bulk.tasks import LoadRecord

    return LoadRecord(PLAN, 1, "int", "int", fingerprint=world.maps.fingerprint())


def _whole() -> list[Any]:
    return [KeyRange(), NullKeys()]


def test_the_manifest_says_what_readers_need() -> None:
    world = World([(1, 1), (1, 2), (2, 2)])
    status: LoadStatus = world.load().status
    manifest = world.maps.manifest("categories")
    assert isinstance(manifest, Manifest)
    assert (manifest.keys, manifest.rows, manifest.layers) == (2, 3, (1,))
    assert manifest.digest == status.done.digest
