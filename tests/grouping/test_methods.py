"""Does each method keep its law?"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.errors import UsageError
from levada.grouping import (
    METHODS,
    AllGrouping,
    DirectGrouping,
    DynamicKeyGrouping,
    GlobalGrouping,
    Grouping,
    Key,
    KeyedHash,
    KeyGrouping,
    LocalOrShuffleGrouping,
    MurmurHash,
    PartialKeyGrouping,
    ShuffleGrouping,
    grouping_named,
)
from levada.grouping.choice_count import choices_needed, head_threshold
from levada.grouping.generations import Generations
from levada.grouping.space_saving import SpaceSaving
from levada.grouping.thresholds import most_workers, threshold_percent


class _Hashes:
    first, second, keyed = MurmurHash(13), MurmurHash(17), KeyedHash(b"secret")


STREAMS = st.lists(st.integers(0, 30), min_size=1, max_size=300)


def fresh(name: str, workers: int) -> Grouping:
    return grouping_named(name, workers, _Hashes())


@given(STREAMS, st.integers(1, 12), st.sampled_from(METHODS))
def test_every_method_names_a_worker_that_is_there(stream: list[int], workers: int, name: str) -> None:
    grouping = fresh(name, workers)
    assert all(0 <= grouping.choose(key, float(now)) < workers for now, key in enumerate(stream))


@given(STREAMS, st.integers(1, 12), st.sampled_from(METHODS), st.integers(1, 50))
@settings(deadline=None)
def test_by_the_array_is_as_one_by_one(stream: list[int], workers: int, name: str, size: int) -> None:
    one_by_one, by_array = fresh(name, workers), fresh(name, workers)
    for start in range(0, len(stream), size):
        part, now = stream[start : start + size], 7.0 * start
        expected = [one_by_one.choose(key, now) for key in part]
        assert by_array.choose_many(np.array(part, np.int64), now).tolist() == expected


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("skew", [0.0, 0.7])
def test_long_streams_are_decided_alike_by_the_array(name: str, skew: float) -> None:
    chance = np.random.default_rng(7)
    stream = np.where(chance.random(20_000) < skew, 3, chance.zipf(1.3, 20_000) % 3_000).astype(np.int64)
    one_by_one, by_array = fresh(name, 7), fresh(name, 7)
    for start in range(0, len(stream), 1_000):
        part, now = stream[start : start + 1_000], start / 100
        assert by_array.choose_many(part, now).tolist() == [one_by_one.choose(key, now) for key in part.tolist()]


@pytest.mark.parametrize("name", METHODS)
def test_single_records_may_follow_an_array(name: str) -> None:
    one_by_one, mixed = fresh(name, 5), fresh(name, 5)
    stream = [n * n % 17 for n in range(600)]
    expected = [one_by_one.choose(key, 1.0) for key in stream]
    found = mixed.choose_many(stream[:300], 1.0).tolist() + [mixed.choose(key, 1.0) for key in stream[300:]]
    assert found == expected


@pytest.mark.parametrize("name", METHODS)
def test_no_stream_is_shared_by_no_worker(name: str) -> None:
    with pytest.raises(ValueError, match="at least one worker"):
        fresh(name, 0)


@pytest.mark.parametrize("name", METHODS)
def test_an_empty_array_is_decided_at_once(name: str) -> None:
    assert fresh(name, 3).choose_many([], 0.0).tolist() == []


def test_a_wrong_name_lists_all() -> None:
    with pytest.raises(UsageError, match="levelled"):
        fresh("fair", 3)


@given(st.one_of(st.binary(), st.text(), st.integers()), st.integers(1, 100))
def test_key_grouping_is_a_function(key: Key, workers: int) -> None:
    assert len({KeyGrouping(workers).choose(key) for _ in range(3)}) == 1


@given(STREAMS, st.integers(1, 12))
def test_partial_uses_at_most_two_workers_per_key(stream: list[int], workers: int) -> None:
    grouping, used = PartialKeyGrouping(workers), defaultdict(set)
    for key in stream:
        used[key].add(grouping.choose(key))
    assert max(map(len, used.values())) <= 2


@given(STREAMS, st.integers(1, 12))
def test_shuffle_is_even_within_one(stream: list[int], workers: int) -> None:
    grouping = ShuffleGrouping(workers)
    counts = np.bincount([grouping.choose(key) for key in stream], minlength=workers)
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
    ("workers", "threshold", "most"),
    [(5, 24.47, 5), (10, 13.16, 8), (20, 7.24, 14), (50, 3.41, 30), (100, 2.0, 51)],
)
def test_table_1_of_the_thesis_comes_out_again(workers: int, threshold: float, most: int) -> None:
    assert threshold_percent(workers) == pytest.approx(threshold, abs=0.005)
    assert most_workers(workers) == most


def test_a_hot_key_gets_more_workers_and_gives_them_back() -> None:
    grouping = DynamicKeyGrouping(10)
    for second in range(400):
        grouping.choose_many(["hot"] * 90 + [f"k{n}" for n in range(10)], float(second))
    widest = grouping.width_of("hot")
    assert 4 <= widest <= 8
    for second in range(400, 3_000):
        grouping.choose_many([f"k{n}" for n in range(99)] + ["hot"], float(second))
    assert grouping.width_of("hot") < widest


@given(st.lists(st.integers(0, 40), max_size=300), st.integers(1, 40))
def test_old_and_middle_are_hard_limits(stream: list[int], capacity: int) -> None:
    space = Generations(capacity)
    for place, key in enumerate(stream):
        space.count(key)
        if place % 10 == 9:
            space.sweep_young()
            space.sweep_middle()
            assert len(space.young) <= space.young_size + 1
        assert len(space.old) <= space.old_size
        assert len(space.middle) <= space.middle_size


@given(st.lists(st.integers(0, 30), min_size=1, max_size=300), st.integers(1, 20))
def test_space_saving_never_counts_too_little_nor_much_too_much(stream: list[int], counters: int) -> None:
    sketch = SpaceSaving(counters)
    for key in stream:
        sketch.offer(key)
    assert len(sketch.count) <= counters
    assert sum(sketch.count.values()) == len(stream)
    for key, count in sketch.count.items():
        assert stream.count(key) <= count <= stream.count(key) + len(stream) / counters


def test_the_head_gets_as_many_choices_as_its_first_key_is_worth() -> None:
    assert choices_needed([], 10) == 2
    assert choices_needed([0.5], 1) == 1
    assert choices_needed([0.02], 10) == 2
    assert choices_needed([0.9], 10) == 10
    assert 30 <= choices_needed([0.3], 100) < 100
    assert head_threshold(10) == 0.02


def test_storms_other_words() -> None:
    assert list(AllGrouping(3).choose_all("k")) == [0, 1, 2]
    assert GlobalGrouping([7, 4]).choose("k") == 4
    assert GlobalGrouping(3).choose_many(["a", "b"]).tolist() == [0, 0]
    direct = DirectGrouping(4, lambda key: len(str(key)))
    assert direct.choose_many(["a", "bb"]).tolist() == [1, 2]
    with pytest.raises(ValueError, match="no worker 5"):
        direct.choose("fives")
    assert LocalOrShuffleGrouping(4, [2, 3]).choose_many(["a"] * 4).tolist() == [2, 3, 2, 3]
    assert [LocalOrShuffleGrouping(4).choose("a")] == [0]
    with pytest.raises(ValueError, match="not all among"):
        LocalOrShuffleGrouping(2, [5])
