"""Link traps: pages without end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.reasons import Reason
from levada.pages.urls import NearDuplicateRuns, TrapLimits, newest_runs, path_pattern, trap
from tests.pages.test_sketch import sketch

NOW = 1_710_000_000.0  # March 2024


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://example.org/a/b/c", None),
        ("http://example.org/a/x/a/y/a", Reason.REPEATING_PATH),
        ("http://example.org/a/b/a/b", Reason.REPEATING_PATH),
        ("http://example.org/1/1/1/1", None),
        ("http://example.org/" + "x" * 2000, Reason.URL_LENGTH),
        ("http://example.org/" + "/".join(f"s{n}" for n in range(31)), Reason.DEPTH),
        ("http://example.org/?" + "&".join(f"p{n}=1" for n in range(13)), Reason.PARAMETERS),
        ("http://example.org/?" + "&".join(f"p{n}=1" for n in range(12)), None),
        ("http://example.org/calendar/2031/05", Reason.CALENDAR),
        ("http://example.org/calendar/2024/05/12/", None),
        ("http://example.org/calendar/1971/05", Reason.CALENDAR),
        ("http://example.org/news/1999/05/12/bridge", None),
        ("http://example.org/events?month=2033-01", Reason.CALENDAR),
        ("http://example.org/takvim?yil_year=1950", Reason.CALENDAR),
        ("http://example.org/product/2050", None),
    ],
)
def test_addresses_that_lead_nowhere_are_known(url: str, reason: Reason | None) -> None:
    assert trap(url, NOW) is reason


def test_every_limit_can_be_set() -> None:
    assert trap("http://example.org/a", NOW, depth=3, limits=TrapLimits(max_depth=2)) is Reason.DEPTH
    assert trap("http://example.org/abc", NOW, limits=TrapLimits(max_length=10)) is Reason.URL_LENGTH
    assert trap("http://example.org/calendar/2031/05", NOW, limits=TrapLimits(years_ahead=10)) is None


@given(st.text("abc/0123?&=-", max_size=60), st.floats(0, 4e9))
def test_every_address_gets_an_answer(rest: str, now: float) -> None:
    trap("http://example.org/" + rest, now)
    path_pattern("http://example.org/" + rest)


def test_numbers_fold_into_one_pattern() -> None:
    assert path_pattern("http://a.org/list/12?page=3&q=x") == path_pattern("http://a.org/list/7?q=y&page=99")
    assert path_pattern("http://a.org/list/12") != path_pattern("http://a.org/other/12")


def words(number: int, shared: int = 200) -> bytes:
    return sketch([f"word{n}" for n in range(shared)] + [f"only{number}"])


def test_a_run_of_pages_that_say_the_same_is_noticed() -> None:
    runs = NearDuplicateRuns(limits=TrapLimits(run=5, alike=0.8))
    seen = [runs.observe(f"http://a.org/day/{n}", words(n)) for n in range(6)]
    assert seen == [None] * 4 + [Reason.NEAR_DUPLICATES] * 2
    assert runs.observe("http://a.org/other/77", words(7)) is None


def test_a_page_that_differs_ends_the_run() -> None:
    runs = NearDuplicateRuns(limits=TrapLimits(run=3))
    for number in range(2):
        runs.observe(f"http://a.org/day/{number}", words(0))
    assert runs.observe("http://a.org/day/3", sketch(["something", "else"])) is None
    assert runs.observe("http://a.org/day/4", sketch(["something", "else"])) is None
    assert runs.observe("http://a.org/day/5", sketch(["something", "else"])) is Reason.NEAR_DUPLICATES


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 2)), max_size=40), st.integers(0, 40))
def test_runs_that_were_stored_and_read_again_go_on(pages: list[tuple[str, int]], cut: int) -> None:
    limits = TrapLimits(run=3, patterns=3)
    whole, first = NearDuplicateRuns(limits=limits), NearDuplicateRuns(limits=limits)
    observed = [(f"http://a.org/{name}/{n}", words(100 * text)) for n, (name, text) in enumerate(pages)]
    expected = [whole.observe(*each) for each in observed]
    before = [first.observe(*each) for each in observed[:cut]]
    again = NearDuplicateRuns(first.packed(), limits)
    assert before + [again.observe(*each) for each in observed[cut:]] == expected
    assert newest_runs([first.packed(), again.packed()]) == again.packed() == whole.packed()


def test_the_patterns_of_a_site_are_bounded_and_a_run_outlives_single_pages() -> None:
    runs = NearDuplicateRuns(limits=TrapLimits(run=4, patterns=10))
    runs.observe("http://a.org/day/0", words(0))
    runs.observe("http://a.org/day/1", words(1))
    for number in range(50):
        runs.observe(f"http://a.org/{'x' * (number + 1)}", words(number))
    assert len(runs.packed()) < 10 * 160
    assert runs.observe("http://a.org/day/2", words(2)) is None
    assert runs.observe("http://a.org/day/3", words(3)) is Reason.NEAR_DUPLICATES
