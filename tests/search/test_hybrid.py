"""Hybrid search: pages near in meaning beside those with the words, and vectors that follow the documents."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from levada.core.errors import PluginError, StoreDamaged
from levada.core.folder import DataFolder
from levada.core.protocols import Index
from levada.core.records import Change
from levada.core.search_records import Hits, Query
from levada.follow.index import catch_up, catch_up_vectors
from levada.search.hits import HitSummary
from levada.search.hybrid.embedding import MOST_PASSAGES, passages_of
from levada.search.hybrid.fusion import DEPTH, NearPage, fuse, loose_text
from levada.search.hybrid.vectors import FILE, VectorReader, VectorWriter, packed_vector
from levada.search.query import parse_query
from levada.search.sharded import ShardedIndex
from levada.search.tantivy.index import TantivyIndex, index_folder
from levada.search.tantivy.reader import TantivyShard
from levada.sharding.page_keys import page_placement, page_values
from levada.store.memory import MemoryStore
from levada.store.sharded import ShardPlan
from levada.testing.index import change, removed
from levada.testing.store.visits import first, links
from tests.in_memory import FixedPlan
from tests.search.tiny_embedder import TinyEmbedder

PAGES = [
    change(1, "the ferry leaves at noon", site="a.org"),
    change(2, "a boat is at sea, and a ship", site="b.org"),
    change(3, "the tax is due in march", site="a.org"),
    change(4, "a vapur at the pier", site="b.org", language="tr"),
    change(5, "tea on the hills", site="a.org"),
    *(change(n, f"bread and butter {n}", site="c.org") for n in range(6, 12)),
]


def write(path: Path, changes: Sequence[Change], embedder: TinyEmbedder | None = None) -> None:
    with closing(VectorWriter(path, embedder or TinyEmbedder())) as writer:
        assert writer.apply(changes) == len(changes)


def near(path: Path, text: str) -> list[int]:
    return [page.page_id for page in VectorReader([path], TinyEmbedder()).near(text)]


@pytest.fixture(params=["one", "sharded"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Index]:
    placement = page_placement("url", 1 if request.param == "one" else 3)
    paths = []
    for number in range(placement.shards):
        own = [each for each in PAGES if placement.place(page_values(each.url)) == number]
        paths.append(tmp_path / str(number))
        with closing(TantivyIndex(paths[-1], writer=True, heap_bytes=16 << 20)) as writer:
            writer.apply(own)
        write(paths[-1], own)
    found = VectorReader(paths, TinyEmbedder()).near
    made: Index
    if request.param == "one":
        made = TantivyIndex(paths[0], near=found)
    else:
        made = ShardedIndex([TantivyShard(path) for path in paths], FixedPlan(ShardPlan(placement)), near=found)
    yield made
    made.close()


def numbers(hits: Hits) -> list[int]:
    return [int(hit.url.rpartition("/")[2]) for hit in hits]


def test_pages_near_in_meaning_follow_the_page_with_the_word(index: Index) -> None:
    found = index.search(Query("ferry"))
    assert numbers(found)[0] == 1
    assert set(numbers(found)) == {1, 2, 4}
    assert found.total == 3
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_a_word_that_no_page_has_finds_pages_by_its_meaning(index: Index) -> None:
    assert numbers(index.search(Query("levy"))) == [3]


def test_a_word_without_a_meaning_finds_nothing_more(index: Index) -> None:
    assert numbers(index.search(Query("xyzzy"))) == []
    assert index.search(Query("butter")).total == 6


@pytest.mark.parametrize(
    ("query", "pages"),
    [
        ("ferry site:b.org", {2, 4}),
        ("ferry lang:tr", {4}),
        ("ferry -sea", {1, 4}),
        ('ferry "pier"', {4}),
        ("ferry AND noon", {1}),
        ('"ferry"', {1}),
        ("title:ferry", set()),
        ("site:c.org", set(range(6, 12))),
    ],
)
def test_what_binds_in_a_query_binds_pages_near_in_meaning_too(index: Index, query: str, pages: set[int]) -> None:
    assert set(numbers(index.search(Query(query, limit=50)))) == pages


def test_sorting_by_time_and_half_typed_words_go_by_words_only(index: Index) -> None:
    assert numbers(index.search(Query("ferry", sort="changed"))) == [1]
    assert numbers(index.search(Query("ferry", as_you_type=True))) == [1]


def test_parts_of_the_hits_come_from_one_list(index: Index) -> None:
    whole = numbers(index.search(Query("ferry butter pier", limit=50)))
    parts = [numbers(index.search(Query("ferry butter pier", limit=2, offset=at))) for at in range(0, 50, 2)]
    assert [page for part in parts for page in part] == whole
    assert index.search(Query("ferry butter pier", limit=1)).total == len(whole)


_property = settings(max_examples=50)
_lists = st.lists(st.integers(0, 3 * DEPTH), unique=True, max_size=2 * DEPTH)


def summaries(pages: Sequence[int]) -> list[HitSummary]:
    return [HitSummary(f"http://a.org/{page}", "a.org", "", "en", 0.0) for page in pages]


@_property
@given(_lists, _lists)
def test_fusion_keeps_every_page_once_and_scores_never_rise(words: list[int], meaning: list[int]) -> None:
    fused = fuse(summaries(words), summaries(meaning))
    urls = [page.url for _, page in fused]
    assert len(urls) == len(set(urls))
    assert set(urls) == {page.url for page in (*summaries(words), *summaries(meaning[:DEPTH]))}
    scores = [score for score, _ in fused]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


@_property
@given(_lists)
def test_fusion_with_nothing_keeps_the_order(pages: list[int]) -> None:
    assert [page for _, page in fuse(summaries(pages), [])] == summaries(pages)
    assert [page for _, page in fuse([], summaries(pages))] == summaries(pages[:DEPTH])


@_property
@given(_lists, _lists, st.data())
def test_what_is_higher_in_both_lists_is_higher(words: list[int], meaning: list[int], data: st.DataObject) -> None:
    both = [page for page in words[:DEPTH] if page in meaning[:DEPTH]]
    if len(both) < 2:
        return
    one, other = data.draw(st.permutations(both))[:2]
    places = {page.url: place for place, (_, page) in enumerate(fuse(summaries(words), summaries(meaning)))}
    if words.index(one) < words.index(other) and meaning.index(one) < meaning.index(other):
        assert places[f"http://a.org/{one}"] < places[f"http://a.org/{other}"]


@_property
@given(_lists, _lists, st.integers(1, 4 * DEPTH))
def test_more_pages_with_the_words_change_nothing_before_them(words: list[int], meaning: list[int], more: int) -> None:
    shorter = fuse(summaries(words[: max(DEPTH, more)]), summaries(meaning))
    assert fuse(summaries(words), summaries(meaning))[: len(shorter)] == shorter


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("When do ferries leave", "When do ferries leave"),
        ("ferry (boat OR ship) -tax site:a.org title:sea", "ferry boat ship"),
        ('"sea bus"', ""),
    ],
)
def test_only_words_that_a_page_may_lack_are_compared_in_meaning(typed: str, text: str) -> None:
    assert loose_text(parse_query(typed, 0.0)) == text


def test_a_page_that_changes_or_goes_takes_its_vectors_with_it(tmp_path: Path) -> None:
    write(tmp_path, PAGES)
    write(tmp_path, [change(1, "the levy", seq=20), removed(2, seq=21, site="b.org")])
    assert near(tmp_path, "boat") == [4]
    assert set(near(tmp_path, "tax")) == {1, 3}
    hidden = change(3, "the tax", seq=22)
    assert hidden.document is not None
    write(tmp_path, [replace(hidden, document=replace(hidden.document, searchable=False))])
    assert near(tmp_path, "tax") == [1]


def test_nothing_of_a_deleted_page_is_left_in_the_file(tmp_path: Path) -> None:
    gone = change(7, "ferry " * 3_000, site="forgotten.example")
    write(tmp_path, [*PAGES[:6], gone])
    packed = packed_vector([1.0, 0.0, 0.0, 0.0, 0.0], 5) * MOST_PASSAGES
    assert packed in (tmp_path / FILE).read_bytes()
    write(tmp_path, [removed(7, seq=30, site="forgotten.example")])
    assert b"forgotten" not in (tmp_path / FILE).read_bytes()
    assert packed not in (tmp_path / FILE).read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_batch_that_fails_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, PAGES)

    def broken() -> Iterator[Change]:
        yield from (change(n, "tea", seq=n) for n in range(20, 90))
        raise OSError("the store is away")

    with closing(VectorWriter(tmp_path, TinyEmbedder())) as writer:
        with pytest.raises(OSError, match="away"):
            writer.apply(broken())
        assert writer.position() == 11
    assert near(tmp_path, "tea") == [5]


def test_a_batch_that_is_repeated_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, PAGES)
    before = near(tmp_path, "ferry pier")
    write(tmp_path, PAGES)
    assert near(tmp_path, "ferry pier") == before


def followed(path: Path, embedder: TinyEmbedder | None) -> DataFolder:
    folder, store = DataFolder(path), MemoryStore()
    store.add(links("a.test", 7), [], 0.0)
    assert all(store.commit([first(each, 1.0, f"tea {each.page.id}") for each in store.lease(0.0, 7, 60.0)]))
    catch_up_vectors(folder, store, embedder, 3)
    return folder


def test_another_model_computes_all_vectors_anew(tmp_path: Path) -> None:
    folder = followed(tmp_path, TinyEmbedder())
    assert len(near(folder.index, "tea")) == 7
    again = TinyEmbedder("tiny 2")
    followed(tmp_path, again)
    assert len(again.embedded) == 7
    assert near(folder.index, "tea") == [], "the vectors of another model are not compared"
    assert len(VectorReader([folder.index], again).near("tea")) == 7


def test_vectors_that_are_there_are_not_computed_again(tmp_path: Path) -> None:
    followed(tmp_path, TinyEmbedder())
    again = TinyEmbedder()
    followed(tmp_path, again)
    assert again.embedded == []


def test_a_damaged_file_is_built_anew(tmp_path: Path) -> None:
    folder = followed(tmp_path, TinyEmbedder())
    (folder.index / FILE).write_bytes(b"no database" * 1_000)
    with pytest.raises(StoreDamaged, match="it can be rebuilt from the documents"):
        near(folder.index, "tea")
    followed(tmp_path, TinyEmbedder())
    assert len(near(folder.index, "tea")) == 7


def test_without_hybrid_search_no_vectors_stay(tmp_path: Path) -> None:
    folder = followed(tmp_path, TinyEmbedder())
    followed(tmp_path, None)
    assert list(folder.index.iterdir()) == []


def test_vectors_go_with_the_index_when_that_is_built_anew(tmp_path: Path) -> None:
    store = MemoryStore()
    index = TantivyIndex(tmp_path, writer=True, heap_bytes=16 << 20)
    index.apply(PAGES)
    write(tmp_path, PAGES)
    index_folder(tmp_path).ask_for_rebuild()
    catch_up(store, index, 10)
    index.close()
    assert not (tmp_path / FILE).exists()
    assert near(tmp_path, "ferry") == []


def test_a_reader_sees_what_was_written_since(tmp_path: Path) -> None:
    reader = VectorReader([tmp_path], TinyEmbedder())
    assert reader.near("tea") == []
    write(tmp_path, PAGES)
    assert [page.page_id for page in reader.near("tea")] == [5]
    write(tmp_path, [change(9, "tea with tea", seq=50)])
    assert {page.page_id for page in reader.near("tea")} == {5, 9}


@_property
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=3, max_size=3))
def test_a_packed_vector_keeps_its_direction(vector: list[float]) -> None:
    packed = [each - 256 if each > 127 else each for each in packed_vector(vector, 3)]
    largest = max(map(abs, vector))
    assert packed == pytest.approx([each * 127 / largest if largest else 0.0 for each in vector], abs=0.51)


@pytest.mark.parametrize("vectors", [[], [[1.0]], [[float("nan")] * 5], [[1.0] * 5, [1.0] * 5]])
def test_an_embedder_that_gives_rubbish_is_refused(tmp_path: Path, vectors: list[list[float]]) -> None:
    class Broken(TinyEmbedder):
        def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            return vectors

    with closing(VectorWriter(tmp_path, Broken())) as writer, pytest.raises(PluginError, match="the embedder gave"):
        writer.apply(PAGES[:1])
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        assert database.execute("SELECT count(*) FROM pages").fetchone() == (0,)


@_property
@given(st.lists(st.text(min_size=1, max_size=5), max_size=40), st.integers(0, 400))
def test_a_page_has_a_bounded_number_of_passages_with_all_its_words(words: list[str], times: int) -> None:
    document = change(1, " ".join(words * times), title="").document
    assert document is not None
    passages = passages_of(document)
    assert len(passages) <= MOST_PASSAGES
    expected = document.text.split()[: 600 * MOST_PASSAGES]
    assert [word for passage in passages for word in passage.split()] == expected


def test_only_the_nearest_pages_come(tmp_path: Path) -> None:
    write(tmp_path, [change(n, f"tea {'tax ' * (n % 3)}") for n in range(1, 500)])
    found = VectorReader([tmp_path], TinyEmbedder()).near("tea")
    assert len(found) == DEPTH
    assert {page.page_id % 3 for page in found} == {0}
    assert isinstance(found[0], NearPage)
