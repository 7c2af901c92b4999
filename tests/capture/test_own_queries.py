"""A search of Levada is recorded as a query like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.capture.query_log import PAGES, SearchCapture, query_of_page, query_of_search
from levada.core.errors import LevadaError
from levada.core.search_records import Query
from levada.sharding.queries import AllOf, AnyOf, Condition, NoneOf, QueryEntry
from tests.capture.mongodb_traffic import logged


def test_words_filters_and_minus_become_conditions() -> None:
    query = Query('"sea bus" OR vapur site:Example.org lang:tr since:1d -bridge', limit=5, offset=10, now=86_400.0)
    assert query_of_search(query) == QueryEntry(
        PAGES,
        "find",
        at=86_400.0,
        source="search",
        filter=AllOf(
            (
                AnyOf((Condition("text", "text", ("sea bus",)), Condition("text", "text", ("vapur",)))),
                Condition("site", "eq", ("example.org",)),
                Condition("language", "eq", ("tr",)),
                Condition("changed_at", "range", (0.0, None)),
                NoneOf((Condition("text", "text", ("bridge",)),)),
            )
        ),
        limit=15,
    )


def test_parentheses_and_other_fields_become_conditions_too() -> None:
    entry = query_of_search(Query("(ferry until:1d) OR -(title:pier url:a/b)", now=2 * 86_400.0))
    assert entry.filter == AnyOf(
        (
            AllOf((Condition("text", "text", ("ferry",)), Condition("changed_at", "range", (None, 86_400.0)))),
            NoneOf((AllOf((Condition("title", "text", ("pier",)), Condition("url", "text", ("a b",)))),)),
        )
    )


def test_the_log_is_appended_to_and_a_bad_query_is_none(tmp_path: Path) -> None:
    for _ in range(2):
        capture = SearchCapture(tmp_path / "queries.jsonl")
        capture.search(Query("ferry", now=1.0))
        capture.search(Query("OR", now=1.0))
        capture.page("https://example.org/", 2.0)
        capture.close()
    found = logged(tmp_path / "queries.jsonl")
    assert found == [query_of_search(Query("ferry", now=1.0)), query_of_page("https://example.org/", 2.0)] * 2


def test_a_full_disk_stands_in_the_way_of_no_answer() -> None:
    capture = SearchCapture(Path("/dev/full"))
    capture.search(Query("ferry", now=1.0))
    capture.close()
    assert capture.lost == 1


def test_a_folder_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(LevadaError, match="cannot write"):
        SearchCapture(tmp_path / "nowhere" / "queries.jsonl")
