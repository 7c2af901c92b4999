"""Levelled grouping: even, cheap, quick, not to be aimed at, with workers that join and leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.grouping import LevelledGrouping, MurmurHash
from levada.grouping.levels import Levels, Tuning, deal_slots, place_of, stride_of

SENDERS = 10

Integers = np.ndarray[Any, np.dtype[np.int64]]


def shared(stream: Integers, workers: int, secret: bytes = b"s") -> tuple[float, float]:
    """Max over mean, and workers per key, of ten senders that decide alone."""
    chosen = np.empty(len(stream), np.int64)
    for sender in range(SENDERS):
        chosen[sender::SENDERS] = LevelledGrouping(workers, secret).choose_many(stream[sender::SENDERS])
    counts = np.bincount(chosen, minlength=workers)
    pairs = np.unique(stream * workers + chosen)
    return counts.max() / counts.mean(), len(pairs) / len(np.unique(stream))


def skewed(share: float, records: int, keys: int = 204, seed: int = 100) -> Integers:
    chance = np.random.default_rng(seed)
    return np.where(chance.random(records) < share, 7, chance.integers(0, keys, records))


def zipfian(keys: int, records: int, seed: int = 100) -> Integers:
    worth = 1.0 / np.arange(1, keys + 1)
    return np.random.default_rng(seed).choice(keys, records, p=worth / worth.sum()).astype(np.int64)


@pytest.mark.parametrize("share", [0.0, 0.15, 0.45, 0.85])
def test_a_skewed_stream_is_shared_evenly_at_little_cost(share: float) -> None:
    fullest, cost = shared(skewed(share, 1_000_000), 10)
    assert fullest <= 1.05
    assert cost <= 1.5


def test_a_single_key_is_spread_over_all_workers() -> None:
    fullest, cost = shared(np.zeros(200_000, np.int64), 10)
    assert fullest <= 1.05
    assert cost == 10


@pytest.mark.parametrize(("keys", "workers"), [(25, 50), (60, 50), (25, 100)])
def test_few_keys_do_not_wander_over_many_workers(keys: int, workers: int) -> None:
    """Perfectly even would need about keys + workers - 1 pairs."""
    fullest, cost = shared(zipfian(keys, 500_000), workers)
    assert fullest <= 1.5
    assert cost <= 1.6 * (keys + workers - 1) / keys


@given(st.integers(0, 2**64 - 1), st.integers(1, 300))
def test_a_stride_meets_every_worker(hashed: int, workers: int) -> None:
    stride = stride_of(hashed, workers)
    assert len({step * stride % workers for step in range(workers)}) == workers


def test_crafted_collisions_do_not_meet() -> None:
    known = MurmurHash(13)
    aimed = [key for key in range(102_000) if known.of(key) % 10 == 3][:10_000]
    crafted = np.array(aimed * 10, np.int64)
    assert len(crafted) == 100_000
    assert shared(crafted, 10)[0] <= 1.5
    assert shared(crafted, 10, b"another secret")[0] <= 1.5


def test_a_key_that_turns_hot_is_spread_and_given_back_within_seconds() -> None:
    """At the thesis's 960 records per second and sender."""
    grouping = LevelledGrouping(10, b"s")
    hot, cold = skewed(0.8, 19_200), skewed(0.0, 19_200)
    grouping.choose_many(cold)
    chosen = grouping.choose_many(hot)
    counts = np.bincount(chosen[9_600:], minlength=10)
    assert counts.max() / counts.mean() <= 1.1
    again = grouping.choose_many(cold)
    late = again[9_600:][cold[9_600:] == 7]
    assert len(np.unique(late)) <= 3


@given(st.lists(st.tuples(st.sampled_from("jl"), st.integers(0, 9)), max_size=8), st.booleans())
@settings(deadline=None, max_examples=50)
def test_a_worker_that_is_gone_is_never_named(changes: list[tuple[str, int]], by_array: bool) -> None:
    grouping = LevelledGrouping(3, b"s")
    for change, worker in changes:
        if change == "j" and worker not in grouping.workers:
            grouping.join(worker)
        elif change == "l" and worker in grouping.workers and len(grouping.workers) > 1:
            grouping.leave(worker)
        keys = [n % 13 if n % 3 else 5 for n in range(300)]
        chosen = grouping.choose_many(keys).tolist() if by_array else [grouping.choose(key) for key in keys]
        assert set(chosen) <= set(grouping.workers)


@pytest.mark.parametrize("workers", [2, 10, 50])
def test_few_keys_move_when_a_worker_comes_or_goes(workers: int) -> None:
    before, after = deal_slots(tuple(range(workers))), deal_slots(tuple(range(workers + 1)))
    chance = np.random.default_rng(1)
    hashes = [int(h) for h in chance.integers(0, 2**64, 4_000, dtype=np.uint64)]
    moved = sum(place_of(h, before).first != place_of(h, after).first for h in hashes)
    assert moved / len(hashes) <= 2.5 / (workers + 1)


@given(st.sets(st.integers(0, 500), min_size=1, max_size=40))
def test_slots_are_dealt_evenly_and_by_the_set_alone(workers: set[int]) -> None:
    slots = deal_slots(tuple(sorted(workers)))
    counts = np.bincount(slots, minlength=len(workers))
    assert counts.max() - counts.min() <= 1


def test_changes_of_workers_are_decided_alike_by_the_array() -> None:
    one_by_one, by_array = LevelledGrouping(4, b"s"), LevelledGrouping(4, b"s")
    stream = skewed(0.4, 3_000).tolist()
    for worker in (9, 7):
        assert by_array.choose_many(stream).tolist() == [one_by_one.choose(key) for key in stream]
        one_by_one.join(worker)
        by_array.join(worker)
        assert one_by_one.workers == by_array.workers
    one_by_one.leave(0)
    by_array.leave(0)
    chosen = by_array.choose_many(stream).tolist()
    assert chosen == [one_by_one.choose(key) for key in stream]
    assert set(chosen) == {1, 2, 3, 7, 9}


def test_many_hot_keys_are_decided_alike_by_the_array() -> None:
    one_by_one, by_array = LevelledGrouping(60, b"s"), LevelledGrouping(60, b"s")
    stream = zipfian(20, 12_000).tolist()
    for start in range(0, len(stream), 3_000):
        part = stream[start : start + 3_000]
        assert by_array.choose_many(part).tolist() == [one_by_one.choose(key) for key in part]
        one_by_one.leave(start // 1_000)
        by_array.leave(start // 1_000)


def test_heavy_records_count_for_what_they_cost() -> None:
    chance = np.random.default_rng(3)
    stream, weights = chance.integers(0, 300, 200_000), chance.pareto(2.5, 200_000) + 0.1
    weights[stream == 5] *= 60.0
    chosen = LevelledGrouping(10, b"s").choose_many(stream, weights=weights)
    work = np.bincount(chosen, weights, minlength=10)
    assert work.max() / work.mean() <= 1.1


def test_weights_are_decided_alike_by_the_array() -> None:
    stream, weights = skewed(0.5, 4_000).tolist(), [0.0, 1.0, 2.5, 40.0] * 1_000
    one_by_one, by_array = LevelledGrouping(6, b"s"), LevelledGrouping(6, b"s")
    expected = [one_by_one.choose(key, weight=weight) for key, weight in zip(stream, weights, strict=True)]
    assert by_array.choose_many(stream, weights=weights).tolist() == expected


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weight"):
        LevelledGrouping(2, b"s").choose("k", weight=weight)
    with pytest.raises(ValueError, match="weight"):
        LevelledGrouping(2, b"s").choose_many(["k"], weights=[weight])


def test_as_many_weights_as_keys_are_needed() -> None:
    with pytest.raises(ValueError, match="as many weights"):
        LevelledGrouping(2, b"s").choose_many(["k"], weights=[1.0, 2.0])


def test_who_has_more_waiting_gets_less() -> None:
    grouping = LevelledGrouping(4, b"s")
    stream = skewed(0.5, 20_000)
    for _ in range(5):
        grouping.choose_many(stream)
        grouping.observe_queues([400.0, 10.0, 10.0, 10.0])
    counts = np.bincount(grouping.choose_many(stream), minlength=4)
    assert counts[0] < 0.7 * counts.mean()


@pytest.mark.parametrize("queues", [[1.0], [1.0, -2.0], [1.0, float("nan")]])
def test_queue_lengths_that_make_no_sense_are_refused(queues: list[float]) -> None:
    with pytest.raises(ValueError, match="queue lengths"):
        LevelledGrouping(2, b"s").observe_queues(queues)


def test_no_worker_is_left_or_doubled() -> None:
    grouping = LevelledGrouping([4], b"s")
    with pytest.raises(ValueError, match="already"):
        grouping.join(4)
    with pytest.raises(ValueError, match="no worker 9"):
        grouping.leave(9)
    with pytest.raises(ValueError, match="at least one worker"):
        grouping.leave(4)
    assert grouping.choose("k") == 4


def test_memory_does_not_grow_with_the_keys() -> None:
    grouping = LevelledGrouping(10, b"s")
    grouping.choose_many(np.arange(10))
    small = grouping.nbytes
    grouping.choose_many(np.arange(300_000))
    assert grouping.nbytes == small < 200_000
    one_by_one = LevelledGrouping(10, b"s")
    for key in range(5_000):
        one_by_one.choose(key)
    assert len(one_by_one._heads.weight) <= one_by_one._heads.most


def test_time_that_runs_for_long_overflows_nothing() -> None:
    levels = Levels(2, Tuning())
    for _ in range(20_000):
        levels.load[0] += levels.grow
        levels.squares += levels.grow * levels.grow
        levels.rebalance()
    assert levels.grow <= 1e10
    assert all(abs(base) <= 4.0 for base in levels.base)
