"""The contract of the term counts behind trends."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from levada.core.errors import StoreDamaged, StoreError, StoreFull
from levada.core.hashing import term_number
from levada.core.protocols import Trends
from levada.core.search_records import (
    EVERY,
    CountedRound,
    PageTerms,
    TermGrowth,
    TrendQuery,
    packed_terms,
    unpacked_terms,
)
from levada.search.term_counts.sqlite import SqliteTrends
from tests.faults import TREND_POINTS, FaultAt, PointLog
from tests.in_memory import MemoryTrends

DAY = 86_400
HOUR = 3_600


def round_of(
    after: int,
    position: int,
    frequencies: dict[tuple[str, str], int] | None = None,
    news: dict[tuple[int, str, str, str], int] | None = None,
    pages: dict[int, PageTerms] | None = None,
) -> CountedRound:
    """A round in words instead of numbers."""
    frequencies, news = frequencies or {}, news or {}
    words = {term_number(term): term for term in ({key[1] for key in frequencies} | {key[3] for key in news}) if term}
    return CountedRound(
        after,
        position,
        {(language, term_number(term)): n for (language, term), n in frequencies.items()},
        {(window, site, language, term_number(term)): n for (window, site, language, term), n in news.items()},
        words,
        pages or {},
    )


@pytest.fixture(params=["memory", "sqlite"])
def trends(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trends]:
    opened = MemoryTrends() if request.param == "memory" else SqliteTrends(tmp_path / "trends.db")
    yield opened
    opened.close()


def test_nothing_is_counted_at_first(trends: Trends) -> None:
    assert trends.position() == 0
    assert trends.frequency("word") == trends.frequency("", "en") == 0
    assert trends.counted([1, 2]) == {}
    assert trends.growth(TrendQuery(0, 0, 1e12)) == []
    trends.tidy(1e9, 1e9, 5)


def test_a_round_is_added_with_its_position(trends: Trends) -> None:
    assert trends.commit(round_of(0, 7, {("en", "sea"): 2, ("tr", "sea"): 1, ("en", ""): 3}))
    assert trends.commit(round_of(7, 9, {("en", "sea"): -1, ("en", "bus"): 1}))
    assert trends.position() == 9
    assert (trends.frequency("sea", "en"), trends.frequency("sea", "tr"), trends.frequency("sea")) == (1, 1, 2)
    assert (trends.frequency("bus", "en"), trends.frequency("bus", "tr")) == (1, 0)
    assert trends.frequency("") == trends.frequency("", "en") == 3


def test_a_round_that_others_have_counted_changes_nothing(trends: Trends) -> None:
    first = round_of(0, 7, {("en", "sea"): 2}, {(0, "a", "en", "sea"): 1}, {1: PageTerms(1, "en", b"")})
    assert trends.commit(first)
    assert not trends.commit(first)
    assert not trends.commit(round_of(6, 8, {("en", "sea"): 5}))
    assert (trends.position(), trends.frequency("sea")) == (7, 2)
    assert trends.growth(TrendQuery(0, 0, 10)) == [TermGrowth("sea", "en", 1, 0, 1)]


def test_what_was_counted_of_a_page_is_remembered(trends: Trends) -> None:
    page, gone = PageTerms(3, "tr", packed_terms({5, -7})), PageTerms(2, "", None)
    trends.commit(round_of(0, 1, pages={1: page, 2: PageTerms(1, "en", b""), 2**40: gone}))
    trends.commit(round_of(1, 2, pages={2: gone}))
    assert trends.counted([1, 2, 3, 2**40]) == {1: page, 2: gone, 2**40: gone}
    assert trends.counted(list(range(2_000)))[1] == page
    assert page.terms is not None
    assert unpacked_terms(page.terms) == {5, -7}


NEWS = {
    (0, "a.example", "en", "old"): 4,
    (0, "a.example", "en", ""): 9,
    (HOUR, "a.example", "en", "sea"): 1,
    (2 * HOUR, "a.example", "en", "sea"): 2,
    (2 * HOUR, "b.example:80", "en", "sea"): 3,
    (2 * HOUR, "b.example:80", "tr", "sea"): 3,
    (2 * HOUR, "b.example:80", "tr", ""): 5,
    (3 * HOUR, "b.example:80", "en", "bus"): 1,
}


def test_growth_is_now_beside_the_past_by_language(trends: Trends) -> None:
    trends.commit(round_of(0, 1, news=NEWS))
    assert trends.growth(TrendQuery(HOUR, 2 * HOUR, 3 * HOUR)) == [
        TermGrowth("sea", "en", 5, 1, 2),
        TermGrowth("", "tr", 5, 0, 1),
        TermGrowth("sea", "tr", 3, 0, 1),
    ]


def test_growth_leaves_out_what_is_too_rare_but_never_the_totals(trends: Trends) -> None:
    trends.commit(round_of(0, 1, news=NEWS))
    assert trends.growth(TrendQuery(0, 2 * HOUR, 4 * HOUR, least=4)) == [
        TermGrowth("", "en", 0, 9, 0),
        TermGrowth("sea", "en", 5, 1, 2),
        TermGrowth("", "tr", 5, 0, 1),
    ]


def test_growth_can_be_asked_of_one_language_and_of_one_site_or_those_below_it(trends: Trends) -> None:
    trends.commit(round_of(0, 1, news=NEWS))
    everything = TrendQuery(0, 2 * HOUR, 4 * HOUR)

    def asked(site: str | None = None, language: str | None = None) -> set[tuple[str, str, int]]:
        query = TrendQuery(everything.past, everything.since, everything.until, site, language, 1)
        return {(each.term, each.language, each.now) for each in trends.growth(query) if each.term}

    assert asked(language="tr") == {("sea", "tr", 3)}
    assert asked(site="a.example", language="en") == {("sea", "en", 2)}
    assert (
        asked(site="b.example") == asked(site="b.example:80") == {("sea", "en", 3), ("sea", "tr", 3), ("bus", "en", 1)}
    )
    assert asked(site="example") == asked()
    assert asked(site="other.example") == set()
    assert asked(site="'; DROP TABLE news; --") == set()


def test_old_windows_are_forgotten(trends: Trends) -> None:
    trends.commit(round_of(0, 1, {("en", "sea"): 1}, NEWS))
    trends.tidy(2 * HOUR, 0, 2)
    assert {each.term for each in trends.growth(TrendQuery(0, 0, 1e9, language="en"))} == {"sea", "bus"}
    assert trends.frequency("sea") == 1


def test_rare_terms_of_a_closed_day_are_forgotten_and_the_totals_are_not(trends: Trends) -> None:
    news = {
        (0, "a", "en", "steady"): 1,
        (20 * HOUR, "b", "en", "steady"): 1,
        (0, "a", "en", "once"): 1,
        (0, "a", "en", ""): 1,
        (DAY, "a", "en", "late"): 1,
    }
    trends.commit(round_of(0, 1, {("en", "once"): 1}, news))
    trends.tidy(0, DAY + HOUR, 2)
    kept = {each.term: each.now for each in trends.growth(TrendQuery(0, 0, 1e9))}
    assert kept == {"": 1, "steady": 2, "late": 1}
    assert trends.frequency("once") == 1
    trends.commit(round_of(1, 2, news={(3 * DAY, "a", "en", "once"): 2}))
    assert trends.growth(TrendQuery(2 * DAY, 2 * DAY, 1e9)) == [TermGrowth("once", "en", 2, 0, 1)]


terms = st.sampled_from(["", "a", "b", "c", "ş", "\ud800"])
languages = st.sampled_from(["", "en", "tr"])
frequency_keys = st.dictionaries(st.tuples(languages, terms), st.integers(1, 5), max_size=6)
windows = st.integers(0, 5).map(lambda day: day * DAY // 2)
news_keys = st.dictionaries(
    st.tuples(windows, st.sampled_from(["a", "b.a", "c:80"]), languages, terms), st.integers(1, 4), max_size=8
)


@settings(max_examples=40, deadline=None)
@given(rounds=st.lists(st.tuples(frequency_keys, news_keys), max_size=4), rare=st.integers(0, 4), since=windows)
@example(rounds=[({}, {(0, "a", "", "a"): 1, (DAY // 2, "a", "", "a"): 1})], rare=2, since=0)  # half a day goes
def test_a_database_answers_as_dictionaries_do(
    rounds: list[tuple[dict[tuple[str, str], int], dict[tuple[int, str, str, str], int]]], rare: int, since: int
) -> None:
    with TemporaryDirectory() as folder:
        reference, engine = MemoryTrends(), SqliteTrends(Path(folder) / "trends.db")
        both: list[Trends] = [reference, engine]
        try:
            for position, (frequencies, news) in enumerate(rounds):
                plain = {key: n for key, n in news.items() if key[-1] != "\ud800"}
                assert [each.commit(round_of(position, position + 1, frequencies, plain)) for each in both] == [
                    True
                ] * 2
            for each in both:
                each.tidy(DAY / 2, 2 * DAY, rare)
            query = TrendQuery(0, since, 1e9)
            assert reference.growth(query) == engine.growth(query)
            assert reference.frequency("a", "en") == engine.frequency("a", "en")
            assert reference.frequency("ş") == engine.frequency("ş")
        finally:
            engine.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trends.db"


def test_every_point_of_a_commit_is_passed_in_order(path: Path) -> None:
    log = PointLog()
    trends = SqliteTrends(path, faults=log)
    trends.commit(round_of(0, 1, {("en", "a"): 1}))
    trends.close()
    assert tuple(log.points) == TREND_POINTS


@pytest.mark.parametrize("point", TREND_POINTS[:-1])
def test_a_commit_that_fails_anywhere_changes_nothing(path: Path, point: str) -> None:
    full = OSError(28, "No space left on device")
    trends = SqliteTrends(path, faults=FaultAt(point, full))
    round = round_of(0, 1, {("en", "a"): 1}, {(0, "s", "en", "a"): 1}, {1: PageTerms(1, "en", b"")})
    try:
        with pytest.raises(StoreFull):
            trends.commit(round)
        assert (trends.position(), trends.frequency("a"), trends.counted([1])) == (0, 0, {})
        assert trends.commit(round)
        assert (trends.position(), trends.frequency("a")) == (1, 1)
    finally:
        trends.close()


def test_counts_survive_being_closed_and_can_be_read_where_nothing_may_be_written(path: Path) -> None:
    trends = SqliteTrends(path)
    trends.commit(round_of(0, 4, {("en", "a"): 2}))
    trends.close()
    reader = SqliteTrends(path, read_only=True)
    assert (reader.position(), reader.frequency("a")) == (4, 2)
    with pytest.raises(StoreError):
        reader.commit(round_of(4, 5))
    reader.close()


def test_two_processes_may_count_and_one_is_first(path: Path) -> None:
    one, other = SqliteTrends(path), SqliteTrends(path)
    assert one.commit(round_of(0, 1, {("en", "a"): 1}))
    assert not other.commit(round_of(0, 1, {("en", "a"): 1}))
    assert other.commit(round_of(1, 2, {("en", "a"): 1}))
    assert one.frequency("a") == 2
    one.close()
    other.close()


def test_a_file_that_is_no_database_or_of_another_format_is_damage(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StoreDamaged):
        SqliteTrends(path)
    path.unlink()
    SqliteTrends(path).close()
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(StoreDamaged):
        SqliteTrends(path)


def test_somebody_elses_database_is_left_alone(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE mine (x)")
    other.commit()
    other.close()
    with pytest.raises(StoreError, match="move it away"):
        SqliteTrends(path)


def test_the_empty_term_has_its_own_number() -> None:
    assert term_number("") == EVERY
    assert len({term_number(word) for word in ("", "a", "b", "A", "ş", "\ud800")}) == 6


def test_what_the_latest_run_said_of_itself_is_kept(path: Path) -> None:
    trends = SqliteTrends(path)
    assert trends.report() == b""
    trends.keep_report(b"one")
    trends.keep_report(b"two")
    trends.close()
    reader = SqliteTrends(path, read_only=True)
    assert reader.report() == b"two"
    reader.close()
