"""What title, address and links say corrects the order of the best hits, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.search import ranking
from levada.search.query import parse_query
from levada.search.ranking import LinkFacts, QueryWords, Signals, reranked
from levada.search.terms import Ask


class Page(msgspec.Struct, frozen=True):
    url: str
    title: str = ""
    language: str = "en"
    headings: str = ""


def signals(typed: str, url: str = "http://a.example/x", title: str = "", *anchors: str, pages: int = 0) -> Signals:
    facts = LinkFacts(pages, tuple((text, pages) for text in anchors))
    return QueryWords(parse_query(typed, 0.0).words()).signals(Page(url, title), facts)


@pytest.mark.parametrize(
    ("typed", "share"),
    [
        ("git rebase", 1.0),
        ("git pull", 0.5),
        ("rebases", 0.0),
        ("re", 0.0),
        ("high-speed git", 2 / 3),
        ("git* rebase", 1.0),
    ],
)
def test_headings_say_how_many_of_the_words_as_they_stand_are_in_them(typed: str, share: float) -> None:
    words = QueryWords(parse_query(typed, 0.0).words())
    assert words.signals(Page("http://a.example/x", headings=" git rebase speed "), None).headings == share
    assert words.signals(Page("http://a.example/x"), None).headings == 0.0


def no_links(urls: Sequence[str]) -> dict[str, LinkFacts]:
    return {}


def test_a_title_of_nothing_but_the_query_says_most() -> None:
    assert signals("git rebase", title="Git rebase").title == 1.0
    assert signals("git rebase", title="How to rebase with Git").title == pytest.approx(2 / 5)
    assert signals("git rebase", title="").title == 0.0


def test_other_forms_of_a_word_count() -> None:
    assert signals("signals", title="signal").title == 1.0
    assert signals("signal", title="signalman").title == 1.0
    assert signals("signal", title="signalisation").title == 0.0, "a longer ending is another word"
    assert signals('"signal"', title="signals").title == 0.0


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://a.example/java/util/HashMap.html", 1.0),
        ("http://a.example/hash/table/index.html", 0.0),
        ("http://a.example/table/hash/index.html", 1.0),
        ("http://a.example/hash-map-2?x=1", 2 / 3),
        ("http://a.example/hash%20map", 1.0),
        ("http://a.example/HTTPHash/", 0.5),
        ("http://a.example/", 0.0),
        ("http://hash.example", 0.0),
        ("http://a.example/%", 0.0),
    ],
)
def test_the_last_part_of_an_address_is_looked_at(url: str, name: float) -> None:
    assert signals("hash map", url).name == pytest.approx(name)


def test_the_best_fitting_text_of_a_link_counts() -> None:
    assert signals("git rebase", "http://a.example/x", "", "here", "git rebase", pages=100).anchor == 1.0
    assert signals("git rebase", "http://a.example/x", "", "git rebase", pages=1).anchor == pytest.approx(1 / 4)
    assert signals("git rebase", "http://a.example/x", "", "here", pages=100).anchor == 0.0


def test_more_links_never_say_less() -> None:
    said = [signals("x", pages=pages).popularity for pages in (0, 1, 2, 10, 1_000, 10**9)]
    assert said == sorted(said)
    assert (said[0], said[-1]) == (0.0, 1.0)


scores = st.lists(st.floats(0.1, 50.0), min_size=1, max_size=80)


@given(scores=scores, wanted=st.integers(0, 90), data=st.data())
def test_hits_stay_the_same_and_their_scores_fall(scores: list[float], wanted: int, data: st.DataObject) -> None:
    ranked = sorted(scores, reverse=True)
    titles = data.draw(st.lists(st.sampled_from(("ferry", "old ferry", "")), min_size=80, max_size=80))
    found = [(score, Page(f"http://a.example/{n}", titles[n])) for n, score in enumerate(ranked)]

    def run(ask: Ask, most: int) -> tuple[int, list[tuple[float, Page]]]:
        return len(found), found[:most]

    total, again = reranked(run, lambda page: page, no_links)(parse_query("ferry", 0.0), wanted)
    assert total == len(found)
    assert len(again) == min(wanted, len(found))
    assert [score for score, _ in again] == sorted((score for score, _ in again), reverse=True)
    assert len({page.url for _, page in again}) == len(again)
    assert {page.url for _, page in again[ranking.DEPTH :]} <= {page.url for _, page in found[ranking.DEPTH :]}


def test_what_is_sorted_by_time_is_left_as_it_is() -> None:
    found = [(0.0, Page("http://a.example/1")), (0.0, Page("http://a.example/ferry", "Ferry"))]
    _, again = reranked(lambda ask, most: (2, found), lambda page: page, no_links)(parse_query("ferry", 0.0), 2)
    assert list(again) == found


def test_half_a_word_is_found_in_a_title_while_it_is_typed() -> None:
    ask = parse_query("git submod", 0.0, True)
    assert QueryWords(ask.words()).signals(Page("http://a.example/x", "git submodule"), LinkFacts(0)).title == 1.0


def test_a_long_text_is_ranked_by_the_text_of_pages_alone() -> None:
    found = [(2.0, Page("http://a.example/1")), (1.9, Page("http://a.example/ferry", "Ferry"))]
    text = parse_query("the ferry that crosses the wide strait leaves at noon every second day", 0.0)
    _, again = reranked(lambda ask, most: (2, found), lambda page: page, no_links)(text, 2)
    assert list(again) == found
    _, again = reranked(lambda ask, most: (2, found), lambda page: page, no_links)(parse_query("ferry", 0.0), 2)
    assert list(again) != found
