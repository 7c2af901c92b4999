"""Whatever the cuts, every row is in exactly one task."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.bulk.splitting import (
    BlockRange,
    Cut,
    HashShare,
    Key,
    KeyRange,
    Modulus,
    NullKeys,
    RowRange,
    Span,
    SplitMethod,
    TableFacts,
    chosen_way,
    drawn,
    holds,
    parts_of,
    split,
    thinned,
)

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)
KEYS: st.SearchStrategy[list[Any]] = st.lists(NUMBERS, max_size=60) | st.lists(st.text(max_size=4), max_size=60)


def tasks_of(spans: list[Span], key: Key | None, place: int) -> int:
    return sum(holds(span, key, place) for span in spans)


def spans_for(draw: st.DrawFn, keys: list[Any]) -> list[Span]:
    kind = "int" if all(isinstance(key, int) for key in keys) else "text"
    ways = [SplitMethod.RANGES, SplitMethod.BLOCKS, SplitMethod.HASH, *([SplitMethod.MOD] if kind == "int" else [])]
    facts = TableFacts(
        draw(st.integers(0, 2_000)),
        kind,
        indexed=draw(st.booleans()),
        blocks=draw(st.integers(0, 80)),
        numbered=draw(st.booleans()),
    )
    sample = sorted(draw(st.lists(st.sampled_from(keys), max_size=30)) if keys else [])
    return split(facts, sample, draw(st.sampled_from(ways)), collect=False, task_rows=draw(st.integers(1, 300)))


@given(st.data())
def test_every_row_is_in_exactly_one_task_however_the_table_was_split(data: st.DataObject) -> None:
    keys = data.draw(KEYS)
    spans = data.draw(st.composite(spans_for)(keys))
    for place, key in enumerate(keys):
        assert tasks_of(spans, key, place) == 1
    assert tasks_of(spans, None, 0) == 1


@given(st.data())
def test_a_task_that_is_split_while_running_loses_and_doubles_nothing(data: st.DataObject) -> None:
    keys = data.draw(KEYS)
    spans = data.draw(st.composite(spans_for)(keys))
    for _ in range(data.draw(st.integers(1, 4))):
        chosen = data.draw(st.sampled_from(spans))
        met = sorted(key for place, key in enumerate(keys) if holds(chosen, key, place))
        spans.remove(chosen)
        spans += parts_of(chosen, met, data.draw(st.integers(2, 5)))
    for place, key in enumerate(keys):
        assert tasks_of(spans, key, place) == 1


def test_the_ranges_of_an_even_table_hold_about_as_many_rows_each() -> None:
    spans = parts_of(KeyRange(), list(range(0, 10_000, 10)), 10)
    sizes = [sum(holds(span, key) for key in range(10_000)) for span in spans]
    assert len(sizes) == 10
    assert max(sizes) <= 1_010


def test_a_key_with_half_of_the_rows_gets_a_task_of_its_own() -> None:
    keys = sorted([*range(500), *[77] * 500])
    spans = parts_of(KeyRange(), keys, 10)
    assert KeyRange(Cut(77), Cut(77, after=True)) in spans
    sizes = Counter(next(span for span in spans if holds(span, key)) for key in keys)
    assert sorted(sizes.values())[-2] <= 150


def test_a_range_of_one_heavy_key_cannot_be_divided() -> None:
    only = KeyRange(Cut(7), Cut(7, after=True))
    assert parts_of(only, [7] * 100) == [only]
    assert parts_of(Modulus(4, 3), [7] * 100) == [Modulus(4, 3)]


def test_the_articles_split_is_doubled_by_its_remainders() -> None:
    assert parts_of(Modulus(4, 3), [3, 7]) == [Modulus(8, 3), Modulus(8, 7)]
    assert parts_of(HashShare(4, 3), ["a", "b"]) == [HashShare(8, 3), HashShare(8, 7)]


def test_a_negative_key_has_a_remainder_too() -> None:
    assert holds(Modulus(16, 15), -1)


@pytest.mark.parametrize(
    ("facts", "collect", "way"),
    [
        (TableFacts(9, "int", indexed=True, blocks=3), True, SplitMethod.RANGES),
        (TableFacts(9, "int", blocks=3), True, SplitMethod.RANGES),
        (TableFacts(9, "int", blocks=3), False, SplitMethod.RANGES),
        (TableFacts(9, "int", blocks=3, unique=True), False, SplitMethod.BLOCKS),
        (TableFacts(9, "int", indexed=True, blocks=3, unique=True), False, SplitMethod.RANGES),
        (TableFacts(9, "text", ordered=False), True, SplitMethod.HASH),
        (TableFacts(9, "int", ordered=False), True, SplitMethod.MOD),
    ],
)
def test_the_way_follows_from_what_is_known(facts: TableFacts, collect: bool, way: SplitMethod) -> None:
    assert chosen_way(facts, collect) is way


def test_blocks_have_an_open_end_because_tables_grow() -> None:
    spans = split(TableFacts(1_000, "int", blocks=10), [], SplitMethod.BLOCKS, collect=False, task_rows=300)
    assert spans[-2:] == [BlockRange(9, None), NullKeys()]


def test_an_empty_table_has_a_task_all_the_same() -> None:
    assert split(TableFacts(0, "int"), [], SplitMethod.RANGES, collect=True, task_rows=10) == [
        KeyRange(),
        NullKeys(),
    ]
    numbered = TableFacts(0, "int", blocks=0, numbered=True, key_nullable=False)
    assert split(numbered, [], SplitMethod.BLOCKS, collect=False, task_rows=10) == [RowRange(0, None)]


def test_where_each_task_scans_the_whole_table_there_are_few() -> None:
    wide = TableFacts(10**9, "int")
    assert len(split(wide, list(range(1_000)), SplitMethod.RANGES, collect=True, task_rows=1_000)) <= 17
    assert len(split(wide, [], SplitMethod.MOD, collect=True, task_rows=1_000)) == 17


@given(st.integers(0, 2_000), st.integers(1, 50))
def test_keys_in_order_are_thinned_evenly_and_few_are_held(number: int, size: int) -> None:
    kept = thinned(range(number), size)
    assert min(number, size) <= len(kept) <= 2 * size
    steps = {int(high) - int(low) for low, high in pairwise(kept)}
    assert len(steps) <= 1
    assert not kept or number - int(kept[-1]) <= max(steps, default=1)


@given(st.integers(0, 500), st.integers(1, 50), st.integers())
def test_keys_in_any_order_are_drawn_each_at_most_once(number: int, size: int, seed: int) -> None:
    kept = drawn(range(number), size, Random(seed))
    assert len(kept) == len(set(kept)) == min(number, size)
    assert set(kept) <= set(range(number))


def test_each_key_is_as_likely_to_be_drawn_whatever_its_place() -> None:
    chance = Random(1)
    often = Counter(key for _ in range(2_000) for key in drawn(range(50), 10, chance))
    assert min(often.values()) > 320
    assert max(often.values()) < 480
