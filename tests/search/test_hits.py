"""The order of hits, and one hit that stands for several, with what the store knows of pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from levada.core.protocols import Index
from levada.core.records import Change
from levada.core.search_records import Hits, Query
from levada.pages.change import sketch_of
from levada.search.hits import MOST_OTHERS, PageFacts
from levada.search.memory import MemoryIndex
from levada.search.sharded import ShardedIndex
from levada.search.tantivy.index import TantivyIndex
from levada.search.tantivy.reader import TantivyShard
from levada.sharding.page_keys import page_placement, page_values
from levada.store.sharded import ShardPlan
from levada.testing.index import change
from tests.in_memory import FixedPlan

CHANCE = Random(4)
TEXTS = [" ".join(f"w{CHANCE.randrange(5_000)}" for _ in range(300)) for _ in range(6)]


def pages() -> list[Change]:
    """Six texts; the first two in four copies each that differ in a word. Visited in another order than changed."""
    made = []
    for n in range(1, 13):
        text = TEXTS[(n - 1) % 2 if n <= 8 else n - 7]
        one = change(n, f"ferry {text} copy{n}", site=f"s{n % 3}.org", at=float(n))
        assert one.document is not None
        made.append(Change(n, n, one.url, one.site, replace(one.document, checked_at=1_000.0 - n * 7 % 12)))
    return made


def facts(changes: list[Change]) -> dict[str, PageFacts]:
    documents = [each.document for each in changes if each.document]
    return {
        each.url: PageFacts(each.checked_at, sketch_of(frozenset(each.text.encode().split()))) for each in documents
    }


@pytest.fixture(params=["memory", "tantivy", "sharded"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Index]:
    changes = pages()
    known = facts(changes)
    made: Index
    if request.param == "memory":
        made = MemoryIndex()
        made.apply(changes)
    elif request.param == "tantivy":
        made = TantivyIndex(tmp_path / "one", writer=True, heap_bytes=16 << 20, page_facts=known.get)
        made.apply(changes)
    else:
        placement = page_placement("url", 3)
        for number in range(3):
            own = [each for each in changes if placement.place(page_values(each.url)) == number]
            shard = TantivyIndex(tmp_path / str(number), writer=True, heap_bytes=16 << 20)
            shard.apply(own)
            shard.close()
        shards = [TantivyShard(tmp_path / str(number)) for number in range(3)]
        made = ShardedIndex(shards, FixedPlan(ShardPlan(placement)), page_facts=known.get)
    yield made
    made.close()


def numbers(hits: Hits) -> list[int]:
    return [int(hit.url.rpartition("/")[2]) for hit in hits]


def test_hits_are_sorted_by_the_last_visit(index: Index) -> None:
    every = sorted(pages(), key=lambda each: (-each.document.checked_at, each.url) if each.document else (0.0, ""))
    expected = [each.page_id for each in every]
    found = index.search(Query("ferry", sort="checked", limit=20))
    assert numbers(found) == expected
    assert found.hits[0].checked_at == every[0].document.checked_at if every[0].document else False
    assert numbers(index.search(Query("ferry", sort="checked", limit=4, offset=3))) == expected[3:7]
    assert index.search(Query("ferry")).hits[0].checked_at is None


def test_hits_are_sorted_by_the_last_change(index: Index) -> None:
    assert numbers(index.search(Query("ferry", sort="changed", limit=20))) == list(range(12, 0, -1))


def test_one_hit_stands_for_all_copies_of_a_text(index: Index) -> None:
    found = index.search(Query("ferry", one_per="copies", limit=20))
    assert found.total == 12
    assert len(found.hits) == 6
    assert sorted(hit.more for hit in found.hits) == [0, 0, 0, 0, 3, 3]
    groups = [{*numbers(Hits(0, (hit, *hit.others)))} for hit in found.hits if hit.more]
    assert sorted(map(sorted, groups)) == [[1, 3, 5, 7], [2, 4, 6, 8]]


def test_the_first_in_the_chosen_order_stands_for_the_others(index: Index) -> None:
    found = index.search(Query("ferry", sort="changed", one_per="site", limit=20))
    assert numbers(found) == [12, 11, 10]
    assert [[*numbers(Hits(0, hit.others))] for hit in found.hits] == [[9, 6, 3], [8, 5, 2], [7, 4, 1]]


def test_facets_count_over_all_pages_that_match(index: Index) -> None:
    found = index.search(Query("ferry", facets=("site", "language"), limit=0))
    assert [(each.value, each.count) for each in found.facets["site"]] == [("s0.org", 4), ("s1.org", 4), ("s2.org", 4)]
    assert [(each.value, each.count) for each in found.facets["language"]] == [("en", 12)]


def test_a_typing_error_is_corrected_from_the_words_of_all_pages(index: Index) -> None:
    found = index.search(Query("fery", limit=20))
    assert (found.total, found.did_you_mean) == (12, "ferry")


def test_only_the_best_of_many_others_are_shown() -> None:
    index = MemoryIndex()
    index.apply([change(n, "ferry") for n in range(1, 31)])
    (hit,) = index.search(Query("ferry", one_per="site")).hits
    assert (hit.more, len(hit.others)) == (29, MOST_OTHERS)
