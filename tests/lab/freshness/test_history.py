from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada.core.errors import NotFound, UsageError
from levada.lab.freshness import histories as history_module
from levada.lab.freshness.histories import BadHistory, history_world, ota_world, read_history

DAY = 1440
reused = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "changes.tsv"


def test_a_file_is_read_as_it_is_described(path: Path) -> None:
    path.write_text("# name\tfirst\tdeleted\ttimes\na/x\t-10\t\t5,20.5\n\nb/y\t0\t30\t\r\nb/z\t1\n")
    read = read_history(path)
    assert read.repairs == ()
    assert read.documents == (("a/x", -10.0, None, (5.0, 20.5)), ("b/y", 0.0, 30.0, ()), ("b/z", 1.0, None, ()))


def test_gzip_or_plain_is_the_same_whatever_its_name(path: Path) -> None:
    text = b"\xef\xbb\xbfa\t0\t\t1,2\n"
    path.write_bytes(text)
    plain = read_history(path)
    path.write_bytes(gzip.compress(text))
    assert read_history(path) == plain
    assert plain.documents[0].name == "a"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("only a name", "line 2: expected name, first seen"),
        ("a\t1\t2\t3\t4", "not 5 fields"),
        ("\t1\t\t2", "line 2: expected name"),
        ("a\tsoon\t\t2", "line 2: first seen is no number: 'soon'"),
        ("a\t\t\t2", "line 2: first seen is no number"),
        ("a\t1\tlater\t2", "line 2: deleted is no number"),
        ("a\t1\t\t2,3x,4", "line 2: change time is no number: '3x'"),
        ("a\t1\t\t2,nan", "line 2: change time must be between -1e9 and 1e9 minutes, not nan"),
        ("a\tinf\t\t2", "line 2: first seen must be between"),
        ("a\t1\t-inf\t2", "line 2: deleted must be between"),
        ("a\t1\t\t2,1e30", "line 2: change time must be between"),
        ("a\t-1e12\t\t2", "line 2: first seen must be between"),
    ],
)
def test_what_cannot_be_understood_is_an_error_that_names_the_line(path: Path, line: str, told: str) -> None:
    path.write_text(f"ok\t0\t\t1\n{line}\n")
    with pytest.raises(BadHistory) as error:
        read_history(path)
    assert told in str(error.value)
    assert str(error.value).startswith("changes.tsv")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "holds no document"),
        (b"# nothing\n\n", "holds no document"),
        (b"a\t5\t3\t1\n", "holds no document"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (gzip.compress(b"a\t0\t\t1\n", mtime=0)[:-9], "damaged gzip"),
        (b"\x1f\x8bnot gzip at all", "damaged gzip"),
    ],
)
def test_a_file_that_holds_no_history_is_an_error(path: Path, content: bytes, told: str) -> None:
    path.write_bytes(content)
    with pytest.raises(BadHistory, match=told):
        read_history(path)


def test_a_file_that_is_not_there_or_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no file"):
        read_history(tmp_path / "nowhere.tsv")
    with pytest.raises(BadHistory, match="cannot be read"):
        read_history(tmp_path)


def test_a_small_file_that_unpacks_to_too_much_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "_MOST_BYTES", 1000)
    path.write_bytes(gzip.compress(b"#" * 5000))
    with pytest.raises(BadHistory, match="unpacks to more than 1,000 bytes"):
        read_history(path)


@pytest.mark.parametrize(
    ("line", "times", "told"),
    [
        ("a\t0\t\t5,3,9", (3.0, 5.0, 9.0), "change times were out of order: sorted (line 1)"),
        ("a\t0\t\t3,3,9", (3.0, 9.0), "a change time was given twice: counted once (line 1)"),
        ("a\t0\t\t3,,9,", (3.0, 9.0), "a change time was left empty: passed over (line 1)"),
        ("a\t4\t\t3,9", (9.0,), "a change came before the document was first seen: dropped (line 1)"),
        ("a\t0\t5\t3,9", (3.0,), "a change came after the document was deleted: dropped (line 1)"),
    ],
)
def test_what_can_be_set_right_is_set_right_and_said(
    path: Path, line: str, times: tuple[float, ...], told: str
) -> None:
    path.write_text(line)
    read = read_history(path)
    assert read.documents[0].changes == times
    assert read.repairs == (told,)


def test_a_change_at_first_sight_is_what_was_seen(path: Path) -> None:
    path.write_text("a\t4\t\t4,9\n")
    read = read_history(path)
    assert read.documents[0].changes == (9.0,)
    assert read.repairs == ()


def test_repairs_are_counted_not_listed(path: Path) -> None:
    path.write_text("".join(f"d{number}\t0\t\t5,3\n" for number in range(1000)))
    assert read_history(path).repairs == (
        "change times were out of order: sorted (1000 documents, the first in line 1)",
    )


def test_a_document_that_is_named_again_is_joined(path: Path) -> None:
    path.write_text("a\t5\t20\t7,9\na\t0\t\t3,9\n")
    read = read_history(path)
    assert read.documents == (("a", 0.0, None, (3.0, 7.0, 9.0)),)
    assert read.repairs == ("a document was named again: its histories were joined (line 2)",)


def test_a_document_deleted_before_it_was_seen_is_left_out(path: Path) -> None:
    path.write_text("a\t5\t3\t\nb\t0\t\t4\n")
    read = read_history(path)
    assert [document.name for document in read.documents] == ["b"]
    assert "deleted before it was first seen" in read.repairs[0]


@given(st.binary(max_size=200) | st.text("0123456789\t,\n-.e#a ", max_size=200).map(str.encode))
@reused
def test_no_bytes_do_anything_but_be_read_or_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        world, _ = history_world(path)
    except BadHistory:
        return
    assert np.all(np.isfinite(world.times))
    assert world.horizon > 0


lines = st.tuples(
    st.sampled_from(["a/1", "a/2", "b/1", "https://c/x", "d"]),
    st.integers(-3000, 3000),
    st.none() | st.integers(-3000, 9000),
    st.lists(st.integers(-3000, 9000), max_size=8),
)


@given(st.lists(lines, min_size=1, max_size=8), st.none() | st.floats(0.01, 20))
@reused
def test_a_replay_lies_within_its_window(
    path: Path, given_lines: list[tuple[str, int, int | None, list[int]]], days: float | None
) -> None:
    path.write_text(
        "".join(
            f"{name}\t{first}\t{'' if deleted is None else deleted}\t{','.join(map(str, times))}\n"
            for name, first, deleted, times in given_lines
        )
    )
    try:
        world, _ = history_world(path, days)
    except BadHistory:
        return
    page = np.repeat(np.arange(world.pages), np.diff(world.offsets))
    assert world.pages >= 1
    assert days is None or world.horizon <= days * 86400 + 1e-6
    assert np.all((world.begins >= 0) & (world.begins < world.ends) & (world.ends <= world.horizon))
    assert np.all((world.times > world.begins[page]) & (world.times <= world.ends[page]))


def test_without_days_all_of_a_file_is_replayed(path: Path) -> None:
    path.write_text("a/x\t100\t\t160\na/y\t130\t190\t150\nb/z\t100\t\t\n")
    world, _ = history_world(path)
    assert world.horizon == 90 * 60
    assert list(world.begins) == [0, 1800, 0]
    assert list(world.ends) == [5400, 5400, 5400]
    assert list(world.changes_of(0)) == [3600]
    assert list(world.sites) == [0, 0, 1]


def test_with_days_it_is_the_days_that_hold_most_documents(path: Path) -> None:
    path.write_text(
        f"old\t0\t{2 * DAY}\t{DAY}\n"
        f"one\t{5 * DAY}\t\t{6 * DAY},{7 * DAY}\n"
        f"two\t{5 * DAY}\t{8 * DAY}\t{6 * DAY}\n"
        f"late\t{20 * DAY}\t\t\n"
    )
    world, _ = history_world(path, 2)
    assert world.horizon == 2 * 86400
    assert world.pages == 2
    assert len(world.times) == 3


@pytest.mark.parametrize("days", [0.0, -1.0, float("nan")])
def test_a_window_needs_some_days(path: Path, days: float) -> None:
    path.write_text("a\t0\t\t5\n")
    with pytest.raises(UsageError, match="more than 0 days"):
        history_world(path, days)


def test_one_moment_is_no_history(path: Path) -> None:
    path.write_text("a\t5\t\t\nb\t5\t\t5\n")
    with pytest.raises(BadHistory, match="nothing to replay"):
        history_world(path)


def test_the_year_of_the_open_terms_archive_holds_every_document() -> None:
    world = ota_world()
    assert (world.name, world.pages, world.horizon) == ("ota-1y", 758, 365 * 86400)
    assert len(world.times) == 5775
    assert np.sum(world.begins > 0) == 54
