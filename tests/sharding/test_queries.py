"""A query log is read as far as it can be, and values are kept, hashed or dropped as requested."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.sharding.queries import (
    LONGEST_LINE,
    AllOf,
    AnyOf,
    Condition,
    Filter,
    LogReading,
    NoneOf,
    QueryEntry,
    Sort,
    ValueRule,
    Values,
    conditions,
    query_line,
    read_queries,
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
)
leaves = st.builds(
    Condition,
    st.text(max_size=10),
    st.sampled_from(["eq", "in", "range", "prefix", "exists", "regex", "text", "other:near"]),
    st.lists(scalars, max_size=4).map(tuple),
    st.integers(1, 100),
)
filters: st.SearchStrategy[Filter] = st.recursive(
    leaves,
    lambda inside: st.builds(
        lambda kind, parts: kind(tuple(parts)),
        st.sampled_from([AllOf, AnyOf, NoneOf]),
        st.lists(inside, max_size=4),
    ),
    max_leaves=12,
)
queries = st.builds(
    QueryEntry,
    st.sampled_from(["ads.items", "ads.users"]),
    st.sampled_from(["find", "update", "insert"]),
    at=st.none() | st.floats(0, 2e9),
    filter=st.none() | filters,
    sort=st.lists(st.builds(Sort, st.text(max_size=5), st.booleans()), max_size=3).map(tuple),
    limit=st.none() | st.integers(0, 1000),
    changes=st.lists(st.text(max_size=5), max_size=3).map(tuple),
    times=st.integers(1, 1000),
)


@given(queries)
def test_what_is_written_is_read_again(query: QueryEntry) -> None:
    line = query_line(query)
    assert line.count(b"\n") == 1
    assert list(read_queries([line])) == [query]


@given(st.lists(queries, max_size=5), st.data())
def test_a_log_cut_anywhere_loses_one_line_at_most(asked: list[QueryEntry], data: st.DataObject) -> None:
    whole = b"".join(map(query_line, asked))
    cut = data.draw(st.integers(0, len(whole)))
    reading = LogReading()
    found = list(read_queries(whole[:cut].splitlines(keepends=True), reading))
    assert found == asked[: len(found)]
    assert len(found) + reading.damaged in (whole[:cut].count(b"\n"), whole[:cut].count(b"\n") + 1)


@given(st.lists(st.binary(max_size=200)))
def test_no_line_is_ever_fatal(lines: list[bytes]) -> None:
    reading = LogReading()
    list(read_queries(lines, reading))
    assert reading.taken + reading.damaged == reading.lines


@pytest.mark.parametrize(
    "line",
    [
        b'{"collection":"a.b","op":"find","filter":{"node":"and","of":[' * 2000,
        b'{"collection":"a.b","op":"find","filter":' + b'{"node":"and","of":[' * 5000 + b"]}" * 5000 + b"}",
        b'{"collection": 5, "op": "find"}',
        b'{"collection":"a.b","op":"find","filter":{"node":"xor","of":[]}}',
        b"[1, 2]",
        b"x" * (LONGEST_LINE + 1),
    ],
    ids=["half", "deep", "type", "node", "array", "long"],
)
def test_a_line_that_is_no_query_is_counted(line: bytes) -> None:
    reading = LogReading()
    good = query_line(QueryEntry("a.b", "find"))
    assert len(list(read_queries([good, line, good], reading))) == 2
    assert (reading.lines, reading.damaged, reading.partial) == (3, 1, True)


def test_other_collections_and_unknown_operators_are_counted() -> None:
    strange = QueryEntry(
        "ads.items",
        "find",
        filter=AllOf((Condition("a", "other:near"), Condition("b", "eq", (1,)), Condition("c", "$weird", (1,)))),
    )
    lines = [query_line(strange), query_line(QueryEntry("ads.users", "find", times=7))]
    reading = LogReading()
    assert list(read_queries(lines, reading, "ads.items")) == [strange]
    assert (reading.elsewhere, reading.unknown) == (1, {"near": 1, "$weird": 1})
    assert reading.collections == {"ads.items": 1, "ads.users": 7}


@given(filters)
def test_dropping_values_leaves_the_tree_and_no_value(asked: Filter) -> None:
    kept = ValueRule(Values.DROP).apply(QueryEntry("a.b", "find", filter=asked))
    before, after = list(conditions(asked)), list(conditions(kept.filter))
    assert [(each.field, each.operator, each.size) for each in before] == [
        (each.field, each.operator, each.size) for each in after
    ]
    assert all(not each.values for each in after if each.operator != "exists")


@given(scalars, scalars)
def test_hashes_are_equal_where_values_are_and_only_there(one: object, other: object) -> None:
    rule = ValueRule(Values.HASH, b"key")
    alike = type(one) is type(other) and one == other
    numbers = isinstance(one, (int, float)) and isinstance(other, (int, float)) and one == other
    same = alike or (numbers and not isinstance(one, bool) and not isinstance(other, bool))
    assert (rule.hashed(one) == rule.hashed(other)) is same  # type: ignore[arg-type]
    assert rule.hashed(one) != ValueRule(Values.HASH, b"another").hashed(one)  # type: ignore[arg-type]


def test_a_hash_keeps_no_order_so_ranges_lose_their_values() -> None:
    asked = AllOf((Condition("a", "eq", ("secret",)), Condition("b", "range", (1, 5))))
    kept = ValueRule(Values.HASH, b"key").apply(QueryEntry("a.b", "find", filter=asked))
    first, second = conditions(kept.filter)
    assert str(first.values[0]).startswith("#")
    assert second.values == ()
    assert b"secret" not in query_line(kept)


def test_a_text_longer_than_a_key_may_be_is_hashed_in_any_case() -> None:
    long = "x" * 1000
    kept = ValueRule().apply(
        QueryEntry("a.b", "find", filter=AllOf((Condition("a", "eq", (long,)), Condition("b", "range", (long, "y")))))
    )
    first, second = conditions(kept.filter)
    assert len(str(first.values[0])) == 17
    assert second.values == (None, "y")


def test_a_line_is_clean_json() -> None:
    query = QueryEntry("ads.items", "find", filter=Condition("city", "eq", ("Izmir",)), sort=(Sort("at", False),))
    assert msgspec.json.decode(query_line(query)) == {
        "collection": "ads.items",
        "op": "find",
        "filter": {"node": "is", "field": "city", "operator": "eq", "values": ["Izmir"]},
        "sort": [["at", False]],
    }
