"""Statistics of partial logs add up, and those of a sample describe its fields."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.sharding.queries import AllOf, AnyOf, Condition, NoneOf, QueryEntry, Sort
from levada.sharding.sample import Sample, dependence, facts_of, names_in
from levada.sharding.workload import LogStatistics
from tests.sharding.test_placement import FILTERS

QUERIES = st.builds(
    QueryEntry,
    st.just("c"),
    st.sampled_from(["find", "insert", "update", "findandmodify", "mystery"]),
    filter=st.none() | FILTERS,
    sort=st.lists(st.builds(Sort, st.sampled_from("ab")), max_size=2).map(tuple),
    changes=st.lists(st.sampled_from(["a", "b", "*"]), max_size=2).map(tuple),
    inserted=st.integers(0, 3),
    times=st.integers(1, 4),
)


@given(st.lists(QUERIES, max_size=12), st.integers(0, 12))
def test_the_counts_of_two_halves_are_those_of_the_whole(queries: list[QueryEntry], cut: int) -> None:
    first, second = LogStatistics.of(queries[:cut]), LogStatistics.of(queries[cut:])
    first.merge(second)
    assert first == LogStatistics.of(queries)


def test_a_filter_is_walked_to_its_deepest_level_and_each_field_counted_once() -> None:
    deep = AllOf(
        (
            Condition("status", "eq", (1,)),
            AnyOf((Condition("a.b", "in", (1, 2), 2), NoneOf((Condition("price", "range", (1, None)),)))),
            Condition("status", "range", (0, 9)),
        )
    )
    found = LogStatistics.of([QueryEntry("c", "find", filter=deep, sort=(Sort("date", False),), times=3)])
    assert {field: use.asked for field, use in found.fields.items()} == {
        "status": 3,
        "a.b": 3,
        "price": 3,
        "date": 0,
    }
    assert found.fields["date"].sorted == 3
    assert found.combinations == {("a.b", "price", "status"): 3}
    assert found.fields["status"].operators == {"eq": 3, "range": 3}
    assert found.share("a.b") == 1.0


def test_writes_tell_which_fields_change_and_inserts_ask_for_nothing() -> None:
    by_id = Condition("_id", "eq", (1,))
    found = LogStatistics.of(
        [
            QueryEntry("c", "update", filter=by_id, changes=("status", "price")),
            QueryEntry("c", "insert", inserted=5, changes=("status",)),
        ]
    )
    assert found.changed == {"status": 1, "price": 1}
    assert (found.queries, found.inserted, found.updates) == (1, 5, 1)


def sample_of(field: str, values: list[Any]) -> Sample:
    return Sample([{field: value} for value in values], [field])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (list(range(50)), 1.0),
        (list(range(50))[::-1], -1.0),
        ([1] * 50, 0.0),
        ([1, 2] * 25, 0.02),
        (["a", "b"], 1.0),
    ],
)
def test_what_grows_with_the_inserts_is_seen(values: list[Any], expected: float) -> None:
    assert facts_of(sample_of("x", values), "x").monotonicity == pytest.approx(expected, abs=0.02)


def test_numbers_of_values_shares_and_kinds_are_exact() -> None:
    facts = facts_of(sample_of("x", [1, 1.0, "1", None, True, [1], {"a": 1}]), "x")
    assert facts.distinct == 6
    assert facts.top_value == 1
    assert facts.top_share == pytest.approx(2 / 7)
    assert facts.kinds == {"array": 1, "document": 1, "null": 1, "number": 2, "text": 1, "truth": 1}
    assert facts.mixed
    assert facts.array


def test_values_that_a_sample_has_not_met_are_reckoned_with() -> None:
    assert facts_of(sample_of("x", [1, 1, 2, 2, 3, 3]), "x").estimated == 3
    drawn = [number * number % 1_009 * 7 % 5_000 for number in range(1_000)]
    assert facts_of(sample_of("x", drawn), "x").estimated >= len(set(drawn))
    assert facts_of(sample_of("x", list(range(100))), "x").estimated == 100 + 100 * 99 // 2


def test_a_field_that_decides_another_tells_all_of_it() -> None:
    documents = [{"city": city, "region": city % 5, "other": number % 2} for number in range(40) for city in range(20)]
    sample = Sample(documents, ["city", "region", "other"])
    assert dependence(sample, "city", "region") == pytest.approx(1.0)
    assert dependence(sample, "region", "city") == pytest.approx(0.537, abs=0.01)
    assert dependence(sample, "other", "city") == pytest.approx(0.0, abs=0.01)


def test_fields_are_dug_out_of_documents_and_named() -> None:
    documents: list[dict[str, Any]] = [{"a": {"b": 1}, "c": [1]}, {"a": {}}]
    sample = Sample(documents, ["a.b"], "_id")
    assert sample.document(0) == {"a.b": 1}
    assert sample.document(1) == {}
    assert sample.id_field == ""
    assert list(names_in(documents[0])) == ["a.b", "c"]


def test_a_thinned_sample_keeps_its_order_and_ends() -> None:
    sample = Sample([{"x": number} for number in range(100)], ["x"], "x")
    fewer = sample.thinned(30)
    assert fewer.count == 25
    assert [fewer.document(number)["x"] for number in (0, 1, 24)] == [0, 4, 96]
    assert sample.thinned(100) is sample
