"""Link traps: pages without end."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.reasons import Reason
from levada.pages.language import gist_of
from levada.pages.urls import NearDuplicateRuns, TrapLimits, canonical, may_run_on, newest_runs, path_pattern, trap
from tests.pages.test_sketch import sketch


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
        ("http://example.org/blog/archives/2005/04/title", None),
        ("http://example.org/list?start=2075", None),
        ("http://example.org/list?from=2112", None),
        ("http://events.example/1999/05/12/bridge", None),
        ("http://example.org/calendar/2031/05", None),
    ],
)
def test_addresses_that_lead_nowhere_are_known(url: str, reason: Reason | None) -> None:
    assert trap(url) is reason


def test_every_limit_can_be_set() -> None:
    assert trap("http://example.org/a", depth=3, limits=TrapLimits(max_depth=2)) is Reason.DEPTH
    assert trap("http://example.org/abc", limits=TrapLimits(max_length=10)) is Reason.URL_LENGTH


@given(st.text("abc/0123?&=-", max_size=60))
def test_every_address_gets_an_answer(rest: str) -> None:
    trap("http://example.org/" + rest)
    path_pattern("http://example.org/" + rest)


@given(st.text("ab/01?&=", max_size=20), st.text("ab/01?&=", max_size=20))
def test_only_addresses_that_may_run_on_share_a_pattern(one: str, other: str) -> None:
    first, second = canonical(f"http://example.org/{one}"), canonical(f"http://example.org/{other}")
    if first != second and path_pattern(first) == path_pattern(second):
        assert may_run_on(first)
        assert may_run_on(second)


def test_numbers_fold_into_one_pattern() -> None:
    assert path_pattern("http://a.org/list/12?page=3&q=x") == path_pattern("http://a.org/list/7?q=y&page=99")
    assert path_pattern("http://a.org/list/12") != path_pattern("http://a.org/other/12")


def words(number: int, shared: int = 200) -> bytes:
    return sketch([f"word{n}" for n in range(shared)] + [f"only{number}"])


def test_a_run_of_pages_that_say_the_same_is_noticed() -> None:
    runs = NearDuplicateRuns(limits=TrapLimits(run=5, alike=0.8))
    seen = [runs.observe(f"http://a.org/day/{n}", words(n), gist=1) for n in range(6)]
    assert seen == [None] * 4 + [Reason.NEAR_DUPLICATES] * 2
    assert runs.is_trap("http://a.org/day/99")
    assert not runs.is_hopeless("http://a.org/day/99")
    assert not runs.is_trap("http://a.org/other/77")
    assert runs.observe("http://a.org/other/77", words(7), gist=1) is None


def test_a_page_that_differs_ends_the_run() -> None:
    runs = NearDuplicateRuns(limits=TrapLimits(run=3))
    for number in range(3):
        runs.observe(f"http://a.org/day/{number}", words(0), gist=1)
    assert runs.is_trap("http://a.org/day/9")
    other = sketch(["something", "else"])
    assert runs.observe("http://a.org/day/3", other, gist=2) is None
    assert not runs.is_trap("http://a.org/day/9")
    assert runs.observe("http://a.org/day/4", other, gist=2) is None
    assert runs.observe("http://a.org/day/5", other, gist=2) is Reason.NEAR_DUPLICATES


def test_pages_that_differ_in_a_few_words_each_are_no_trap() -> None:
    runs = NearDuplicateRuns(limits=TrapLimits(run=5, varied=10, alike=0.8))
    seen = [runs.observe(f"http://a.org/operator/{n}", words(n), gist=n) for n in range(60)]
    assert seen == [None] * 49 + [Reason.NEAR_DUPLICATES] * 11, "what varies for ever is an ornament"


def test_the_months_of_a_calendar_are_known_after_a_year() -> None:
    runs = NearDuplicateRuns(limits=TrapLimits(run=20, alike=0.8))
    seen = [runs.observe(f"http://a.org/{n // 12}/{n % 12}", words(n), gist=n % 12) for n in range(100)]
    assert seen.index(Reason.NEAR_DUPLICATES) < 12 + 20
    assert set(seen[12 + 20 :]) == {Reason.NEAR_DUPLICATES}


def test_a_trap_is_none_any_more_once_as_many_pages_brought_something() -> None:
    runs = NearDuplicateRuns(limits=TrapLimits(run=5, alike=0.8))
    for number in range(30):
        runs.observe(f"http://a.org/day/{number}", words(number), gist=0)
    assert runs.is_hopeless("http://a.org/day/1")
    kept = [(runs.observe("http://a.org/day/1", words(n), n), runs.is_trap("http://a.org/day/1")) for n in range(1, 6)]
    assert kept == [(None, True)] * 3 + [(None, False)] * 2
    assert not runs.is_hopeless("http://a.org/day/1")


def test_a_higher_limit_frees_what_was_a_trap_by_a_lower_one() -> None:
    runs = NearDuplicateRuns(limits=TrapLimits(run=5))
    for number in range(5):
        runs.observe(f"http://a.org/day/{number}", words(0), gist=0)
    again = NearDuplicateRuns(runs.packed(), TrapLimits(run=9))
    assert not again.is_trap("http://a.org/day/7")
    assert again.observe("http://a.org/day/7", words(0), gist=0) is None


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 2)), max_size=40), st.integers(0, 40))
def test_runs_that_were_stored_and_read_again_go_on(pages: list[tuple[str, int]], cut: int) -> None:
    limits = TrapLimits(run=3, patterns=3)
    whole, first = NearDuplicateRuns(limits=limits), NearDuplicateRuns(limits=limits)
    observed = [(f"http://a.org/{name}/{n}", words(100 * text), text) for n, (name, text) in enumerate(pages)]
    expected = [whole.observe(*each) for each in observed]
    before = [first.observe(*each) for each in observed[:cut]]
    again = NearDuplicateRuns(first.packed(), limits)
    assert before + [again.observe(*each) for each in observed[cut:]] == expected
    assert newest_runs([first.packed(), again.packed()]) == again.packed() == whole.packed()


def test_runs_that_an_earlier_version_stored_begin_anew() -> None:
    runs = NearDuplicateRuns(msgspec.msgpack.encode((7, [(b"pattern", 3, b"1234")])))
    assert runs.observe("http://a.org/day/0", words(0), gist=0) is None


def test_the_patterns_of_a_site_are_bounded_and_a_run_outlives_single_pages() -> None:
    runs = NearDuplicateRuns(limits=TrapLimits(run=4, patterns=10, gists=5))
    for number in range(10):
        runs.observe(f"http://a.org/day/{number % 2}", words(number), gist=number)
    runs.observe("http://a.org/month/0", words(0), gist=1)
    runs.observe("http://a.org/month/1", words(1), gist=1)
    for number in range(50):
        runs.observe(f"http://a.org/{'x' * (number + 1)}", words(number), gist=0)
    assert len(runs.packed()) < 10 * 180
    assert runs.observe("http://a.org/month/2", words(2), gist=1) is None
    assert runs.observe("http://a.org/month/3", words(3), gist=1) is Reason.NEAR_DUPLICATES


def test_a_gist_leaves_numbers_out_and_keeps_signs() -> None:
    march, april = (f"{name} 2026: no events, 1.234,50 \u0663\u0664".encode() for name in ("March", "April"))
    assert gist_of(march) == gist_of(march.replace(b"2026", b"2031").replace(b"1.234,50", b"7"))
    assert gist_of(march) != gist_of(april)
    assert gist_of(b"operator + of a") != gist_of(b"operator - of a")
    assert gist_of(b"b a b") == gist_of(b"a b")
