"""What holds for each grouping method."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import UsageError
from levada.grouping import (
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
from levada.grouping.choices import SpaceSaving
from levada.grouping.dynamic import Generations
from levada.grouping.thresholds import choices_needed, head_threshold, most_workers, threshold_percent


class _Hashes:
    first, second, keyed = MurmurHash(13), MurmurHash(17), KeyedHash(b"secret")


STREAMS = st.lists(st.integers(0, 30), min_size=1, max_size=300)


def fresh(name: str, workers: int) -> Grouping:
    return grouping_named(name, workers, _Hashes())


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
