"""Contract suite of the search index, with `MemoryIndex` as the reference."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from levada.core.errors import BadQuery, StoreError
from levada.core.protocols import Index
from levada.core.records import Change, Document
from levada.core.search_records import Query
from levada.core.structured import Item, Offer, StructuredData, pack_data
from levada.pages.folding import words
from levada.search.memory import MemoryIndex
from levada.search.query import LONGEST_QUERY
from levada.testing.common import a_document, properties


def change(
    page: int, text: str, *, seq: int | None = None, site: str = "a.org", at: float = 0.0, **facts: object
) -> Change:
    """A page with this text, as the change log gives it."""
    plain = {"title": "", "body": b"", "headers": (), "words": len(text.split()), "fetched_at": at, "checked_at": at}
    document = a_document(page, site, text=text, **plain | facts)
    return Change(seq or page, page, document.url, site, document)


def removed(page: int, *, seq: int, site: str = "a.org") -> Change:
    return Change(seq, page, f"http://{site}/{page}", site, None)


def urls(index: Index, query: str) -> set[str]:
    return {hit.url for hit in index.search(Query(query, limit=1_000)).hits}


HARBOUR = change(1, "The ferry leaves the pier at noon", title="Harbour", site="www.a.org", at=100.0)
BRIDGE = change(2, "Ferries pass under the old bridge", title="Bridge news", site="a.org", at=200.0)
VAPUR = change(3, "Vapurlar İstanbul'da iskeleden kalkar", title="Vapur", site="b.org:8080", language="tr", at=300.0)
ALL = [HARBOUR, BRIDGE, VAPUR]


def described(page: int, text: str, *items: Item, offers: tuple[Offer, ...] = ()) -> Change:
    """A page with structured data."""
    return change(page, text, packed_data=pack_data(StructuredData(items, offers)))


THERMOS = described(
    1,
    "A thermos keeps tea hot",
    Item(
        ("Product",),
        {
            "name": ("Termos 1 l",),
            "brand": (Item(("Brand",), {"name": ("Acme Tools",)}),),
            "gtin13": ("4006381333931",),
            "offers": (Item(("Offer",), {"price": ("1.299,00 TL",), "availability": ("InStock",)}),),
            "aggregateRating": (Item(("AggregateRating",), {"ratingValue": ("4.5",), "reviewCount": ("12",)}),),
            "weight": ("900 g",),
        },
    ),
    offers=(Offer("1299.00", "TRY", "InStock", "Termos 1 l"),),
)
MUGS = described(
    2,
    "Mugs of steel",
    Item(("Product",), {"name": ("Mug",), "offers": (Item(("AggregateOffer",), {"lowPrice": ("19.90",)}),)}),
    Item(("Product",), {"name": ("Termos",), "brand": ("Zenith",), "color": ("Acme red", "tools")}),
)
ARTICLE = described(
    3,
    "How to choose a thermos",
    Item(
        ("NewsArticle",),
        {
            "headline": ("Termos arayanlara",),
            "location": (Item(("Place",), {"name": ("The pier",)}),),
            "author": (Item(("Person",), {"name": ("Ayşe Işık",)}),),
            "datePublished": ("2026-01-31T22:30:00+03:00",),
            "dateModified": ("2026-02-03",),
        },
    ),
)
PLAIN = change(4, "price 100 brand acme type product", headers=(("Content-Type", "application/pdf"),))
DESCRIBED = [THERMOS, MUGS, ARTICLE, PLAIN]


CASES = tomllib.loads(files("levada.testing").joinpath("data", "index.toml").read_text(encoding="utf-8"))
SPELLINGS: list[list[str]] = list(CASES["spellings"].values())
WORDS: list[str] = CASES["words"]
PROPERTIES_NOW = 1_770_000_000.0  # 2026-02-02
NUMBERS = st.decimals(-(10**9), 10**9, places=2) | st.sampled_from([Decimal(0), Decimal("0.01"), Decimal(100)])
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
LANGUAGES, SITES = st.sampled_from(["tr", "en", "fr", ""]), st.sampled_from(["a.org", "x.a.org"])
PAGES = st.lists(st.tuples(st.integers(1, 6), TEXTS, TEXTS, LANGUAGES, SITES), max_size=10)
TERMS = st.one_of(
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(lambda some: f'"{" ".join(some)}"'),
    st.sampled_from(WORDS).flatmap(lambda word: st.integers(1, len(word)).map(lambda end: f"{word[:end]}*")),
    st.lists(st.sampled_from(WORDS), min_size=2, max_size=3).map(lambda some: f'"{" ".join(some)[:-1]}*"'),
    st.sampled_from(["lang:tr", "lang:en", "site:a.org", "site:x.a.org", "since:3m", "until:3m", "url:a", "url:3"]),
    st.sampled_from(WORDS).map(lambda word: f"title:{word}"),
    st.tuples(st.lists(st.sampled_from(WORDS), min_size=2, max_size=3), st.integers(0, 3)).map(
        lambda near: f'"{" ".join(near[0])}"~{near[1]}'
    ),
)
EXPRESSIONS = st.recursive(
    TERMS,
    lambda inner: st.tuples(inner, st.sampled_from([" ", " OR ", " AND ", " -", " OR -"]), inner).map(
        lambda parts: f"({''.join(parts)})"
    ),
    max_leaves=5,
)
QUERIES = st.lists(
    st.one_of(TERMS, TERMS.map(lambda term: f"-{term}"), st.tuples(TERMS, TERMS).map(" OR ".join), EXPRESSIONS),
    min_size=1,
    max_size=4,
).map(" ".join)


def _counted_by_hand(changes: list[Change], word: str) -> dict[int, int]:
    current: dict[int, Document] = {each.page_id: each.document for each in changes if each.document}
    (folded,) = words(word)
    counts = {page: Counter(words(f"{one.title} {one.text}"))[folded] for page, one in current.items()}
    return {page: count for page, count in counts.items() if count}


class IndexContract:
    """Every index finds what the reference finds, and applies changes once, in order and durably.

    ```python
    class TestMyIndex(IndexContract):
        def make(self, folder: Path) -> Index:
            return MyIndex(folder)
    ```
    """

    def make(self, folder: Path) -> Index:
        """Open the index in the folder; a second call opens the same index."""
        raise NotImplementedError

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Callable[[], Index]]:
        """Opens the same index again on each call, after closing it."""
        with ExitStack() as opened:

            def open_again() -> Index:
                opened.close()
                return opened.enter_context(closing(self.make(tmp_path / "index")))

            yield open_again

    @pytest.fixture
    def index(self, reopen: Callable[[], Index]) -> Index:
        return reopen()

    @pytest.fixture(scope="class")
    @classmethod
    def filled(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
        """An index of `ALL`, to be read only."""
        with closing(cls().make(tmp_path_factory.mktemp("filled") / "index")) as index:
            index.apply(ALL)
            yield index

    def test_changes_are_applied_from_an_iterator_all_or_none(self, index: Index) -> None:
        def broken() -> Iterator[Change]:
            yield from (change(page, f"ferry {page}") for page in range(1, 301))
            raise StoreError("the documents cannot be read")

        assert index.apply(iter(())) == 0
        with pytest.raises(StoreError, match="cannot be read"):
            index.apply(broken())
        assert (index.position(), index.search(Query("ferry")).total) == (0, 0)
        assert index.apply(change(page, f"ferry {page}") for page in range(1, 301)) == 300
        assert (index.position(), index.search(Query("ferries")).total) == (300, 300)

    def test_a_new_index_is_empty(self, index: Index) -> None:
        assert index.position() == 0
        assert index.search(Query("ferry")).total == 0
        assert index.postings("ferry", 10) == []

    def test_applied_changes_are_found_and_the_position_is_kept(self, reopen: Callable[[], Index]) -> None:
        reopen().apply(ALL)
        index = reopen()
        assert index.position() == 3
        assert urls(index, "pier") == {HARBOUR.url}

    def test_applying_nothing_changes_nothing(self, index: Index) -> None:
        index.apply(ALL)
        index.apply([])
        assert index.position() == 3

    def test_a_batch_may_be_replayed(self, index: Index) -> None:
        for _ in range(3):
            index.apply(ALL)
        assert index.search(Query("-nothing")).total == 3
        assert [posting.count for posting in index.postings("the", 10)] == [2, 1]
        assert index.position() == 3

    def test_an_update_replaces_the_page(self, index: Index) -> None:
        index.apply(ALL)
        index.apply([change(1, "Only trams here", seq=4, site="www.a.org")])
        assert urls(index, "pier") == set()
        assert urls(index, "trams") == {HARBOUR.url}
        assert index.position() == 4

    def test_the_last_change_of_a_page_in_a_batch_counts(self, index: Index) -> None:
        index.apply([change(1, "one"), change(1, "two", seq=2), change(2, "three", seq=3), removed(2, seq=4)])
        assert urls(index, "one OR two OR three") == {"http://a.org/1"}
        assert urls(index, "two") == {"http://a.org/1"}

    @pytest.mark.parametrize(
        "away",
        [removed(1, seq=4), change(1, "the ferry", seq=4, searchable=False), change(1, "ferry", seq=4, gone=True)],
    )
    def test_removed_gone_and_unsearchable_pages_are_not_found(self, index: Index, away: Change) -> None:
        index.apply(ALL)
        index.apply([away])
        assert urls(index, "ferry") == {BRIDGE.url}
        assert all(posting.page != 1 for posting in index.postings("the", 10))

    @pytest.mark.parametrize(("query", "pages"), CASES["queries"].items())
    def test_queries_find_the_right_pages(self, filled: Index, query: str, pages: list[int]) -> None:
        found = filled.search(Query(query, now=380.0))
        assert {int(hit.url.rpartition("/")[2]) for hit in found.hits} == set(pages)
        assert found.total == len(pages)

    @pytest.fixture(scope="class")
    @classmethod
    def shop(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
        """An index of `DESCRIBED`, to be read only."""
        with closing(cls().make(tmp_path_factory.mktemp("shop") / "index")) as index:
            index.apply(DESCRIBED)
            yield index

    @pytest.mark.parametrize(("query", "pages"), CASES["properties"].items())
    def test_properties_of_structured_data_are_searched(self, shop: Index, query: str, pages: list[int]) -> None:
        found = shop.search(Query(query, now=PROPERTIES_NOW))
        assert {int(hit.url.rpartition("/")[2]) for hit in found.hits} == set(pages)
        assert found.total == len(pages)

    @pytest.mark.parametrize(
        ("typed", "pages"),
        [
            ("brand:z", {2}),
            ("-brand:z", {1, 2, 3, 4}),
            ("steel price:<", {2}),
            ('brand:"acme to', {1}),
            ("type:prod", {1, 2}),
        ],
    )
    def test_a_property_may_be_half_typed(self, shop: Index, typed: str, pages: set[int]) -> None:
        found = shop.search(Query(typed, now=PROPERTIES_NOW, as_you_type=True))
        assert {int(hit.url.rpartition("/")[2]) for hit in found.hits} == pages

    @pytest.mark.parametrize("query", ["price:cheap", "price:1..2..3", "price:..", "published:>soon", "rating:<"])
    def test_a_condition_that_is_no_number_or_date_is_refused_with_an_example(self, shop: Index, query: str) -> None:
        with pytest.raises(BadQuery, match=r"^column \d+: .* is not a (number|date), such as"):
            shop.search(Query(query))

    @properties(15, HealthCheck.function_scoped_fixture)
    @given(st.lists(NUMBERS, max_size=12), st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=10))
    def test_a_range_finds_the_numbers_in_it(
        self, index: Index, numbers: list[Decimal], ranges: list[tuple[Decimal, Decimal]]
    ) -> None:
        index.clear()
        index.apply(described(n, "x", Item((), {"price": (str(each),)})) for n, each in enumerate(numbers, 1))
        for low, high in ranges:
            between = {n for n, each in enumerate(numbers, 1) if low <= each <= high}
            assert {hit.url[13:] for hit in index.search(Query(f"price:{low}..{high}", limit=50)).hits} == {
                str(n) for n in between
            }
            assert index.search(Query(f"price:<{low}")).total == sum(each < low for each in numbers)
            assert index.search(Query(f"price:<={low}")).total == sum(each <= low for each in numbers)
            assert index.search(Query(f"price:>{low}")).total == sum(each > low for each in numbers)
            assert index.search(Query(f"price:>={low}")).total == sum(each >= low for each in numbers)

    @pytest.mark.parametrize("case", CASES["ranked"])
    def test_pages_with_all_words_come_first_and_where_they_are_few_others_follow(
        self, index: Index, case: dict[str, Any]
    ) -> None:
        index.apply([change(n, text, language="en") for n, text in enumerate(case["pages"], 1)])
        for query, (first, total) in case["queries"].items():
            found = index.search(Query(query))
            assert found.total == total, query
            assert not first or int(found.hits[0].url.rpartition("/")[2]) == first, query
            scores = [hit.score for hit in found.hits]
            assert scores == sorted(scores, reverse=True)
            one_by_one = [index.search(Query(query, limit=1, offset=n)).hits[0].url for n in range(total)]
            assert len(set(one_by_one)) == total, query

    def test_a_pasted_paragraph_finds_the_page_that_it_is_from(self, index: Index) -> None:
        chance = Random(5)
        texts = [" ".join(f"word{chance.randrange(400)}" for _ in range(600)) for _ in range(8)]
        index.apply([change(n, text, language="en") for n, text in enumerate(texts, 1)])
        for number, text in enumerate(texts, 1):
            assert index.search(Query(f'It says "{text[:5_000]}"!')).hits[0].url == f"http://a.org/{number}"
            assert index.search(Query(text[200:5_200])).hits[0].url == f"http://a.org/{number}"

    @pytest.mark.parametrize(("typed", "pages"), CASES["half_typed"].items())
    def test_a_query_is_answered_while_it_is_typed(self, filled: Index, typed: str, pages: list[int]) -> None:
        found = filled.search(Query(typed, now=380.0, as_you_type=True))
        assert {int(hit.url.rpartition("/")[2]) for hit in found.hits} == set(pages)

    def test_a_word_is_found_from_its_second_letter_on(self, index: Index) -> None:
        index.apply([change(1, "a word about freshness", language="en"), change(2, "fresh bread", language="en")])
        for end in range(2, len("freshness") + 1):
            found = index.search(Query("freshness"[:end], as_you_type=True)).hits
            assert "http://a.org/1" in {hit.url for hit in found}, end
        best = index.search(Query("fresh", as_you_type=True)).hits[0]
        assert best.url[-1] == "2"  # the whole word counts for more than one that begins so

    def test_a_prefix_finds_every_word_however_many_begin_so(self, index: Index) -> None:
        index.apply([change(n, f"same{n} word", title="t") for n in range(1, 301)])
        assert index.search(Query("same*")).total == 300
        assert index.search(Query("same1*")).total == 111
        assert index.search(Query('"same2 wo*"')).total == 1

    @properties(15, HealthCheck.function_scoped_fixture)
    @given(PAGES, st.lists(st.sampled_from(WORDS), min_size=1, max_size=5))
    def test_a_prefix_finds_every_page_that_the_whole_word_finds(
        self, index: Index, pages: list[tuple[int, str, str, str, str]], some: list[str]
    ) -> None:
        index.clear()
        index.apply(
            change(number, text, seq=seq, title=title, language=language, site=site)
            for seq, (number, text, title, language, site) in enumerate(pages, 1)
        )
        for word in some:
            assert index.search(Query(word)).did_you_mean or urls(index, word) <= urls(index, f"{word}*"), word
            for end in range(2, len(word) if len(words(word)) == 1 else 0):
                assert urls(index, f'"{word}"') <= urls(index, f"{word[:end]}*"), word[:end]

    @pytest.fixture(scope="class")
    @classmethod
    def misspelt(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
        """An index of the pages for typing errors, to be read only."""
        with closing(cls().make(tmp_path_factory.mktemp("misspelt") / "index")) as index:
            index.apply([change(n, text, title=text) for n, text in enumerate(CASES["typos"]["pages"], 1)])
            yield index

    @pytest.mark.parametrize(("query", "pages"), CASES["typos"]["queries"].items())
    def test_a_word_with_a_typing_error_finds_what_was_meant(
        self, misspelt: Index, query: str, pages: list[int]
    ) -> None:
        found = misspelt.search(Query(query))
        assert sorted(int(hit.url.rpartition("/")[2]) for hit in found.hits) == pages
        assert found.total == len(pages)

    @pytest.mark.parametrize(("typed", "pages"), CASES["typos"]["half_typed"].items())
    def test_a_half_typed_word_may_have_an_error(self, misspelt: Index, typed: str, pages: list[int]) -> None:
        found = misspelt.search(Query(typed, as_you_type=True))
        assert sorted(int(hit.url.rpartition("/")[2]) for hit in found.hits) == pages
        assert found.did_you_mean == ""

    @pytest.mark.parametrize(("query", "meant"), CASES["typos"]["meant"].items())
    def test_the_right_spelling_is_suggested(self, misspelt: Index, query: str, meant: str) -> None:
        assert misspelt.search(Query(query)).did_you_mean == meant

    def test_pages_with_the_word_as_typed_come_before_those_with_a_correction(self, index: Index) -> None:
        index.apply([change(n, "harbour harbour " * 9) for n in range(1, 41)])
        index.apply([change(100, "the only page where harbuor stands")])
        found = index.search(Query("harbuor", limit=50))
        assert found.hits[0].url == "http://a.org/100"
        assert found.total == 41, "a word that is rare, beside one that is far more frequent"
        assert found.did_you_mean == "harbour"

    def test_a_frequent_word_is_never_corrected(self, index: Index) -> None:
        index.apply([change(n, "form" if n % 3 else "from") for n in range(1, 300)])
        assert index.search(Query("form")).total == 200
        assert index.search(Query("form")).did_you_mean == ""

    @pytest.mark.parametrize(
        ("query", "pages"),
        [
            ("boat", {1, 2, 3}),
            ("ferry", {1, 2}),
            ("vapur", {1, 3}),
            ("nyc", {4, 5}),
            ("new york", {4}),
            ('"boat"', {1}),
            ("sea bus", {2}),
            ("boat AND island", {3}),
            ("-boat", {2, 3, 4, 5}),
        ],
    )
    def test_synonyms_find_each_other(self, index: Index, query: str, pages: set[int]) -> None:
        synonyms = {"boat": ("ferry", "vapur"), "vapur": ("boat",), "ferry": ("boat",), "nyc": ("new york",)}
        synonyms |= {"sea bus": ("ferry",)}
        texts = ["a boat", "the ferry", "vapur island", "york and new york", "nyc"]
        index.apply([change(n, text) for n, text in enumerate(texts, 1)])
        found = index.search(Query(query, synonyms=synonyms))
        assert {int(hit.url.rpartition("/")[2]) for hit in found.hits} == pages

    def test_a_word_as_typed_counts_for_more_than_its_synonym(self, index: Index) -> None:
        index.apply([change(1, "the ferry sails"), change(2, "the boat sails")])
        for typed, other in (("boat", "ferry"), ("ferry", "boat")):
            hits = index.search(Query(typed, synonyms={typed: (other,)})).hits
            assert [hit.score for hit in hits] == sorted({hit.score for hit in hits}, reverse=True)
            assert hits[0].url[-1] == {"boat": "2", "ferry": "1"}[typed]

    def test_hits_are_sorted_by_their_last_change(self, index: Index) -> None:
        index.apply([change(n, "ferry " * n + "tram", at=float(100 - n)) for n in range(1, 5)])
        index.apply([change(5, "ferry", at=500.0, seq=9)])
        by_time = index.search(Query("ferry", sort="changed"))
        assert [hit.changed_at for hit in by_time.hits] == [500.0, 99.0, 98.0, 97.0, 96.0]
        both = index.search(Query("ferry tram", sort="changed"))
        assert both.total == 4, "a page with one of the words does not come first because it is new"
        assert [hit.url[-1] for hit in index.search(Query("ferry", sort="changed", limit=2, offset=1)).hits] == [
            "1",
            "2",
        ]

    def test_facets_count_the_pages_that_match(self, shop: Index, filled: Index) -> None:
        types = {each.value: each.count for each in shop.search(Query("-nothing", facets=("type",))).facets["type"]}
        others = ("NewsArticle", "Offer", "Brand", "AggregateRating", "AggregateOffer", "Place", "Person")
        assert types == dict.fromkeys(others, 1) | {"Product": 2, "html": 3, "pdf": 1}
        found = filled.search(Query("ferry OR vapur", now=380.0, facets=("site", "language", "time"), limit=0))
        assert [(each.value, each.count, each.filter) for each in found.facets["site"]] == [
            ("a.org", 1, "site:a.org"),
            ("b.org:8080", 1, "site:b.org:8080"),
            ("www.a.org", 1, "site:www.a.org"),
        ]
        assert [(each.value, each.count) for each in found.facets["language"]] == [("en", 2), ("tr", 1)]
        assert [each.count for each in found.facets["time"]] == [3, 3, 3, 3, 3]
        assert filled.search(Query("ferry")).facets == {}

    @properties(10, HealthCheck.function_scoped_fixture)
    @given(PAGES, QUERIES)
    def test_the_filter_of_a_facet_finds_as_many_pages_as_it_says(
        self, index: Index, pages: list[tuple[int, str, str, str, str]], query: str
    ) -> None:
        index.clear()
        index.apply(
            change(number, text, seq=seq, title=title, language=language, site=site, at=3_600.0 * number)
            for seq, (number, text, title, language, site) in enumerate(pages, 1)
        )
        now = 4 * 3_600.0
        found = index.search(Query(query, now=now, facets=("site", "language", "time"), sort="changed", limit=50))
        for name in ("language", "time"):
            for each in found.facets[name]:
                alone = {hit.url for hit in index.search(Query(each.filter, now=now, limit=50)).hits}
                assert len(alone & {hit.url for hit in found.hits}) == each.count, (query, each)
        assert sum(each.count for each in found.facets["site"]) == found.total

    def test_one_hit_stands_for_the_others_of_its_site(self, index: Index) -> None:
        index.apply([change(n, "ferry " * (1 + n % 4), site=f"s{n % 3}.org") for n in range(1, 31)])
        found = index.search(Query("ferry", one_per="site"))
        assert found.total == 30
        assert sorted(hit.site for hit in found.hits) == ["s0.org", "s1.org", "s2.org"]
        for hit in found.hits:
            assert (hit.more, len(hit.others)) == (9, 9)
            assert {other.site for other in hit.others} == {hit.site}
            assert hit.url not in {other.url for other in hit.others}
        first = index.search(Query("ferry")).hits[0]
        assert found.hits[0].url == first.url
        assert index.search(Query("ferry", one_per="site", limit=2, offset=2)).hits == found.hits[2:]

    def test_the_words_of_the_query_are_marked_in_the_title(self, index: Index) -> None:
        index.apply([change(1, "no word of it", title="The Ferry of İstanbul")])
        (hit,) = index.search(Query("ferry istanbul")).hits
        assert hit.title_pieces == (("The ", False), ("Ferry", True), (" of ", False), ("İstanbul", True))

    def test_a_note_says_what_was_not_taken_as_a_field(self, filled: Index) -> None:
        assert "there is no field foo:" in filled.search(Query("foo:ferry")).notes[0]
        assert filled.search(Query("ferry")).notes == ()

    def test_every_spelling_finds_every_spelling_in_every_language(self, index: Index) -> None:
        pages = [
            (f"bir {spelling} daha", language)
            for spellings in SPELLINGS
            for spelling in spellings
            for language in ("tr", "en", "de", "", "xx")
        ]
        index.apply([change(n, text, language=language) for n, (text, language) in enumerate(pages, 1)])
        for spellings in SPELLINGS:
            for each in spellings:
                assert index.search(Query(each)).total == 5 * len(spellings), each
                assert index.search(Query(f'"bir {each}"')).total == 5 * len(spellings), each
                assert index.search(Query(f"{each} lang:tr")).total == len(spellings), each
                assert len(index.postings(each, 100)) == 5 * len(spellings), each

    def test_a_form_of_a_word_finds_another_in_pages_of_its_language(self, index: Index) -> None:
        forms = list(enumerate(CASES["forms"], 1))
        index.apply([change(n, f"x {written} y", language=language) for n, (language, written, _) in forms])
        for number, (language, written, typed) in forms:
            assert f"http://a.org/{number}" in urls(index, typed), typed
            assert f"http://a.org/{number}" in urls(index, f"{typed} lang:{language}"), typed
            assert words(written) == words(typed) or not urls(index, f'"{typed}"'), typed
            assert not urls(index, f"{typed} -lang:{language}"), typed

    def test_a_word_in_the_title_counts_for_more(self, index: Index) -> None:
        index.apply([change(1, "a word about rain and sun"), change(2, "about the sun", title="Rain")])
        assert [hit.url[-1] for hit in index.search(Query("rain")).hits] == ["2", "1"]

    def test_the_typed_form_counts_for_more_than_another(self, index: Index) -> None:
        index.apply([change(1, "many elections were held"), change(2, "many election were held"), change(3, "no")])
        assert [hit.url[-1] for hit in index.search(Query("election")).hits] == ["2", "1"]

    def test_without_words_the_newest_come_first(self, filled: Index) -> None:
        assert [hit.changed_at for hit in filled.search(Query("site:org")).hits] == [300.0, 200.0, 100.0]

    def test_a_hit_has_the_facts_of_its_page(self, filled: Index) -> None:
        (hit,) = filled.search(Query("vapur")).hits
        assert (hit.url, hit.site, hit.title) == (VAPUR.url, "b.org:8080", "Vapur")
        assert (hit.language, hit.changed_at) == ("tr", 300.0)
        assert hit.score > 0

    def test_pages_of_hits_do_not_overlap_and_the_total_is_of_all(self, index: Index) -> None:
        index.apply([change(n, "same " * (1 + n % 5)) for n in range(1, 26)])
        pages = [index.search(Query("same", limit=10, offset=offset)) for offset in (0, 10, 20, 30)]
        assert [page.total for page in pages] == [25] * 4
        assert [len(page.hits) for page in pages] == [10, 10, 5, 0]
        assert len({hit.url for page in pages for hit in page.hits}) == 25
        assert index.search(Query("same", limit=0)).hits == ()
        assert index.search(Query("same", limit=0)).total == 25

    def test_clear_removes_everything_but_the_numbers_of_sites(self, reopen: Callable[[], Index]) -> None:
        index = reopen()
        index.apply(ALL)
        index.clear()
        assert (index.position(), index.search(Query("-x")).total) == (0, 0)
        index.apply(list(reversed(ALL)))
        index = reopen()
        assert [(posting.site, posting.page) for posting in index.postings("the", 10)] == [(1, 1), (2, 2)]

    def test_postings_are_site_page_and_count_in_order(self, index: Index) -> None:
        index.apply(
            [change(7, "x Word, word", title="WORD"), change(5, "word", site="b.org"), change(2, "wordy words")]
        )
        index.apply([change(3, "word word", seq=9)])
        found = [(posting.site, posting.page, posting.count, posting.url) for posting in index.postings("Word", 10)]
        assert found == [(1, 3, 2, "http://a.org/3"), (1, 7, 3, "http://a.org/7"), (2, 5, 1, "http://b.org/5")]
        assert [posting.page for posting in index.postings("word", 2)] == [3, 7]
        assert index.postings("word", 0) == []
        assert len(index.postings("word", 10**15)) == 3

    @pytest.mark.parametrize("query", ["", '"open', "OR", "x" * (LONGEST_QUERY + 1)])
    def test_a_bad_query_is_refused(self, index: Index, query: str) -> None:
        with pytest.raises(BadQuery):
            index.search(Query(query))

    def test_postings_are_of_one_word(self, index: Index) -> None:
        with pytest.raises(BadQuery):
            index.postings("two words", 10)

    def test_hostile_pages_are_indexed(self, index: Index) -> None:
        strange = ["", "\x00\ud800\ufffe", "x" * 200_000, *(mark * 5_000 for mark in "\u0301東"), "a\u2028b"]
        strange.append("\U0001f600 " * 500)
        index.apply([change(n, text, title=text[:1_000]) for n, text in enumerate(strange, 1)])
        assert index.search(Query("-nothing")).total == len(strange)
        assert urls(index, "b") == {"http://a.org/6"}
        assert urls(index, "x" * 500) == set()

    @properties(100, HealthCheck.function_scoped_fixture)
    @given(
        st.text(max_size=60)
        | st.lists(st.sampled_from(["ferry", "(", ")", "-", '"', "~2", " ", "OR ", "NOT ", "title:", "*", "x"])).map(
            "".join
        )
    )
    def test_any_query_is_answered_or_refused(self, filled: Index, text: str) -> None:
        try:
            found = filled.search(Query(text))
        except BadQuery:
            return
        assert found.total >= len(found.hits)

    @properties(15, HealthCheck.function_scoped_fixture)  # each example clears the index
    @given(PAGES, st.lists(QUERIES, min_size=5, max_size=25), st.lists(st.sampled_from(WORDS[:-2]), max_size=5))
    def test_every_index_agrees_with_the_reference(
        self, index: Index, pages: list[tuple[int, str, str, str, str]], queries: list[str], some: list[str]
    ) -> None:
        reference = MemoryIndex()
        index.clear()
        changes = [
            change(number, text, seq=seq, title=title, language=language, site=site, at=60.0 * number)
            for seq, (number, text, title, language, site) in enumerate(pages, 1)
        ]
        for batch in (changes[: len(changes) // 2], changes[len(changes) // 2 :]):
            reference.apply(batch)
            index.apply(batch)
        for query in queries:
            expected = reference.search(Query(query, now=400.0))
            found = index.search(Query(query, now=400.0))
            assert {hit.url for hit in found.hits} == {hit.url for hit in expected.hits}, query
            assert found.total == expected.total
        for word in some:
            counted = {posting.page: posting.count for posting in index.postings(word, 100)}
            assert counted == _counted_by_hand(changes, word)
