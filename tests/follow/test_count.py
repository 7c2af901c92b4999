"""Documents are counted exactly, once, whenever and however often counting is broken off."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.core.balance import CountReport, HotTerm, LoadMeter
from levada.core.protocols import Documents, Trends
from levada.core.records import Lease
from levada.core.search_records import CountedRound, TrendQuery
from levada.core.settings import TrendsSettings
from levada.follow.counter import CountStage
from levada.follow.trends import LEAST, surprise, trend_query, trending
from levada.grouping import METHODS, KeyedHash, grouping_named
from levada.grouping.routing import Routing
from levada.pages.folding import words
from levada.search.term_counts.sqlite import SqliteTrends
from levada.store.base import Store, StoreLimits
from levada.store.memory import MemoryStore
from levada.store.sqlite import SqliteStore
from levada.testing.store.visits import changed, first, gone, links, new_version, unchanged
from tests.faults import TREND_POINTS
from tests.in_memory import MemoryTrends

ROOT = Path(__file__).parents[2]
HOUR = 3600.0


class Hashes:
    first = second = keyed = KeyedHash(b"test")


def stage(
    documents: Documents, trends: Trends, settings: TrendsSettings | None = None, shadows: tuple[str, ...] = ()
) -> CountStage:
    given = settings or TrendsSettings(batch=3)

    def routing(method: str) -> Routing:
        return Routing(lambda workers: grouping_named(method, workers, Hashes()), range(given.workers))

    return CountStage(documents, trends, given, routing, shadows)


def count(documents: Documents, trends: Trends, settings: TrendsSettings | None = None) -> CountReport:
    return stage(documents, trends, settings).catch_up()


def lease_of(store: Store, page: int) -> Lease:
    leases = store.lease(1e9, 100, 60.0)
    store.release([lease for lease in leases if lease.page.url != f"http://a/{page}"])
    return next(lease for lease in leases if lease.page.url == f"http://a/{page}")


class Pages:
    """A store whose pages are told what to say; and what a plain dictionary makes of it."""

    def __init__(self, store: Store, pages: int = 4) -> None:
        self.store = store
        self.store.add(links("a", pages), [], 0.0)
        self.said: dict[int, tuple[str, str]] = {}  # language, text
        self.hidden: set[int] = set()
        self.at = 0.0
        self.news: Counter[tuple[int, str, str]] = Counter()

    def say(self, page: int, text: str, language: str = "en") -> None:
        self.at += 600.0
        lease = lease_of(self.store, page)
        version = replace(new_version(text), language=language, title="")
        settle = first(lease, self.at, text) if page not in self.said else changed(lease, self.at, text)
        self.store.commit([replace(settle, version=version, next_visit=self.at)])
        if page in self.said and page not in self.hidden:
            for word in set(words(text)) - set(words(self.said[page][1])):
                self.news[int(self.at // HOUR * HOUR), language, word] += 1
        self.said[page] = language, text
        self.hidden.discard(page)

    def go(self, page: int) -> None:
        self.at += 600.0
        if page in self.said:
            self.store.commit([gone(lease_of(self.store, page), self.at, next_visit=self.at)])
            self.hidden.add(page)

    def come_back(self, page: int) -> None:
        self.at += 600.0
        if page in self.said:
            result = replace(unchanged(lease_of(self.store, page), self.at), next_visit=self.at)
            self.store.commit([result])
            self.hidden.discard(page)

    def frequencies(self) -> Counter[tuple[str, str]]:
        shown = [said for page, said in self.said.items() if page not in self.hidden]
        counts = Counter((language, word) for language, text in shown for word in set(words(text)))
        return counts + Counter((language, "") for language, _ in shown)


def counted(trends: MemoryTrends) -> tuple[Counter[tuple[str, str]], Counter[tuple[int, str, str]]]:
    frequencies = Counter(
        {(lang, trends._words[n]): count for (lang, n), count in trends._frequencies.items() if count}
    )
    news: Counter[tuple[int, str, str]] = Counter()
    for (window, _, language, number), n in trends._news.items():
        if number:
            news[window, language, trends._words[number]] += n
    return frequencies, news


texts = st.lists(st.sampled_from(["sea", "bus", "ferry", "şehir", "the", "of"]), max_size=5).map(" ".join)
acts = st.one_of(
    st.tuples(st.just("say"), st.integers(0, 3), texts, st.sampled_from(["en", "tr"])),
    st.tuples(st.sampled_from(["go", "come_back"]), st.integers(0, 3)),
    st.just(("count",)),
)


@settings(max_examples=60, deadline=None)
@given(story=st.lists(acts, max_size=25))
def test_frequencies_are_exact_whenever_counting_happens(story: list[tuple[object, ...]]) -> None:
    pages, trends = Pages(MemoryStore(limits=StoreLimits(keep_versions=3))), MemoryTrends()
    for act, *details in [*story, ("count",)]:
        if act == "count":
            count(pages.store, trends, TrendsSettings(batch=2, rare=0))
            assert counted(trends)[0] == pages.frequencies()
        else:
            getattr(pages, str(act))(*details)
    assert trends.frequency("") == sum(n for (_, word), n in pages.frequencies().items() if not word)


@settings(max_examples=40, deadline=None)
@given(story=st.lists(st.tuples(st.integers(0, 3), texts), max_size=20), when=st.sets(st.integers(0, 20)))
def test_counting_late_tells_the_same_news_as_counting_at_once(story: list[tuple[int, str]], when: set[int]) -> None:
    pages, trends = Pages(MemoryStore(limits=StoreLimits(keep_versions=50))), MemoryTrends()
    for turn, (page, text) in enumerate(story):
        pages.say(page, text)
        if turn in when:
            count(pages.store, trends, TrendsSettings(batch=2, rare=0))
    count(pages.store, trends, TrendsSettings(batch=2, rare=0))
    assert counted(trends)[1] == pages.news


@pytest.mark.parametrize("method", METHODS)
def test_the_counts_do_not_depend_on_the_grouping(method: str) -> None:
    pages, trends = Pages(MemoryStore(limits=StoreLimits())), MemoryTrends()
    for turn in range(12):
        pages.say(turn % 4, f"word{turn} word{turn // 2} the {'of' * (turn % 3)}")
    report = count(pages.store, trends, TrendsSettings(grouping=method, batch=2, workers=3, rare=0))
    assert counted(trends)[0] == pages.frequencies()
    assert counted(trends)[1] == pages.news
    assert (report.balance[0].method, sum(report.balance[0].loads)) == (method, report.records)


def test_a_first_version_is_no_news_and_a_number_never_is() -> None:
    pages, trends = Pages(MemoryStore(limits=StoreLimits())), MemoryTrends()
    pages.say(0, "sea")
    count(pages.store, trends)
    assert counted(trends)[1] == {}
    pages.say(0, "sea bus 12 1234 x 船")
    count(pages.store, trends, TrendsSettings(rare=0))
    assert {word for _, _, word in counted(trends)[1]} == {"bus", "船"}
    assert trends.frequency("1234", "en") == 1


def test_a_page_that_comes_back_does_not_tell_its_old_news_again() -> None:
    pages, trends = Pages(MemoryStore(limits=StoreLimits())), MemoryTrends()
    pages.say(0, "sea")
    pages.say(0, "sea bus")
    count(pages.store, trends, TrendsSettings(rare=0))
    pages.go(0)
    count(pages.store, trends, TrendsSettings(rare=0))
    assert trends.frequency("bus") == 0
    pages.come_back(0)
    count(pages.store, trends, TrendsSettings(rare=0))
    assert trends.frequency("bus") == 1
    assert counted(trends)[1].total() == 1


def test_a_page_that_asks_not_to_be_found_is_not_counted() -> None:
    pages, trends = Pages(MemoryStore(limits=StoreLimits())), MemoryTrends()
    lease = lease_of(pages.store, 0)
    pages.store.commit([replace(first(lease, 0.0, "x"), version=new_version("hidden", searchable=False))])
    report = count(pages.store, trends)
    assert (report.changes, report.records, trends.frequency("hidden"), trends.frequency("")) == (1, 0, 0, 0)


def test_of_a_page_with_too_many_terms_the_same_ones_are_counted_in_every_version() -> None:
    pages, trends = Pages(MemoryStore(limits=StoreLimits())), MemoryTrends()
    many = " ".join(f"term{n}" for n in range(100))
    pages.say(0, many)
    pages.say(0, f"{many} ")
    report = count(pages.store, trends, TrendsSettings(page_terms=10))
    assert report.records == 10
    assert sum(trends.frequency(f"term{n}") for n in range(100)) == 10


def test_what_others_counted_meanwhile_is_not_counted_again() -> None:
    pages = Pages(MemoryStore(limits=StoreLimits()))
    for page in range(4):
        pages.say(page, "sea")
    trends = _Raced(pages.store)
    report = count(pages.store, trends, TrendsSettings(batch=2))
    assert counted(trends)[0] == pages.frequencies()
    assert report.changes < 4


class _Raced(MemoryTrends):
    """Another process commits a round just before ours."""

    def __init__(self, documents: Documents) -> None:
        super().__init__()
        self._documents = documents
        self._raced = False

    def commit(self, round: CountedRound) -> bool:
        if not self._raced:
            self._raced = True
            other = stage(self._documents, self, TrendsSettings(batch=1))
            other._next_round()
        return super().commit(round)


def test_what_was_counted_is_not_counted_again_and_progress_is_told() -> None:
    pages, trends = Pages(MemoryStore(limits=StoreLimits())), MemoryTrends()
    for page in range(4):
        pages.say(page, "sea")
    told: list[int] = []
    report = stage(pages.store, trends, TrendsSettings(batch=2)).catch_up(told.append)
    assert (told, report.rounds, report.changes, report.position) == ([2, 4], 2, 4, 4)
    assert count(pages.store, trends).changes == 0


def test_other_groupings_see_the_same_stream_in_shadow() -> None:
    pages, trends = Pages(MemoryStore(limits=StoreLimits())), MemoryTrends()
    for page in range(4):
        pages.say(page, " ".join(f"w{n}" for n in range(40)))
    report = stage(pages.store, trends, TrendsSettings(workers=3), ("key", "shuffle")).catch_up()
    ours, key, shuffle = report.balance
    assert [sum(load.loads) for load in report.balance] == [160, 160, 160]
    assert key.distribution_cost == 1.0
    assert shuffle.max_over_mean == pytest.approx(1.0, abs=0.02)
    assert shuffle.distribution_cost > key.distribution_cost
    assert ours.hot[0].records == 4
    assert ours.hot[0].term.startswith("w")
    assert report.memory_bytes > 0
    assert counted(trends)[0] == pages.frequencies()


def test_a_meter_with_too_many_terms_draws_a_sample_and_keeps_the_busiest() -> None:
    meter = LoadMeter("x", 2)
    terms = list(range(1, 150_000))
    meter.observe([7] * 100 + terms, [1] * 100 + [0] * len(terms))
    meter.observe(terms, [1] * len(terms))
    load = meter.load({7: "seven"}, 1)
    assert load.distribution_cost == 2.0
    assert load.hot == (HotTerm("seven", 102, 2),)
    assert load.max_over_mean == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize("point", TREND_POINTS)
def test_a_kill_at_any_point_of_a_commit_loses_and_doubles_nothing(point: str, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "levada.db")
    pages = Pages(store)
    for turn in range(10):
        pages.say(turn % 4, f"word{turn} the sea")
    command = [sys.executable, "-m", "tests.follow.count_with_kill", str(tmp_path), point, "2"]
    assert subprocess.run(command, cwd=ROOT, timeout=60).returncode == -signal.SIGKILL
    trends = SqliteTrends(tmp_path / "trends.db")
    try:
        assert trends.position() < store.newest_seq()
        count(store, trends)
        for (language, word), n in pages.frequencies().items():
            assert trends.frequency(word, language) == n
        growth = trends.growth(TrendQuery(0, 0, 1e9))
        assert {each.term: each.now for each in growth if each.term} == {w: n for (_, _, w), n in pages.news.items()}
    finally:
        trends.close()
        store.close()


def test_a_word_that_grows_wins_and_one_that_stands_everywhere_does_not() -> None:
    pages, trends = Pages(MemoryStore(limits=StoreLimits(keep_versions=500)), 8), MemoryTrends()
    for turn in range(400):
        news = "eclipse" if turn >= 380 else ""
        common = "the" if turn % 2 else "of"
        pages.say(turn % 8, f"{common} word{turn % 5} item{turn} {news}")
    count(pages.store, trends, TrendsSettings(rare=0))
    found = trending(trends, trend_query(pages.at, 4 * HOUR, HOUR), 5)
    assert found[0].term == "eclipse"
    assert (found[0].against, found[0].past, found[0].sites) == ("changes", 0, 1)
    assert found[0].now <= found[0].changes
    assert not {"the", "of"} & {trend.term for trend in found}
    assert trending(trends, trend_query(pages.at, 4 * HOUR, HOUR, site="b"), 5) == []
    assert trending(trends, trend_query(pages.at, 4 * HOUR, HOUR, language="tr"), 5) == []


def test_with_too_little_past_the_documents_stand_in_for_it() -> None:
    pages, trends = Pages(MemoryStore(limits=StoreLimits()), 60), MemoryTrends()
    for page in range(60):
        pages.say(page, "the sea")
    for page in range(8):
        pages.say(page, "the sea eclipse")
    count(pages.store, trends, TrendsSettings(rare=0))
    (trend,) = trending(trends, trend_query(pages.at, 48 * HOUR, HOUR), 5)
    assert (trend.term, trend.now, trend.changes, trend.past, trend.past_changes) == ("eclipse", 8, 8, 0, 60)
    assert (trend.against, trend.documents) == ("documents", 8)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 500), st.integers(0, 500))
def test_surprise_is_for_growth_only_and_more_of_it_is_more_surprising(
    now: int, more: int, past: int, rest: int
) -> None:
    changes, past_changes = now + more, past + rest
    score = surprise(now, changes, past, past_changes)
    assert score >= 0.0
    if changes and past_changes and now / changes <= past / past_changes:
        assert score == 0.0
    if more:
        assert surprise(now + 1, changes, past, past_changes) >= score
    assert LEAST >= 1
