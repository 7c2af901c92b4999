"""An index over several shards answers as one index over all their pages would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.core.errors import BadQuery, StoreError
from levada.core.records import Change
from levada.core.search_records import Hits, Query
from levada.pages.folding import words
from levada.search import ranking
from levada.search.sharded import ShardedIndex
from levada.search.tantivy.index import TantivyIndex
from levada.search.tantivy.reader import TantivyShard
from levada.sharding.page_keys import page_placement, page_values
from levada.store.sharded import ShardPlan
from levada.testing.index import change
from tests.in_memory import FixedPlan

SITES = (*(f"s{n}.org" for n in range(9)), "www.s1.org", "s2.org:8080")
WORDS = ("alpha", "beta", "gamma", "delta", "rare", "of", "the", "ferry", "ferries", "pier")
SHARDS = 3
TOLERANCE = 1e-5  # tantivy reckons with single precision


def pages(seed: int, count: int, language: str) -> list[Change]:
    """Long and short pages of sites that differ in both words and length."""
    chance = Random(seed)
    made = []
    for page in range(1, count + 1):
        site = chance.choice(SITES)
        likely = chance.choices(WORDS, k=3)
        length = chance.choice((2, 5, 12, 60)) * (1 + SITES.index(site) % 4)
        text = " ".join(chance.choice((*likely, *WORDS)) for _ in range(length))
        title = " ".join(chance.choices(WORDS, k=chance.randrange(3)))
        made.append(change(page, text, title=title, site=site, language=language, at=float(page)))
    return made


class Pair:
    """The same pages in one index and on three shards."""

    def __init__(self, folder: Path, changes: list[Change], key: str = "site") -> None:
        placement = page_placement(key, SHARDS)
        _write(folder / "one", changes)
        for number in range(SHARDS):
            own = [each for each in changes if placement.place(page_values(each.url)) == number]
            _write(folder / str(number), own)
        texts = {each.url: each.document.text for each in changes if each.document}
        self.one = TantivyIndex(folder / "one", text_of=lambda url: texts.get(url, ""))
        shards = [TantivyShard(folder / str(number)) for number in range(SHARDS)]
        plan = FixedPlan(ShardPlan(placement))
        self.several = ShardedIndex(shards, plan, text_of=lambda url: texts.get(url, ""))
        self.counting = ShardedIndex(shards, plan, counted=lambda place, word: _count(changes, place, word, key))

    def close(self) -> None:
        self.one.close()
        self.several.close()


def _write(path: Path, changes: list[Change]) -> None:
    index = TantivyIndex(path, writer=True, heap_bytes=16 << 20)
    index.apply(changes)
    index.close()


def _count(changes: list[Change], place: int, word: str, key: str) -> int:
    placement = page_placement(key, SHARDS)
    documents = [each.document for each in changes if placement.place(page_values(each.url)) == place]
    return sum(not word or word in words(f"{each.title} {each.text}") for each in documents if each)


@pytest.fixture(scope="module", autouse=True)
def every_hit_is_reranked() -> Iterator[None]:
    """Where pages have equal scores it is chance which of them are among the best, which are reranked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "DEPTH", 400)
        yield


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """In a language without forms: nothing is in the indexes but pages."""
    pair = Pair(tmp_path_factory.mktemp("plain"), pages(1, 400, "xx"))
    yield pair
    pair.close()


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(tmp_path_factory.mktemp("english"), pages(2, 400, "en"), "url")
    yield pair
    pair.close()


def assert_same(pair: Pair, query: Query, tolerance: float) -> None:
    one, several = pair.one.search(query), pair.several.search(query)
    assert several.total == one.total
    scores = [hit.score for hit in several.hits]
    assert scores == pytest.approx([hit.score for hit in one.hits], rel=tolerance)
    assert scores == sorted(scores, reverse=True)
    # Where scores are equal, who comes first is chance: so each hit is looked up among those up to here.
    reached = replace(query, offset=0, limit=query.offset + query.limit + 30)
    theirs = {hit.url: hit for hit in pair.one.search(reached).hits}
    last = min((hit.score for hit in theirs.values()), default=0.0)
    for hit in several.hits:
        assert hit.url in theirs or hit.score <= last * (1 + tolerance)
        if hit.url in theirs:
            assert hit.score == pytest.approx(theirs[hit.url].score, rel=tolerance)
            assert hit.snippet == theirs[hit.url].snippet


pieces = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(WORDS).map(lambda word: f'"{word}"'),
    st.sampled_from(WORDS).map(lambda word: f"-{word}"),
    st.sampled_from(WORDS).map(lambda word: f"{word[:3]}*"),
    st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)).map(lambda two: f'"{two[0]} {two[1][:2]}*"'),
    st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)).map(lambda two: f'"{two[0]} {two[1]}"'),
    st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)).map(lambda two: f"{two[0]} OR {two[1]}"),
    st.tuples(*[st.sampled_from(WORDS)] * 3).map(lambda three: f"({three[0]} {three[1]}) OR {three[2]}"),
    st.tuples(*[st.sampled_from(WORDS)] * 3).map(lambda three: f"({three[0]} OR {three[1]} -{three[2]})"),
    st.tuples(*[st.sampled_from(WORDS)] * 2).map(lambda two: f'"{two[0]} {two[1]}"~3'),
    st.sampled_from(WORDS).map(lambda word: f"title:{word}"),
    st.sampled_from(["url:s1", "url:2*", "until:1970-01-01", "fery", "dleta", "gamna"]),
    st.sampled_from(SITES).map(lambda site: f"site:{site}"),
    st.sampled_from(["site:org", "site:nowhere.net", "site:s1.org OR site:s4.org", "since:1970-01-01"]),
)
queries = st.builds(
    lambda some, limit, offset: Query(" ".join(some), limit, offset, 1e6),
    st.lists(pieces, min_size=1, max_size=4),
    st.integers(1, 30),
    st.integers(0, 40),
)
lawful = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)


@lawful
@given(query=queries)
@example(query=Query("alpha", 10, 0, 1e6))
@example(query=Query('rare "of the" gamma', 10, 5, 1e6))
def test_hits_scores_and_totals_are_those_of_one_index(plain: Pair, query: Query) -> None:
    assert_same(plain, query, TOLERANCE)


@lawful
@given(query=queries)
def test_with_other_forms_too_but_for_the_tables_of_forms_that_each_index_has(english: Pair, query: Query) -> None:
    """tantivy counts these tables among the documents: three instead of one in 400."""
    assert_same(english, query, 0.02)


def test_without_global_counts_scores_would_differ(plain: Pair) -> None:
    """What the weights are for: a word that is rare on one shard only."""
    query = Query("rare alpha", 50)
    best = plain.one.search(query)
    (shard, *_) = plain.several._shards
    own = {hit.url: hit.score for hit in TantivyIndex(shard._folder.path).search(query).hits}
    differences = [abs(own[hit.url] / hit.score - 1) for hit in best.hits if hit.url in own]
    assert max(differences) > 0.02


def test_a_query_that_names_a_site_asks_its_shard_only(plain: Pair) -> None:
    placement = page_placement("site", SHARDS)
    for site in SITES:
        below = {each for each in SITES if each == site or each.partition(":")[0].endswith(f".{site}")}
        below |= {each for each in SITES if each.startswith(f"{site}:")}
        asked = plain.several.touched(Query(f"alpha site:{site}"))
        assert asked == sorted({placement.place({"site": each, "url": ""}) for each in below})
    assert plain.several.touched(Query("alpha")) == [0, 1, 2]
    assert plain.several.touched(Query("alpha site:nowhere.net")) == []
    assert len(plain.several.touched(Query("-site:s1.org alpha"))) == SHARDS


def test_counts_of_terms_stand_in_for_shards_that_are_not_asked(plain: Pair) -> None:
    for site in SITES:
        query = Query(f"rare gamma site:{site}", 20)
        exact, counted = plain.several.search(query), plain.counting.search(query)
        assert counted.total == exact.total
        assert [hit.score for hit in counted.hits] == pytest.approx([hit.score for hit in exact.hits], rel=0.25)


def test_postings_are_those_of_one_index(plain: Pair, english: Pair) -> None:
    for pair in (plain, english):
        for word in ("alpha", "rare", "nothing"):
            one, several = pair.one.postings(word, 1_000), pair.several.postings(word, 1_000)
            assert {(each.url, each.count) for each in several} == {(each.url, each.count) for each in one}
            assert len({(each.site, each.page) for each in several}) == len(several)
            numbers = {each.url.split("/")[2]: each.site for each in several}
            assert len(set(numbers.values())) == len(numbers)
            assert [(each.site, each.page) for each in several] == sorted((each.site, each.page) for each in several)
            assert pair.several.postings(word, 3) == several[:3]


def test_the_newest_come_first_where_there_is_nothing_to_rank_by(plain: Pair) -> None:
    query = Query("lang:xx", 25, 10)
    assert [hit.url for hit in plain.several.search(query).hits] == [hit.url for hit in plain.one.search(query).hits]


def test_indexes_that_were_never_written_hold_nothing(tmp_path: Path) -> None:
    plan = FixedPlan(ShardPlan(page_placement("site", 2)))
    index = ShardedIndex([TantivyShard(tmp_path / "0"), TantivyShard(tmp_path / "1")], plan)
    assert index.search(Query("alpha")) == Hits(0, ())
    assert index.postings("alpha", 10) == []
    assert index.position() == 0
    with pytest.raises(BadQuery):
        index.search(Query("alpha OR"))
    with pytest.raises(StoreError, match="shard by shard"):
        index.clear()
    with pytest.raises(StoreError, match="shard by shard"):
        index.apply([])
    index.close()
