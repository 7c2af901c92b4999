"""The index on disk survives what happens to disks and processes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest
import tantivy
from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import encode

from levada.core.errors import StoreDamaged, StoreError, StoreFull, StoreLocked, StoreTooNew
from levada.core.protocols import Faults
from levada.core.records import Change
from levada.core.search_records import Query
from levada.pages.links import OWN_PARTS
from levada.search.stemming import word_forms
from levada.search.tantivy.folder import IndexFolder, IndexLinks, translated
from levada.search.tantivy.index import TantivyIndex
from levada.search.tantivy.schema import FORMAT, KnownForms
from levada.testing.index import change, removed, urls
from tests.faults import FaultAt

BATCH = [change(1, "ferry to the pier"), change(2, "old bridge", site="b.org")]
FULL = OSError(errno.ENOSPC, "No space left on device")


NAMED = encode([(OWN_PARTS, "RandomForestClassifier")])
HEADED = [
    change(1, "The forest is old. Trees grow", packed_anchors=b""),
    change(2, "Trees grow. The forest is old", packed_anchors=encode([(OWN_PARTS, "Trees grow"), (7, "a link")])),
    change(3, "class RandomForestClassifier", packed_anchors=NAMED),
]


def writer(path: Path, faults: Faults | None = None) -> TantivyIndex:
    return TantivyIndex(path, writer=True, heap_bytes=16 << 20, faults=faults)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A folder with `BATCH` in it, at position 2, and nobody holding it."""
    path = tmp_path / "index"
    with closing(writer(path)) as index:
        index.apply(BATCH)
    return path


@pytest.mark.parametrize("may_write", [True, False])
def test_a_reader_sees_each_commit_and_a_clear(
    tmp_path: Path, may_write: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("levada.search.tantivy.reader.may_write", lambda segments: may_write)
    with closing(TantivyIndex(tmp_path)) as reader, closing(writer(tmp_path)) as index:
        assert (reader.position(), reader.search(Query("ferry")).total) == (0, 0)
        index.apply(BATCH)
        assert (reader.position(), urls(reader, "ferry")) == (2, {BATCH[0].url})
        index.apply([removed(1, seq=3)])
        assert (reader.position(), urls(reader, "ferry")) == (3, set())
        index.clear()
        assert (reader.position(), reader.search(Query("bridge")).total) == (0, 0)
        index.apply(BATCH)
        assert urls(reader, "bridge") == {BATCH[1].url}


def test_of_long_documents_few_are_held_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("levada.search.tantivy.index._TOGETHER", 3)
    monkeypatch.setattr("levada.search.tantivy.index._TEXT_TOGETHER", 100)
    texts = ["short"] * 5 + ["long " * 30, "long " * 10, "long " * 11, "short"]
    had: list[int] = []
    written: list[tuple[list[int], int]] = []

    def read() -> Iterator[Change]:
        for page, text in enumerate(texts, 1):
            had.append(page)
            yield change(page, text)

    def write(_writer: object, portion: Sequence[Change]) -> None:
        written.append(([each.page_id for each in portion], had[-1]))

    monkeypatch.setattr(TantivyIndex, "_write", staticmethod(write))
    with closing(writer(tmp_path)) as index:
        assert index.apply(read()) == len(texts)
    assert written == [([1, 2, 3], 3), ([4, 5, 6], 6), ([7, 8], 8), ([9], 9)], "none is read before it is needed"


def test_a_reader_makes_nothing_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "index"
    with closing(TantivyIndex(path)) as reader:
        assert reader.search(Query("ferry")).total == 0
        with pytest.raises(StoreError, match="reading only"):
            reader.apply(BATCH)
        with pytest.raises(StoreError, match="reading only"):
            reader.clear()
    assert not path.exists()


def test_what_stands_for_an_index_that_may_only_be_read_has_no_locks_and_is_gone_in_the_end(filled: Path) -> None:
    links = IndexLinks(filled / "segments")
    assert {path.name for path in links.path.iterdir()} < {path.name for path in (filled / "segments").iterdir()}
    assert not list(links.path.glob("*.lock"))
    links.close()
    assert not links.path.exists()


def test_only_one_may_write(filled: Path) -> None:
    with closing(writer(filled)), pytest.raises(StoreLocked, match="another process"):
        writer(filled)
    writer(filled).close()


def test_a_writer_in_another_process_is_seen_as_such(filled: Path) -> None:
    with closing(writer(filled)):
        ended = subprocess.run([sys.executable, "-c", OPEN_WRITER, str(filled)], capture_output=True, text=True)
    assert "StoreLocked" in ended.stderr


OPEN_WRITER = "import sys; from levada.search.tantivy.index import TantivyIndex; TantivyIndex(sys.argv[1], writer=True)"


@pytest.mark.parametrize("point", ["index.commit", "index.position"])
def test_a_process_killed_at_any_step_repeats_the_batch_and_doubles_nothing(tmp_path: Path, point: str) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), point], cwd=Path(__file__).parents[2])
    assert ended.returncode == -signal.SIGKILL
    with closing(writer(tmp_path)) as index:
        assert index.position() == 0
        assert index.search(Query("-x")).total == (2 if point == "index.position" else 0)
        index.apply(BATCH)
        assert (index.position(), index.search(Query("-x")).total) == (2, 2)
        assert [(each.site, each.page, each.count) for each in index.postings("bridge", 9)] == [(2, 2, 1)]


KILLED = """
import sys
from tests.faults import KillAt
from tests.search.test_tantivy import BATCH, writer
writer(sys.argv[1], KillAt(sys.argv[2])).apply(BATCH)
"""


@pytest.mark.parametrize("point", ["index.sites", "index.commit", "index.position"])
def test_a_full_disk_fails_the_batch_and_the_next_try_succeeds(tmp_path: Path, point: str) -> None:
    with closing(writer(tmp_path, FaultAt(point, FULL))) as index:
        with pytest.raises(StoreFull, match=r"disk .* is full"):
            index.apply(BATCH)
        assert index.position() == 0
        index.apply(BATCH)
        assert (index.position(), index.search(Query("-x")).total) == (2, 2)


def test_a_batch_that_failed_leaves_nothing_behind_for_the_next(tmp_path: Path) -> None:
    with closing(writer(tmp_path, FaultAt("index.commit", FULL))) as index:
        with pytest.raises(StoreFull):
            index.apply(BATCH)
        index.apply([change(3, "something else", seq=3)])
        assert urls(index, "-x") == {"http://a.org/3"}


def test_a_torn_line_of_site_numbers_is_dropped(filled: Path) -> None:
    with (filled / "sites.txt").open("a") as sites:
        sites.write("half-a-si")
    with closing(writer(filled)) as index:
        index.apply([change(3, "ferry", site="c.org", seq=3)])
        assert [(each.site, each.page) for each in index.postings("ferry", 9)] == [(1, 1), (3, 3)]
    assert (filled / "sites.txt").read_text() == "a.org\nb.org\nc.org\n"


def break_meta(path: Path) -> None:
    (path / "segments" / "meta.json").write_text("{}")


def lose_meta(path: Path) -> None:
    (path / "segments" / "meta.json").unlink()


def lose_a_segment_file(path: Path) -> None:
    next((path / "segments").glob("*.term")).unlink()


def cut_a_segment_file(path: Path) -> None:
    os.truncate(next((path / "segments").glob("*.idx")), 3)


def break_position(path: Path) -> None:
    (path / "position.json").write_bytes(b"\xff")


def make_older(path: Path) -> None:
    (path / "position.json").write_text('{"format":0,"position":2}')


def break_sites(path: Path) -> None:
    (path / "sites.txt").write_bytes(b"\xff\n")


def bring_a_foreign_index(path: Path) -> None:
    for file in (path / "segments").iterdir():
        file.unlink()
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("other")
    tantivy.Index(builder.build(), str(path / "segments"))


HARM = [
    break_meta,
    lose_meta,
    lose_a_segment_file,
    cut_a_segment_file,
    break_position,
    make_older,
    bring_a_foreign_index,
]


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_index_says_so_and_can_be_rebuilt(filled: Path, harm: Callable[[Path], None]) -> None:
    harm(filled)
    with closing(TantivyIndex(filled)) as reader, pytest.raises(StoreDamaged, match="can be rebuilt"):
        reader.search(Query("ferry"))
    with closing(writer(filled)) as index:
        with pytest.raises(StoreDamaged, match="can be rebuilt"):
            index.apply(BATCH)
        index.clear()
        assert index.position() == 0
        index.apply(BATCH)
        assert (index.position(), index.search(Query("-x")).total) == (2, 2)


def test_lost_site_numbers_stop_the_writer_until_a_rebuild(filled: Path) -> None:
    break_sites(filled)
    with closing(writer(filled)) as index:
        with pytest.raises(StoreDamaged, match="site numbers"):
            index.apply(BATCH)
        index.clear()
        index.apply(BATCH)
        assert index.position() == 2


def test_an_index_of_a_newer_levada_is_left_alone(filled: Path) -> None:
    (filled / "position.json").write_text(f'{{"format":{FORMAT + 1},"position":2}}')
    with closing(writer(filled)) as index, pytest.raises(StoreTooNew, match=r"newer.* delete that folder"):
        index.apply(BATCH)


def test_a_damaged_index_is_not_cleared_under_its_writer(filled: Path) -> None:
    with closing(writer(filled)):
        with closing(TantivyIndex(filled)) as reader:
            assert reader.position() == 2
        with pytest.raises(StoreLocked), translated(filled):
            IndexFolder(filled, FORMAT).wipe()


def test_a_folder_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        writer(tmp_path / "file")
    with closing(TantivyIndex(tmp_path / "file")) as reader, pytest.raises(StoreError, match="file"):
        reader.position()


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (OSError(errno.ENOSPC, ""), StoreFull),
        (OSError(errno.EDQUOT, ""), StoreFull),
        (ValueError("IO error: Os { code: 28, message: No space left on device }"), StoreFull),
        (ValueError("Failed to acquire Lockfile: LockBusy."), StoreLocked),
        (ValueError("IO error: Permission denied (os error 13)"), StoreError),
        (ValueError("Data corrupted"), StoreDamaged),
        (OSError(errno.EIO, "Input/output error"), StoreError),
    ],
)
def test_errors_are_translated(tmp_path: Path, error: Exception, meaning: type[StoreError]) -> None:
    with pytest.raises(StoreError) as caught, translated(tmp_path):
        raise error
    assert type(caught.value) is meaning


def test_hits_have_snippets_if_the_texts_can_be_had(filled: Path) -> None:
    texts = {each.url: each.document.text for each in BATCH if each.document}
    with closing(TantivyIndex(filled, text_of=texts.__getitem__)) as reader:
        (hit,) = reader.search(Query("piers")).hits
    assert hit.snippet == (("ferry to the ", False), ("pier", True))


def test_a_failure_of_the_documents_is_not_taken_for_one_of_the_index(filled: Path) -> None:
    def text_of(url: str) -> str:
        raise ValueError("the documents")

    with closing(TantivyIndex(filled, text_of=text_of)) as reader, pytest.raises(ValueError, match="the documents"):
        reader.search(Query("pier"))


def test_a_long_word_finds_the_longer_one_that_as_many_pages_have(tmp_path: Path) -> None:
    texts = ["PostgreSQL replicas", "postgres", "PostgreSQL", "proper", "property", "factories", "factorise factories"]
    with closing(writer(tmp_path)) as index:
        index.apply([change(n, text, language="") for n, text in enumerate(texts, 1)])
    with closing(TantivyIndex(tmp_path, text_of=lambda url: texts[int(url[-1]) - 1])) as reader:
        hits = reader.search(Query("postgres")).hits
        assert hits[0].url == "http://a.org/2"
        assert {hit.url[-1] for hit in hits} == {"1", "2", "3"}
        assert {piece for hit in hits for piece, asked in hit.snippet if asked} == {"postgres", "PostgreSQL"}
        assert urls(reader, '"postgres"') == urls(reader, "POSTGRES -postgresql") == {"http://a.org/2"}
        assert urls(reader, "proper") == {"http://a.org/4"}  # too short to tell
        assert urls(reader, "factories") == {"http://a.org/6", "http://a.org/7"}
        assert urls(reader, "replica") == {"http://a.org/1"}
        assert urls(reader, "postgresql") == {"http://a.org/1", "http://a.org/3"}


def test_words_are_weighed_by_the_newest_commit(tmp_path: Path) -> None:
    """What a reader knows of words from earlier searches ends with the commit."""
    queries = [Query(text) for text in ("ferry", "elections", "ferry election lang:en", "elect*", '"old ferry"')]
    with closing(writer(tmp_path)) as index:
        index.apply([change(1, "old ferry elections"), change(2, "ferry")])
        before = [index.search(query) for query in (*queries, *queries)]
        assert before[: len(queries)] == before[len(queries) :]
        index.apply([change(n, "election of a ferry " * n) for n in range(3, 9)])
        with closing(TantivyIndex(tmp_path)) as fresh:
            for query, hits in zip(queries, before, strict=False):
                assert index.search(query) == fresh.search(query)
                assert query.text.startswith('"') or index.search(query).total > hits.total


def test_the_forms_of_a_word_outlive_the_page_that_brought_them(tmp_path: Path) -> None:
    with closing(writer(tmp_path)) as index:
        index.apply([change(1, "elections"), change(2, "Elections!"), change(3, "nothing")])
        index.apply([removed(1, seq=4), change(3, "two elections", seq=5)])
        assert urls(index, "election") == {"http://a.org/2", "http://a.org/3"}
    with closing(writer(tmp_path)) as index:
        index.apply([change(4, "elections", seq=6), change(2, "other", seq=7)])
        assert urls(index, "election") == {"http://a.org/3", "http://a.org/4"}


def test_forms_that_a_failed_batch_brought_come_with_the_next(tmp_path: Path) -> None:
    with closing(writer(tmp_path, FaultAt("index.commit", FULL))) as index:
        for _ in range(2):
            with suppress(StoreFull):
                index.apply([change(1, "elections")])
        assert urls(index, "election") == {"http://a.org/1"}


def test_the_forms_that_an_index_holds_are_not_pages(tmp_path: Path) -> None:
    with closing(writer(tmp_path)) as index:
        index.apply([change(1, "elections were held")])
        index.apply([removed(1, seq=2)])
        assert index.search(Query("-nothing")).total == 0
        assert index.postings("elections", 9) == []


def test_a_form_is_written_down_once() -> None:
    book = KnownForms()
    assert sorted(book.new_terms("en", ["Ferries, (ferries) and 12 345 ferry"], None)) == [
        "and\x1fen\x1fand",
        "ferri\x1fen\x1fferries",
        "ferri\x1fen\x1fferry",
    ]
    assert book.new_terms("en", ["the ferry"], None) == ["the\x1fen\x1fthe"]
    assert book.new_terms("tr", ["ferry"], None) != []
    book.forget()
    assert book.new_terms("en", ["ferry"], None) == ["ferri\x1fen\x1fferry"]


@given(st.text("abIİıiŞş’'-.,_09é ", max_size=40), st.sampled_from(["tr", "en", "fr"]))
def test_the_forms_in_a_text_are_those_of_what_stands_between_its_spaces(text: str, language: str) -> None:
    chunks = {pair for chunk in text.split() for pair in word_forms(language, chunk)}
    found = {tuple(term.split("\x1f")[::2]) for term in KnownForms().new_terms(language, [text], None)}
    assert {pair for pair in found ^ chunks if not pair[1].isdecimal()} == set()


@given(st.lists(st.text("abcİıI é", max_size=12), min_size=1, max_size=60))
def test_each_form_in_many_texts_is_given_once(texts: list[str]) -> None:
    book = KnownForms()
    given_so_far: list[str] = []
    for text in texts:
        given_so_far += book.new_terms("tr", [text], None)
    assert set(given_so_far) == set(KnownForms().new_terms("tr", texts, None))
    met = {chunk for text in texts for chunk in text.split()}
    assert len(given_so_far) <= sum(len(word_forms("tr", chunk)) for chunk in met)


def test_a_turkish_capital_without_a_dot_is_not_taken_for_one_with_it() -> None:
    assert KnownForms().new_terms("tr", ["ISLIKLARI"], None) == KnownForms().new_terms("tr", ["ıslıkları"], None)


def test_a_page_with_the_words_in_a_heading_comes_before_one_with_them_elsewhere(tmp_path: Path) -> None:
    with closing(writer(tmp_path / "index")) as index:
        index.apply(HEADED)
        first, second = index.search(Query("trees grow")).hits
        assert (first.url, second.url) == ("http://a.org/2", "http://a.org/1")
        assert first.score > second.score


def test_a_heading_finds_nothing_that_the_text_does_not(tmp_path: Path) -> None:
    with closing(writer(tmp_path / "index")) as index:
        index.apply(HEADED)
        assert urls(index, "link") == set(), "what a page calls another page is no heading of its own"
        assert urls(index, "random") == set()


def test_a_name_that_is_written_as_one_is_a_heading_of_its_words(tmp_path: Path) -> None:
    with closing(writer(tmp_path / "index")) as index:
        index.apply([change(n, "A random forest is a classifier. RandomForestClassifier") for n in (4, 5)])
        index.apply([change(6, "class RandomForestClassifier: a random forest is a classifier", packed_anchors=NAMED)])
        assert index.search(Query("random forest classifier")).hits[0].url == "http://a.org/6"
