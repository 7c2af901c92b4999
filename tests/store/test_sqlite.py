"""The store on disk: what it refuses to open, how it fails, and how it is found after a crash."""

from __future__ import annotations

import errno
import json
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.errors import StoreDamaged, StoreError, StoreFull, StoreLocked, StoreTooNew
from levada.core.hashing import drawn
from levada.core.records import ChangeHint, DiscoveredBy, Outcome, PageKind, PageState, Signals
from levada.store.base import StoreLimits
from levada.store.rows import HOWS, KINDS, STATES
from levada.store.sql.base import KnownUrls
from levada.store.sql.statements import DRAWN
from levada.store.sqlite import SqliteStore
from levada.store.sqlite import connection as opening
from levada.store.sqlite.connection import SCHEMA_VERSION
from levada.testing.store.visits import first, links, visited
from tests.faults import WRITE_POINTS, FaultAt, PointLog
from tests.invariants import check_invariants
from tests.store.scenario import STORY_LIMITS, tell

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(path)
    yield opened
    opened.close()


def snapshot(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


class Witness:
    """Remembers what was on disk before the write that is to fail."""

    def __init__(self, path: Path, fault: FaultAt) -> None:
        self.path = path
        self.fault = fault
        self.before: list[str] = []

    def reach(self, point: str) -> None:
        if point.endswith(".begin"):
            self.before = snapshot(self.path)
        self.fault.reach(point)


def answers(store: SqliteStore) -> tuple[object, ...]:
    return store.page("http://a/"), store.document("http://a/"), store.changes(0, 9), list(store.sites())


def test_a_store_is_what_it_was_when_it_is_opened_again(path: Path) -> None:
    store = SqliteStore(path)
    visited(store, "http://a/", "a", "words", 1.0)
    before = answers(store)
    store.close()
    store = SqliteStore(path)
    assert (
        store.page("http://a/"),
        store.document("http://a/"),
        store.changes(0, 9),
        list(store.sites()),
    ) == before
    store.check()
    store.close()


def test_every_word_has_its_number() -> None:
    assert set(KINDS) == set(PageKind)
    assert set(HOWS) == set(DiscoveredBy)
    assert set(STATES) == set(PageState)
    assert all(word.value <= 0xFF for word in (*Signals, *Outcome))


@given(id=st.integers(1, (1 << 63) - 1), power=st.integers(0, 62))
def test_the_database_draws_the_pages_that_we_draw(id: int, power: int) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        (is_drawn,) = connection.execute(f"SELECT {DRAWN} FROM (SELECT ?2 AS id) p", (1 << power, id)).fetchone()
    assert bool(is_drawn) == drawn(id, 1 << power)


def test_a_sitemap_is_looked_up_in_few_statements(store: SqliteStore) -> None:
    store.add(links("a", 2000), [], 0.0)
    store.commit([first(lease, 1.0, "text") for lease in store.lease(0.0, 2000, 60.0)])
    hints = [ChangeHint(f"http://a/{n}", 2.0, Signals.SITEMAP) for n in range(3000)]
    statements: list[str] = []
    with store._database.read() as connection:
        connection.set_trace_callback(statements.append)
    outdated = store.outdated(hints)
    assert len(outdated) == 2000
    assert len([each for each in statements if each.startswith("SELECT")]) == 5


def test_every_commit_is_on_disk_when_it_returns(store: SqliteStore) -> None:
    pragmas = ("synchronous", "journal_mode", "foreign_keys")
    with store._database.read() as connection:
        values = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    assert values == [2, "wal", 1]


def test_a_store_of_a_newer_levada_is_left_alone(path: Path, store: SqliteStore) -> None:
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    for read_only in (False, True):
        with pytest.raises(StoreTooNew, match="newer"):
            SqliteStore(path, read_only=read_only)


def test_a_store_of_an_older_layout_is_left_alone(path: Path, store: SqliteStore) -> None:
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION - 1}")
    connection.close()
    for read_only in (False, True):
        with pytest.raises(StoreError, match="older"):
            SqliteStore(path, read_only=read_only)


def test_whoever_makes_a_store_that_another_is_making_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked, match="held by another"):
            SqliteStore(tmp_path / "x.db", limits=StoreLimits(busy_seconds=0.0))
        waits: list[float] = []

        def wait(seconds: float) -> None:
            waits.append(seconds)
            other.execute("COMMIT")

        monkeypatch.setattr("levada.store.sqlite.connection.time.sleep", wait)
        with closing(SqliteStore(tmp_path / "x.db")) as store:
            assert len(waits) == 1
            assert store.add(links("a", 1), [], 0.0) == 1


def test_addresses_are_found_by_number_and_by_how_they_begin(store: SqliteStore) -> None:
    store.add([*links("a", 12), *links("b", 2)], [], 0.0)
    page = store.page("http://a/3")
    assert page is not None
    assert store.url_of(page.id) == "http://a/3"
    assert store.url_of(0) is None
    assert store.urls_like("http://a/1", 9) == ["http://a/1", "http://a/10", "http://a/11"]
    assert store.urls_like("http://a/", 2) == ["http://a/0", "http://a/1"]
    assert store.urls_like("http://c/", 2) == store.urls_like("http://a/", -1) == []


def test_the_newest_step_is_that_of_the_last_change(store: SqliteStore) -> None:
    assert store.newest_seq() == 0
    visited(store, "http://a/", "a", "words", 1.0)
    visited(store, "http://b/", "b", "more", 2.0)
    assert store.newest_seq() == store.changes(0, 9)[-1].seq


def test_pages_of_a_site_are_neighbours_whenever_they_were_found(store: SqliteStore) -> None:
    for start in range(3):
        store.add([*links("a", 1, start), *links("b", 1, start)], [], float(start))
    ids = [page.id for site in "ab" for n in range(3) if (page := store.page(f"http://{site}/{n}"))]
    assert ids == sorted(ids)
    assert ids[2] - ids[0] == ids[5] - ids[3] == 2


@pytest.mark.parametrize("content", [b"this is not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_damage(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.db").write_bytes(content)
    with pytest.raises(StoreDamaged, match=r"x\.db"):
        SqliteStore(tmp_path / "x.db")
    assert (tmp_path / "x.db").read_bytes() == content


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(StoreDamaged, match="not of Levada"):
        SqliteStore(tmp_path / "x.db")


def test_a_database_with_a_hole_in_it_is_damage(path: Path, store: SqliteStore) -> None:
    store.add(links("a", 2000), [], 0.0)
    store.close()
    data = bytearray(path.read_bytes())
    for page in range(10, 30):
        data[page * 4096 : page * 4096 + 2000] = b"\xa5" * 2000
    path.write_bytes(data)
    with pytest.raises(StoreDamaged, match="damaged"):
        SqliteStore(path)


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        SqliteStore(tmp_path / "file" / "store.db")


def test_a_store_held_by_another_process_is_locked(path: Path, store: SqliteStore) -> None:
    store.close()
    impatient = SqliteStore(path, limits=StoreLimits(busy_seconds=0.0))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreLocked, match="another process"):
        impatient.add(links("a", 1), [], 0.0)
    other.execute("ROLLBACK")
    other.close()
    assert impatient.add(links("a", 1), [], 0.0) == 1
    impatient.close()


def test_a_reader_sees_what_was_committed_and_cannot_write(path: Path, store: SqliteStore) -> None:
    visited(store, "http://a/", "a", "words", 1.0)
    reader = SqliteStore.open_reader(path)
    document = reader.document("http://a/")
    assert document is not None
    assert document.text == "words"
    with pytest.raises(StoreError):
        reader.add(links("b", 1), [], 2.0)
    visited(store, "http://b/", "b", "more", 2.0)
    assert len(reader.changes(0, 10)) == 2
    reader.close()


def test_a_reader_needs_no_writer_beside_it(path: Path, store: SqliteStore) -> None:
    visited(store, "http://a/", "a", "words", 1.0)
    store.close()
    reader = SqliteStore.open_reader(path)
    assert reader.stats(1.0).stored == 1
    reader.close()


def test_a_reader_of_nothing_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="crawl something first"):
        SqliteStore.open_reader(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_a_closed_store_says_so(path: Path) -> None:
    store = SqliteStore(path)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.add(links("a", 1), [], 0.0)
    with pytest.raises(StoreError, match="closed"):
        store.page("http://a/")


def test_threads_take_turns(store: SqliteStore) -> None:
    def fill(site: str) -> None:
        for start in range(0, 50, 5):
            store.add(links(site, 5, start), [], 0.0)
            store.stats(0.0)

    threads = [threading.Thread(target=fill, args=(f"s{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.stats(0.0).known == 200
    check_invariants(store)


def test_a_url_of_a_write_that_failed_is_not_taken_for_stored(path: Path) -> None:
    store = SqliteStore(path, faults=FaultAt("add.before-commit", OSError(errno.EIO, "bad disk")))
    with pytest.raises(StoreError):
        store.add(links("a", 3), [], 0.0)
    assert store.add(links("a", 3), [], 0.0) == 3
    store.close()


def test_known_urls_are_bounded_and_never_wrong() -> None:
    known = KnownUrls(10)
    for n in range(100):
        known.update([f"u{n}"])
        assert f"u{n}" in known
        assert len(known) <= 10
    assert "u0" not in known
    empty = KnownUrls(0)
    empty.update(["u"])
    assert "u" not in empty


def test_the_story_passes_every_write_point(path: Path) -> None:
    log = PointLog()
    store = SqliteStore(path, limits=STORY_LIMITS, faults=log)
    tell(store)
    check_invariants(store)
    store.close()
    assert set(log.points) == set(WRITE_POINTS)


FAILURES = [
    *((point, OSError(errno.ENOSPC, "no space left on device"), StoreFull) for point in WRITE_POINTS),
    *((point, sqlite3.OperationalError("disk I/O error"), StoreError) for point in WRITE_POINTS if "settle" in point),
]


@pytest.mark.parametrize(("point", "error", "expected"), FAILURES)
def test_a_write_that_fails_writes_nothing_and_says_so(
    path: Path, point: str, error: Exception, expected: type[StoreError]
) -> None:
    witness = Witness(path, FaultAt(point, error))
    store = SqliteStore(path, limits=STORY_LIMITS, faults=witness)
    with pytest.raises(expected):
        tell(store)
    assert (snapshot(path) == witness.before) == (not point.endswith("after-commit"))
    tell(store)
    check_invariants(store)
    store.close()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "tests.store.kill_everywhere", str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=True)
    return folder, json.loads(run.stdout)


@pytest.mark.parametrize("point", WRITE_POINTS)
def test_a_process_killed_at_any_point_leaves_a_store_that_goes_on(
    killed: tuple[Path, dict[str, int]], point: str
) -> None:
    folder, exits = killed
    assert exits[point] == -signal.SIGKILL
    store = SqliteStore(folder / f"{point}.db", limits=STORY_LIMITS)
    check_invariants(store)
    tell(store)
    check_invariants(store)
    documents = [document.url for document in store.scan()]
    assert len(documents) == len(set(documents)) == store.stats(1e9).stored
    assert all(store.page(found.url) for found in links("a", 4))
    store.close()


def test_a_full_database_is_said_and_nothing_of_the_batch_is_written(path: Path, store: SqliteStore) -> None:
    store.add(links("a", 50), [], 0.0)
    with store._database.read() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    leases = store.lease(0.0, 50, 60.0)
    with pytest.raises(StoreFull, match="free some space"):
        store.commit([first(lease, 1.0, "much text " * 500, tuple(links("b", 200))) for lease in leases])
    assert store.stats(1.0).stored == 0
    check_invariants(store)
    with store._database.read() as connection:
        connection.execute("PRAGMA max_page_count = 1000000")
    assert all(store.commit([first(lease, 1.0, "much text " * 500) for lease in leases]))
    check_invariants(store)


FILL_THE_DISK = """
import resource, sys
from pathlib import Path
from levada.store.sqlite import SqliteStore
from levada.core.errors import StoreError
from levada.testing.store.visits import links

store = SqliteStore(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
held = 0
try:
    while True:
        held += store.add(links("a", 100, held), [], 0.0)
except StoreError as error:
    print(held, store.stats(0.0).known, type(error).__name__)
"""


def test_a_file_that_may_not_grow_stops_the_store_without_loss(path: Path) -> None:
    command = [sys.executable, "-c", FILL_THE_DISK, str(path)]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    held, known, _ = child.stdout.split()
    assert int(held) == int(known) > 0
    store = SqliteStore(path)
    assert store.stats(0.0).known == int(held)
    check_invariants(store)
    assert store.add(links("a", 100, int(held)), [], 0.0) == 100
    store.close()


def test_a_store_that_another_process_makes_meanwhile_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "levada.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        read_marks = opening.marks

        def made_just_then(connection: sqlite3.Connection) -> tuple[int, int]:
            marks = read_marks(connection)
            monkeypatch.setattr(opening, "marks", read_marks)
            opening._create(other)
            return marks

        monkeypatch.setattr(opening, "marks", made_just_then)
        with closing(SqliteStore(path)) as store:
            assert store.stats(0.0).known == 0
