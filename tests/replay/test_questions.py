"""The SQL of a query finds what its filter matches, and never less."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from levada.replay.questions import QuestionWriter, stored
from levada.sharding.pruning import allowed_by
from levada.sharding.queries import AllOf, AnyOf, Condition, Filter, NoneOf, QueryEntry, conditions
from levada.sharding.values import MISSING, dig, encoded

COLUMNS = {"a": "f0", "b": "f1"}
UNKNOWN = "other:odd"
values = st.one_of(st.integers(-3, 3), st.sampled_from(["", "a", "ab", "b", "x" * 250, "x" * 250 + "y"]), st.none())
documents = st.lists(st.dictionaries(st.sampled_from(["a", "b"]), values), max_size=6)
known = st.one_of(
    st.builds(lambda field, value: Condition(field, "eq", (value,)), st.sampled_from("ab"), values),
    st.builds(
        lambda field, many: Condition(field, "in", tuple(many)), st.sampled_from("ab"), st.lists(values, min_size=1)
    ),
    st.builds(lambda field, low: Condition(field, "range", (low, None)), st.sampled_from("ab"), st.integers(-3, 3)),
    st.builds(lambda field, is_: Condition(field, "exists", (is_,)), st.sampled_from("ab"), st.booleans()),
)
unknown = st.builds(lambda field: Condition(field, UNKNOWN), st.sampled_from("ab"))


def filters(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Filter]:
    return st.recursive(
        leaves,
        lambda below: st.builds(
            lambda kind, of: kind(tuple(of)),
            st.sampled_from([AllOf, AnyOf, NoneOf]),
            st.lists(below, min_size=1, max_size=3),
        ),
        max_leaves=6,
    )


def holds(asked: Filter, document: dict[str, Any], odd: bool) -> bool:
    """`odd`: what a condition comes to that nobody understands."""
    if isinstance(asked, AllOf):
        return all(holds(each, document, odd) for each in asked.of)
    if isinstance(asked, AnyOf):
        return any(holds(each, document, odd) for each in asked.of)
    if isinstance(asked, NoneOf):
        return not any(holds(each, document, odd) for each in asked.of)
    value = dig(document, asked.field)
    if asked.operator == UNKNOWN:
        return odd
    if asked.operator == "exists":
        return (value is not MISSING) is asked.values[0]
    allowed = allowed_by(asked)
    assert allowed is not None
    if allowed.values is not None:
        return encoded(value) in {encoded(each) for each in allowed.values}
    return allowed.low <= encoded(value) < allowed.high


def found(asked: Filter, kept: list[dict[str, Any]]) -> set[int]:
    question = QuestionWriter(COLUMNS, 100).write(QueryEntry("c", "find", filter=asked))
    with sqlite3.connect(":memory:") as database:  # it orders bytes as PostgreSQL does
        database.execute("CREATE TABLE t (number INTEGER, f0 BLOB, f1 BLOB, document BLOB)")
        rows = [(n, stored(dig(each, "a")), stored(dig(each, "b")), b"") for n, each in enumerate(kept)]
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        sql = re.sub(r"\$(\d+)", r"?\1", question.sql.replace("{table}", "t"))
        answer = {number for number, _ in database.execute(sql, question.parameters)}
    database.close()
    return answer


@settings(max_examples=150, deadline=None)
@given(filters(known), documents)
def test_a_filter_finds_exactly_what_it_asks_for(asked: Filter, kept: list[dict[str, Any]]) -> None:
    assert found(asked, kept) == {number for number, each in enumerate(kept) if holds(asked, each, odd=True)}


@settings(max_examples=150, deadline=None)
@given(filters(st.one_of(known, unknown)), documents)
def test_what_is_not_understood_hides_no_document(asked: Filter, kept: list[dict[str, Any]]) -> None:
    answer = found(asked, kept)
    for odd in (True, False):
        assert answer >= {number for number, each in enumerate(kept) if holds(asked, each, odd)}
    writer = QuestionWriter(COLUMNS, 1)
    writer.write(QueryEntry("c", "find", filter=asked))
    assert writer.loosened == any(each.operator == UNKNOWN for each in conditions(asked))
