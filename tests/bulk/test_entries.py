"""Rows become the same bytes and the same digest, one by one or as arrays."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.bulk.entries import (
    MASK,
    DuplicateKey,
    PlainRows,
    bucket_of,
    decoded_key,
    decoded_values,
    encoded_key,
    encoded_values,
    rows_digest,
    width_of,
)
from levada.bulk.tasks import Throttle, checked_name
from levada.core.errors import StoreDamaged, UsageError
from levada.core.suggestions import near_names
from tests.needs import package

INTEGERS = st.integers(-(2**63), 2**63 - 1)
VALUES = st.integers(-300, 300) | INTEGERS
ROWS = st.lists(st.tuples(st.integers(-3, 3) | INTEGERS, VALUES), min_size=1, max_size=50)
ANYTHING = st.text() | st.floats(allow_nan=False) | st.booleans() | st.binary(max_size=20) | INTEGERS


@given(INTEGERS)
def test_an_integer_key_comes_back_and_sorts_as_it_does(key: int) -> None:
    data = encoded_key(key, "int")
    assert len(data) == 8
    assert decoded_key(data, "int") == key
    assert (data < encoded_key(0, "int")) == (key < 0)


@given(st.text())
def test_a_text_key_of_any_unicode_comes_back(key: str) -> None:
    assert decoded_key(encoded_key(key, "text"), "text") == key


@pytest.mark.parametrize("key", [2**63, -(2**63) - 1, "seven", ""])
def test_what_is_no_integer_key_is_said_to_be_none(key: Any) -> None:
    with pytest.raises(UsageError, match="is not a 64-bit integer key"):
        encoded_key(key, "int")


@given(st.lists(VALUES, min_size=1))
def test_integer_values_come_back_packed(values: list[int]) -> None:
    data = encoded_values(values, "int")
    assert decoded_values(data, "int") == values
    assert len(data) == 1 + width_of(min(values), max(values)) * len(values)


@given(st.lists(ANYTHING))
def test_other_values_come_back(values: list[Any]) -> None:
    assert decoded_values(encoded_values(values, "any"), "any") == values


@given(st.binary(max_size=40), st.sampled_from(["int", "any"]))
def test_damaged_values_are_an_error_and_nothing_worse(data: bytes, kind: str) -> None:
    with suppress(StoreDamaged):
        decoded_values(data, kind)


@given(ROWS, st.randoms())
def test_the_digest_does_not_depend_on_the_order(rows: list[tuple[int, int]], chance: random.Random) -> None:
    before = rows_digest(rows)
    chance.shuffle(rows)
    assert rows_digest(rows) == before


@given(ROWS, st.data())
def test_a_row_that_is_lost_doubled_or_changed_shows(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    key, value = rows[place]
    whole = rows_digest(rows)
    assert rows_digest(rows[:place] + rows[place + 1 :]) != whole
    assert rows_digest([*rows, rows[place]]) != whole
    assert rows_digest([*rows[:place], (key, value ^ 1), *rows[place + 1 :]]) != whole


def test_key_and_value_do_not_stand_for_each_other() -> None:
    assert rows_digest([(1, 2)]) != rows_digest([(2, 1)])
    assert rows_digest([("a", "b")]) != rows_digest([("b", "a")])


@given(ROWS)
def test_tasks_add_up(rows: list[tuple[int, int]]) -> None:
    half = len(rows) // 2
    assert (rows_digest(rows[:half]) + rows_digest(rows[half:])) & MASK == rows_digest(rows)


@given(ROWS)
def test_arrays_give_the_same_entries_and_digest_as_rows_one_by_one(rows: list[tuple[int, int]]) -> None:
    numpy = package("numpy")
    from levada.bulk.sources.packed import PackedRows

    keys, values = [key for key, _ in rows], [value for _, value in rows]
    plain = PlainRows(keys, values, ("int", "int"))
    packed = PackedRows(numpy.array(keys, numpy.int64), numpy.array(values, numpy.int64))
    assert packed.digest() == plain.digest()
    one, other = dict(plain.entries(True).pairs()), dict(packed.entries(True).pairs())
    assert {key: decoded_values(value, "int") for key, value in one.items()} == {
        key: decoded_values(value, "int") for key, value in other.items()
    }


@given(ROWS, st.sampled_from([1, 7, 512]))
def test_arrays_become_redis_strings_of_the_same_pairs(rows: list[tuple[int, int]], buckets: int) -> None:
    numpy = package("numpy")
    from levada.bulk.entries import bucket_tag
    from levada.bulk.sources.packed import PackedRows

    packed = PackedRows(*(numpy.array(column, numpy.int64) for column in zip(*rows, strict=True))).entries(True)
    got = {}
    for bucket, count, data in packed.strings(b"p:", buckets):
        words = unpacked(data)
        assert len(words) == 2 * count
        for key, value in zip(words[::2], words[1::2], strict=True):
            head = b"p:" + bucket_tag(bucket, buckets)
            assert key.startswith(head)
            assert bucket_of(key[len(head) :], "int", buckets) == bucket
            got[key[len(head) :]] = value
    assert got == dict(packed.pairs())


def unpacked(data: bytes) -> list[bytes]:
    words, at = [], 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        length = int(data[at + 1 : end])
        words.append(data[end + 2 : end + 2 + length])
        assert data[end + 2 + length : end + 4 + length] == b"\r\n"
        at = end + 4 + length
    return words


def test_a_second_row_of_a_key_is_refused_unless_gathered() -> None:
    numpy = package("numpy")
    from levada.bulk.sources.packed import PackedRows

    for rows in (
        PlainRows([1, 2, 1], [5, 6, 4], ("int", "int")),
        PackedRows(numpy.array([1, 2, 1]), numpy.array([5, 6, 4])),
    ):
        assert len(rows.entries(True)) == 2
        with pytest.raises(DuplicateKey, match="key '1' has several rows: collect them with --collect"):
            rows.entries(False)


def test_the_values_of_a_key_are_in_order_whatever_order_they_came_in() -> None:
    rows = PlainRows(["k", "k", "k"], ["b", 3, "a"], ("text", "any"))
    assert decoded_values(rows.entries(True).pairs()[0][1], "any") == [3, "a", "b"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../a", "a..b", "a:b", "a{b", "a*", "a b", "a\n", "é", "-a", "a.", "x" * 101]
)
def test_a_name_that_would_leave_its_prefix_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not a map name"):
        checked_name(name)


@pytest.mark.parametrize("name", ["a", "categories", "a.b-c_d", "2026-01", "x" * 100])
def test_a_plain_name_is_a_name(name: str) -> None:
    assert checked_name(name) == name


def test_a_wrong_name_is_answered_with_the_near_ones() -> None:
    assert near_names("msisdm", ["msisdn", "category_id"]) == "did you mean msisdn?"
    assert near_names("zzz", ["msisdn", "category_id"]) == "there is category_id, msisdn"
    assert near_names("zzz", []) == "there is none"


def test_a_throttle_rests_as_long_as_its_rows_must_last() -> None:
    throttle = Throttle(100.0)
    assert throttle.rest(50, now=10.0) == 0.5
    assert throttle.rest(50, now=10.2) == pytest.approx(0.8)
    assert throttle.rest(50, now=99.0) == 0.5
    assert Throttle(0.0).rest(10**9, now=0.0) == 0.0
