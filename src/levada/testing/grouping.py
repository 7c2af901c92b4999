"""Contract suite of the grouping: which worker gets a record of a skewed stream."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.grouping import Grouping, Key
from levada.testing.common import properties

_property = properties()
_streams = st.lists(st.integers(0, 30), min_size=1, max_size=300)
_keys = st.one_of(st.binary(), st.text(), st.integers(-(2**63), 2**63 - 1))


class GroupingContract:
    """A record goes to a worker that exists, and decisions over arrays are those of single records.

    ```python
    class TestMyGrouping(GroupingContract):
        def make(self, workers: int) -> Grouping:
            return MyGrouping(workers)
    ```
    """

    def make(self, workers: int) -> Grouping:
        """The grouping of a new sender over workers 0 to `workers - 1`."""
        raise NotImplementedError

    @_property
    @given(_streams, st.integers(1, 12))
    def test_every_record_goes_to_a_worker_that_exists(self, stream: list[int], workers: int) -> None:
        grouping = self.make(workers)
        assert all(0 <= grouping.choose(key, float(now)) < workers for now, key in enumerate(stream))

    @_property
    @given(st.lists(_keys, max_size=20), st.integers(1, 12))
    def test_any_text_bytes_or_number_is_a_key(self, keys: list[Key], workers: int) -> None:
        grouping = self.make(workers)
        assert all(0 <= grouping.choose(key, 0.0) < workers for key in keys)

    @_property
    @given(_streams, st.integers(1, 12))
    def test_two_new_senders_decide_alike(self, stream: list[int], workers: int) -> None:
        one, other = self.make(workers), self.make(workers)
        assert [one.choose(key, 1.0) for key in stream] == [other.choose(key, 1.0) for key in stream]

    @_property
    @given(_streams, st.integers(1, 12), st.integers(1, 50))
    def test_arrays_are_decided_as_single_records(self, stream: list[int], workers: int, size: int) -> None:
        one_by_one, by_array = self.make(workers), self.make(workers)
        for start in range(0, len(stream), size):
            part, now = stream[start : start + size], 7.0 * start
            expected = [one_by_one.choose(key, now) for key in part]
            assert by_array.choose_many(np.array(part, np.int64), now).tolist() == expected

    @pytest.mark.parametrize("skew", [0.0, 0.7])
    def test_long_streams_are_decided_alike_as_arrays(self, skew: float) -> None:
        chance = np.random.default_rng(7)
        stream = np.where(chance.random(20_000) < skew, 3, chance.zipf(1.3, 20_000) % 3_000).astype(np.int64)
        one_by_one, by_array = self.make(7), self.make(7)
        for start in range(0, len(stream), 1_000):
            part, now = stream[start : start + 1_000], start / 100
            assert by_array.choose_many(part, now).tolist() == [one_by_one.choose(key, now) for key in part.tolist()]

    def test_single_records_may_follow_an_array(self) -> None:
        one_by_one, mixed = self.make(5), self.make(5)
        stream = [n * n % 17 for n in range(600)]
        expected = [one_by_one.choose(key, 1.0) for key in stream]
        found = mixed.choose_many(stream[:300], 1.0).tolist() + [mixed.choose(key, 1.0) for key in stream[300:]]
        assert found == expected

    def test_an_empty_array_is_decided_at_once(self) -> None:
        assert self.make(3).choose_many([], 0.0).tolist() == []

    def test_a_stream_needs_at_least_one_worker(self) -> None:
        with pytest.raises(ValueError, match="at least one worker"):
            self.make(0)
