"""Counting in two phases is exact, whatever happens to the workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from levada.grouping import METHODS, Grouping, Hasher, KeyedHash, MurmurHash, grouping_named
from levada.grouping.counting import Flush, Merging, TwoPhaseCount
from levada.grouping.routing import Routing
from tests.needs import package


class Hashes:
    first: Hasher = MurmurHash(13)
    second: Hasher = MurmurHash(17)
    keyed: Hasher = KeyedHash(b"test")


def makes(method: str) -> Callable[[int], Grouping]:
    return lambda workers: grouping_named(method, workers, Hashes())


def counting(method: str = "levelled", workers: int = 3, aggregators: int = 2) -> TwoPhaseCount[str]:
    return TwoPhaseCount(Routing(makes(method), range(workers)), aggregators, part=len)


def send(count: TwoPhaseCount[str], words: list[str]) -> list[int]:
    return count.send(words, [(word, 1) for word in words])


class Life(RuleBasedStateMachine):
    """A log, workers that come, go and die, and a network that repeats and delays."""

    method = "levelled"

    @initialize(log=st.lists(st.tuples(st.sampled_from("aaaaaabcdefgh"), st.integers(-3, 3)), max_size=60))
    def begin(self, log: list[tuple[str, int]]) -> None:
        self.log = log
        self.count = counting(self.method)
        self.names = 3
        self.position = 0  # committed
        self.committed: Counter[str] = Counter()
        self.heard: list[Flush[str]] = []

    @rule(n=st.integers(1, 20))
    def send(self, n: int) -> None:
        start = self.position + self.count.sent
        records = self.log[start : start + n]
        if self.count.workers:
            self.count.send([key for key, _ in records], records)

    @rule()
    def join(self) -> None:
        self.count.join(self.names)
        self.names += 1

    @rule(which=st.integers(0, 99))
    def leave(self, which: int) -> None:
        if self.count.workers:
            self.heard.append(self.count.leave(self.count.workers[which % len(self.count.workers)]))

    @rule(which=st.integers(0, 99))
    def die(self, which: int) -> None:
        if self.count.workers:
            self.count.die(self.count.workers[which % len(self.count.workers)])

    @rule(which=st.integers(0, 99))
    def a_flush_comes_again_or_late(self, which: int) -> None:
        if self.heard:
            assert not self.count.take(self.heard[which % len(self.heard)])

    @rule(dies=st.none() | st.integers(0, 99), twice=st.booleans(), backwards=st.booleans())
    def barrier(self, dies: int | None, twice: bool, backwards: bool) -> None:
        end = self.position + self.count.sent
        flushes = self.count.flushes()
        for flush in flushes[:: -1 if backwards else 1]:
            assert self.count.take(flush)
            assert not (twice and self.count.take(flush))
        self.heard += flushes
        if dies is not None and self.count.workers:  # it has handed over: no harm is done
            self.count.die(self.count.workers[dies % len(self.count.workers)])
        self.committed.update(self.count.commit())
        self.position = end

    @rule(lost=st.integers(0, 99))
    def a_worker_dies_while_the_others_flush(self, lost: int) -> None:
        flushes = self.count.flushes()
        if flushes:
            dead = flushes.pop(lost % len(flushes))
            for flush in flushes:
                self.count.take(flush)
            self.count.die(dead.worker)
            self.heard += [*flushes, dead]
            assert self.count.sent == 0

    @invariant()
    def what_is_committed_is_what_a_dictionary_would_say(self) -> None:
        expected: Counter[str] = Counter()
        for key, amount in self.log[: self.position]:
            expected[key] += amount
        assert {k: n for k, n in self.committed.items() if n} == {k: n for k, n in expected.items() if n}


@pytest.mark.parametrize("method", METHODS)
def test_counts_are_those_of_a_dictionary_whoever_comes_goes_and_dies(method: str) -> None:
    life = type("Life", (Life,), {"method": method})
    run_state_machine_as_test(life, settings=settings(max_examples=25, stateful_step_count=20, deadline=None))


@given(words=st.lists(st.text(max_size=3)), workers=st.integers(1, 9), aggregators=st.integers(1, 4))
def test_one_round_counts_everything_once(words: list[str], workers: int, aggregators: int) -> None:
    count = counting("levelled", workers, aggregators)
    assert set(send(count, words)) <= set(range(workers))
    assert count.barrier() == Counter(words)
    assert count.barrier() == {}


def test_a_late_flush_of_a_round_that_was_given_up_is_not_taken_for_the_new_try() -> None:
    count = counting(workers=2)
    send(count, ["a"] * 10)
    given_up = count.flushes()
    count.die(0)
    send(count, ["a"] * 10)
    assert [count.take(flush) for flush in given_up] == [False, False]
    assert count.barrier() == {"a": 10}


def test_a_worker_that_died_after_handing_over_costs_nothing() -> None:
    count = counting(workers=2)
    send(count, ["a", "b", "c"])
    for flush in count.flushes():
        count.take(flush)
    count.die(1)
    assert count.commit() == {"a": 1, "b": 1, "c": 1}


def test_the_last_worker_may_die_and_another_take_over() -> None:
    count = counting(workers=1)
    send(count, ["a"])
    count.die(0)
    with pytest.raises(ValueError, match="no worker left"):
        send(count, ["a"])
    count.join(1)
    assert send(count, ["a"]) == [1]
    assert count.barrier() == {"a": 1}


def test_nothing_is_sent_past_a_barrier_and_nothing_committed_before_all_flushed() -> None:
    count = counting(workers=2)
    send(count, ["a", "b", "c", "d"])
    first, _ = count.flushes()
    count.take(first)
    with pytest.raises(ValueError, match="barrier"):
        send(count, ["a"])
    with pytest.raises(ValueError, match="not handed over"):
        count.commit()


def test_a_name_is_not_used_twice_in_a_round() -> None:
    count = counting(workers=2)
    send(count, ["a", "b"])
    count.leave(0)
    with pytest.raises(ValueError, match="another name"):
        count.join(0)
    count.barrier()
    count.join(0)
    assert count.workers == (1, 0) or count.workers == (0, 1)


def test_the_same_worker_cannot_join_twice_nor_a_stranger_leave() -> None:
    routing = Routing(makes("key"), [0, 1])
    with pytest.raises(ValueError, match="already"):
        routing.join(1)
    with pytest.raises(ValueError, match="no worker 7"):
        routing.leave(7)


def test_batch_and_single_records_are_routed_alike() -> None:
    package("numba")
    for keys in ([n * n % 97 - 48 for n in range(500)], [chr(97 + n * n % 23) for n in range(500)], []):
        singly = Routing(makes("levelled"), [4, 5, 6]).route(keys)
        assert Routing(makes("levelled"), [4, 5, 6]).route(keys, batch=True) == singly
        assert set(singly) == ({4, 5, 6} if keys else set())


def test_there_must_be_an_aggregator() -> None:
    with pytest.raises(ValueError, match="aggregator"):
        Merging(0)
