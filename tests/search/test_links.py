"""What pages say of each other is counted once, whatever is repeated, and taken back when they no longer say it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import StoreDamaged
from levada.core.hashing import term_number
from levada.core.records import Change
from levada.core.search_records import Query
from levada.search.links import KEPT, LinkReader, LinkWriter
from levada.search.ranking import LinkFacts
from levada.search.tantivy.index import TantivyIndex
from levada.testing.index import change

NAMES = ("harbour", "bridge", "station")


def address(name: str) -> str:
    return f"https://a.example/{name}"


def linking(page: int, links: list[tuple[str, str]]) -> Change:
    packed = msgspec.msgpack.encode([(term_number(address(name)), text) for name, text in links])
    return change(page, "some text", packed_anchors=packed)


def facts(folder: Path, *names: str) -> dict[str, LinkFacts]:
    reader = LinkReader([folder / "links.db"])
    found = reader.facts([address(name) for name in names])
    reader.close()
    return {name: found[address(name)] for name in names if address(name) in found}


def count(folder: Path, *rounds: list[Change]) -> None:
    writer = LinkWriter(folder / "links.db")
    for changes in rounds:
        writer.count(changes)
    writer.commit()
    writer.close()


links = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(("The Harbour", "old bridge", "here"))), max_size=4)


@given(rounds=st.lists(st.lists(st.tuples(st.integers(1, 4), links), max_size=5), min_size=1, max_size=5))
def test_after_any_changes_the_counts_are_those_of_what_pages_say_now(
    rounds: list[list[tuple[int, list[tuple[str, str]]]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("links")
    count(folder, *([linking(page, said) for page, said in each] for each in rounds))
    now = {page: said for each in rounds for page, said in each}
    pages = Counter(name for said in now.values() for name in {name for name, _ in said})
    texts = {name: Counter(t.lower() for said in now.values() for n, t in set(said) if n == name) for name in NAMES}
    found = facts(folder, *NAMES)
    assert {name: each.pages for name, each in found.items()} == dict(pages)
    assert {name: dict(each.anchors) for name, each in found.items()} == {name: dict(texts[name]) for name in pages}


def test_a_page_that_is_gone_says_nothing_any_more(tmp_path: Path) -> None:
    count(tmp_path, [linking(1, [("harbour", "Harbour")])], [Change(9, 1, address("x"), "a.example", None)])
    assert facts(tmp_path, "harbour") == {}


def test_a_page_says_nothing_of_itself(tmp_path: Path) -> None:
    said = linking(1, [("harbour", "top")])
    assert said.document
    own = msgspec.structs.replace(said.document, url=address("harbour"))
    count(tmp_path, [msgspec.structs.replace(said, document=own)])
    assert facts(tmp_path, "harbour") == {}


def test_a_frequent_text_stays_however_many_rare_ones_there_are(tmp_path: Path) -> None:
    said = [linking(page, [("harbour", "harbour" if page % 2 else f"rare {page}")]) for page in range(1, 200)]
    count(tmp_path, said)
    known = facts(tmp_path, "harbour")["harbour"]
    assert known.pages == 199
    assert known.anchors[0][0] == "harbour"
    assert len(known.anchors) == KEPT


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 200])
def test_a_damaged_file_only_costs_the_order(tmp_path: Path, content: bytes) -> None:
    index = TantivyIndex(tmp_path, writer=True)
    index.apply([change(1, "a ferry"), change(2, "another ferry")])
    index.close()
    (tmp_path / "links.db").write_bytes(content)
    index = TantivyIndex(tmp_path)
    assert index.search(Query("ferry")).total == 2
    index.close()


def test_a_writer_that_meets_a_damaged_file_asks_for_the_index_to_be_built_again(tmp_path: Path) -> None:
    (tmp_path / "links.db").write_bytes(b"no database, but as long as one would be" * 100)
    index = TantivyIndex(tmp_path, writer=True)
    with pytest.raises(StoreDamaged, match="can be rebuilt"):
        index.apply([linking(1, [("harbour", "Harbour")])])
    index.clear()
    assert index.apply([linking(1, [("harbour", "Harbour")])]) == 1
    index.close()
    assert facts(tmp_path, "harbour")["harbour"].pages == 1


def test_links_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    count(tmp_path, [change(1, "text", packed_anchors=b"\xc1 no links")])
    assert facts(tmp_path, *NAMES) == {}


def test_a_page_rises_when_others_link_to_it_without_being_indexed_again(tmp_path: Path) -> None:
    index = TantivyIndex(tmp_path, writer=True)
    same = "how ferries cross the strait"
    index.apply([change(page, same, title="Notes") for page in range(1, 6)])
    target = change(4, same).url
    packed = msgspec.msgpack.encode([(term_number(target), "ferries")])
    index.apply([change(10 + n, "see there", packed_anchors=packed) for n in range(3)])
    assert index.search(Query("ferries")).hits[0].url == target
    index.clear()
    index.apply([change(page, same, title="Notes") for page in range(1, 6)])
    scores = {round(hit.score, 5) for hit in index.search(Query("ferries")).hits}
    assert len(scores) == 1, "an index that is built anew counts from the beginning"
    index.close()
