"""What was forgotten is nowhere: in no file, in no row, in no index; whenever the forget died."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from msgspec.structs import replace
from psycopg.sql import SQL, Identifier

import levada
from levada.accounts.accounts import Accounts, Actor, KeyOptions
from levada.collection.commands import open_commands
from levada.collection.doctor import folder_checks
from levada.collection.forgetting.remains import find_remains
from levada.collection.forgetting.run import forget, wanted
from levada.collection.search import open_search
from levada.core.commands import CheckNow, Pause
from levada.core.errors import NotFound, StoreError, StoreFull, StoreLocked, UsageError
from levada.core.folder import DataFolder, only_mover
from levada.core.records import FoundUrl
from levada.core.search_records import Query
from levada.core.settings import Settings
from levada.store.base import StoreLimits
from levada.store.opening import open_reading_store, open_store, shard_places
from levada.testing.store.visits import described, first, new_version
from tests.collection.forgotten_folder import CANARY, FORGOTTEN, KEPT, build
from tests.faults import FORGET_POINTS, FaultAt, PointLog
from tests.invariants import check_invariants
from tests.needs import without_root
from tests.small_disk import small_disk
from tests.story.commands import contents, one_line
from tests.story.commands import levada as levada_command

pytest_plugins = ["tests.servers.fixtures"]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("forgotten") / "data")


@pytest.fixture
def data(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "data"))


def files_with(path: Path, word: str) -> list[str]:
    return [
        str(each.relative_to(path)) for each in path.rglob("*") if each.is_file() and word.encode() in each.read_bytes()
    ]


def nothing_is_left(data: Path) -> None:
    for word in (CANARY, FORGOTTEN, f"http://{FORGOTTEN}/{CANARY}"):
        assert files_with(data, word) == [], word
        assert find_remains(data, word).found == (), word


def is_sound(data: Path) -> None:
    with closing(open_store(DataFolder(data), Settings().store, StoreLimits())) as store:
        check_invariants(store)
        assert store.site(FORGOTTEN) is None
        assert [document.url for document in store.scan()] == [f"http://{KEPT}/"]
        assert len(store.versions(f"http://{KEPT}/")) == 3
    assert [check for check in folder_checks(data) if check.verdict != "ok"] == []
    with open_search(DataFolder(data)) as (_, index):
        assert index.search(Query(CANARY)).total == 0
        assert [hit.site for hit in index.search(Query("harmless")).hits] == [KEPT]


def test_before_it_is_forgotten_it_is_found_in_every_file_that_holds_it(data: Path) -> None:
    assert {Path(name).name for name in files_with(data, FORGOTTEN)} >= {
        "levada.db",
        "trends.db",
        "hooks.db",
        "queries.jsonl",
        "access.db",
        "orders.db",
        "rendering.json",
        "sites.txt",
        "data.mdb",
    }
    found = find_remains(data, CANARY).found
    assert {place.partition(":")[0] for place in found} >= {"levada.db", "trends.db", "hooks.db", "access.db", "index"}


def test_a_word_of_structured_data_is_found_in_the_store_and_in_the_index(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    folder.make()
    with folder.locked(), closing(open_store(folder, Settings().store, StoreLimits())) as store:
        folder.save_settings(Settings())
        store.add([FoundUrl("http://a.org/", "a.org")], [], 0.0)
        (lease,) = store.lease(0.0, 1, 60.0)
        store.commit([first(lease, 0.0, "words", version=replace(new_version("words"), data=described(CANARY)))])
    with open_search(folder):
        pass
    assert find_remains(folder.path, CANARY).found == ("levada.db: the stored page http://a.org/", "index: its words")


def test_a_forgotten_site_is_in_no_file_and_everything_else_is_as_it_was(data: Path) -> None:
    report = forget(data, wanted((), FORGOTTEN))
    assert (report.pages, report.versions, report.messages, report.queries) == (2, 6, 3, 2)
    assert (report.maps, report.finished) == (("pages",), True)
    nothing_is_left(data)
    is_sound(data)
    assert [each.name for each in (data / "cookies").iterdir()] == [f"{KEPT}@mark.json"]
    with closing(open_reading_store(DataFolder(data))) as store:
        assert {event.site for event in store.change_log(0, 99)} == {KEPT}


def test_the_audit_log_says_who_did_what_and_no_longer_to_what(data: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "access.db"
    shutil.copy(data / "access.db", elsewhere)
    forget(data, wanted((), FORGOTTEN), access=elsewhere)
    for path in (data / "access.db", elsewhere):
        with closing(Accounts(path)) as accounts:
            asked = [line.object for line in accounts.log() if line.action == "POST /check"]
        assert asked == [KEPT, "news (forgotten)", f"(forgotten), http://{KEPT}/"]
        assert FORGOTTEN.encode() not in path.read_bytes()


def test_waiting_commands_ask_for_the_rest(data: Path) -> None:
    forget(data, wanted((), FORGOTTEN))
    with closing(open_commands(DataFolder(data))) as commands:
        left = [command for _, command in commands.pending()]
    assert left == [CheckNow((f"http://{KEPT}/",)), CheckNow(site=KEPT), Pause()]


def test_what_is_asked_for_after_it_was_forgotten_goes_with_the_next_forget(data: Path) -> None:
    forget(data, wanted((), FORGOTTEN))
    with closing(Accounts(data / "access.db")) as accounts:
        accounts.record(Actor("ada", "user", "::1"), "POST /check", f"http://{FORGOTTEN}/{CANARY}", "failed: 409")
    assert find_remains(data, FORGOTTEN).found == ("access.db: table log", "access.db: its bytes")
    forget(data, wanted((), FORGOTTEN))
    nothing_is_left(data)


def test_a_key_for_the_pages_of_a_site_is_a_choice_of_its_owner(data: Path) -> None:
    with closing(Accounts(data / "access.db")) as accounts:
        accounts.add_key("box", KeyOptions(origins=[f"https://{FORGOTTEN}"]), Actor("ada", "user", "::1"))
    forget(data, wanted((), FORGOTTEN))
    remains = find_remains(data, FORGOTTEN)
    assert remains.found == ()
    assert "a key names it: that is a choice of yours, see 'levada keys list'" in remains.notes


def test_it_is_forgotten_on_every_shard(tmp_path: Path) -> None:
    data = build(tmp_path / "data", Settings().replace({"store.shards": 3, "store.key": "url"}))
    assert forget(data, wanted((), FORGOTTEN)).pages == 2
    nothing_is_left(data)
    with closing(open_reading_store(DataFolder(data))) as store:
        assert [document.url for document in store.scan()] == [f"http://{KEPT}/"]
        assert {event.site for event in store.change_log(0, 99)} == {KEPT}


def test_it_is_forgotten_on_a_server(tmp_path: Path, postgresql: str) -> None:
    data = build(tmp_path / "data", Settings().replace({"store.engine": "postgresql", "store.servers": [postgresql]}))
    assert "shard-0 on its server: the change log" in find_remains(data, CANARY).found
    assert forget(data, wanted((), FORGOTTEN)).pages == 2
    nothing_is_left(data)
    assert "files, logs and backups" in find_remains(data, CANARY).notes[0]
    with levada.open(data) as news:
        assert [row.url for row in news.rows()] == [f"http://{KEPT}/"]


def test_a_forgotten_page_leaves_its_site(data: Path) -> None:
    url = f"http://{FORGOTTEN}/{CANARY}"
    with levada.open(data) as news:
        assert news.forget(url, dry_run=True).versions == 3
        assert find_remains(data, url).found != ()
        assert news.forget(url).pages == 1
        assert news.forget(url).pages == 0
        with pytest.raises(NotFound):
            news.page(url)
        assert news.page(f"http://{FORGOTTEN}/").version == 3
    assert find_remains(data, url).found == ()


def test_old_versions_are_in_no_file(data: Path) -> None:
    report = forget(data, wanted((), FORGOTTEN, versions_beyond=1))
    assert (report.pages, report.versions) == (2, 4)
    assert find_remains(data, "secret 1").found == ()
    assert find_remains(data, "secret 2").found != ()
    assert find_remains(data, "harmless 1").found != ()


def test_every_point_is_known(data: Path) -> None:
    log = PointLog()
    forget(data, wanted((), FORGOTTEN), faults=log)
    assert set(log.points) == set(FORGET_POINTS)


@pytest.fixture(scope="module")
def killed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    root = tmp_path_factory.mktemp("killed")
    shutil.copytree(built, root / "data")
    command = [sys.executable, "-m", "tests.collection.forgotten_folder", str(root), *FORGET_POINTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return root, json.loads(done.stdout)


@pytest.mark.parametrize("point", FORGET_POINTS)
def test_killed_at_any_point_the_next_run_finishes_it(point: str, killed: tuple[Path, dict[str, int]]) -> None:
    root, ends = killed
    assert ends[point] == -signal.SIGKILL
    data = root / point
    begun = DataFolder(data).unfinished.exists()
    assert any(check.name == "forget" for check in folder_checks(data)) == begun
    forget(data, wanted((), FORGOTTEN))
    nothing_is_left(data)
    is_sound(data)


def test_killed_at_any_file_of_the_index_that_is_built_anew_the_next_run_finishes_it(
    built: Path, tmp_path: Path
) -> None:
    shutil.copytree(built, tmp_path / "data")
    command = [sys.executable, "-m", "tests.collection.forgotten_folder", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *ends, last = json.loads(done.stdout).items()
    assert len(ends) >= 5
    assert {end for _, end in ends} == {-signal.SIGKILL}
    assert last[1] == 0
    for point, _ in ends:
        forget(tmp_path / point, wanted(()))
        nothing_is_left(tmp_path / point)
        is_sound(tmp_path / point)


@pytest.mark.parametrize("point", ["forgetting.buried", "erase.after-commit", "forgetting.counts"])
def test_it_is_finished_without_being_named_again(point: str, data: Path) -> None:
    with pytest.raises(RuntimeError):
        forget(data, wanted((), FORGOTTEN), faults=FaultAt(point, RuntimeError()))
    forget(data, wanted(()))
    nothing_is_left(data)
    is_sound(data)


def test_a_full_disk_while_compacting_says_what_to_do_and_loses_nothing(data: Path) -> None:
    full = FaultAt("compact.begin", OSError(errno.ENOSPC, "no space left on device"))
    with pytest.raises(StoreFull, match="free some space"):
        forget(data, wanted((), FORGOTTEN), faults=full)
    assert [check.found for check in folder_checks(data) if check.name == "forget"] == ["begun, and not finished"]
    forget(data, wanted(()))
    nothing_is_left(data)
    is_sound(data)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (wanted(("http://nowhere.example/",)), "no page http://nowhere.example/ is known"),
        (wanted((), "nowhere.example"), "no site nowhere.example is known"),
    ],
)
def test_what_is_not_known_is_refused_and_nothing_is_deleted(what: object, said: str, data: Path) -> None:
    before = len(files_with(data, FORGOTTEN))
    with pytest.raises(NotFound, match=said):
        forget(data, what)  # type: ignore[arg-type]
    assert len(files_with(data, FORGOTTEN)) == before
    assert not DataFolder(data).unfinished.exists()


def test_nothing_is_forgotten_while_pages_move(data: Path) -> None:
    with only_mover(DataFolder(data)), pytest.raises(StoreLocked, match="being moved"):
        forget(data, wanted((), FORGOTTEN))


def test_what_does_not_fit_together_is_refused(data: Path) -> None:
    for wrong in (
        {"urls": ("http://a/",), "site": "a"},
        {"urls": (), "older_than": -1.0},
        {"urls": (), "versions_beyond": 0},
        {"urls": (), "retention": True, "versions_beyond": 3},
    ):
        with pytest.raises(UsageError):
            wanted(**wrong)
    with pytest.raises(UsageError, match="name what to forget"):
        forget(data, wanted(()))


def test_a_folder_that_may_not_be_written_is_named_and_nothing_is_deleted(data: Path) -> None:
    before = contents(data)
    for path in (data, *data.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        command = ["forget", "--site", FORGOTTEN, "--yes", "--data"]
        said = one_line(levada_command(*command, data, cwd=data.parent, through=without_root()), 1)
        assert f"{data}" in said
        assert "write" in said
    finally:
        for path in (data, *data.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert contents(data) == before


def test_a_server_that_does_not_allow_deleting_is_named_and_the_rest_is_done_later(
    tmp_path: Path, postgresql: str
) -> None:
    name = f"careful_{os.getpid()}"
    role, options = Identifier(name), quote(f"-c role={name}")
    with psycopg.connect(postgresql, autocommit=True) as admin:
        admin.execute(SQL("CREATE ROLE {}").format(role))
        admin.execute(SQL("GRANT CREATE ON DATABASE {} TO {}").format(Identifier(admin.info.dbname), role))
        try:
            servers = [f"{postgresql}?options={options}"]
            settings = Settings().replace({"store.engine": "postgresql", "store.servers": servers})
            data = build(tmp_path / "data", settings)
            (place,) = shard_places(DataFolder(data))
            tables = SQL("DELETE ON ALL TABLES IN SCHEMA {}").format(Identifier(place.schema))
            admin.execute(SQL("REVOKE {} FROM {}").format(tables, role))
            with pytest.raises(
                StoreError, match=r"does not allow this .permission denied.*as a user who may"
            ) as failed:
                forget(data, wanted((), FORGOTTEN))
            assert "\n" not in str(failed.value)
            left = [check.found for check in folder_checks(data) if check.name == "forget"]
            assert left == ["begun, and not finished"]
            admin.execute(SQL("GRANT {} TO {}").format(tables, role))
            forget(data, wanted(()))
            nothing_is_left(data)
        finally:
            admin.execute(SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(role))


@pytest.mark.parametrize("size", ["300k", "600k"])
def test_a_disk_too_small_to_compact_is_told_before_that_begins(size: str, data: Path, tmp_path: Path) -> None:
    used = sum(each.stat().st_size for each in data.rglob("*") if each.is_file())
    with small_disk(tmp_path / "disk", str(used + int(size[:-1]) * 1024)) as disk:
        there = Path(shutil.copytree(data, disk / "data"))
        with pytest.raises(StoreError, match=r"make room and run 'levada forget'|free some space"):
            forget(there, wanted((), FORGOTTEN))
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        forget(there, wanted(()) if DataFolder(there).unfinished.exists() else wanted((), FORGOTTEN))
        nothing_is_left(there)
        is_sound(there)


def test_a_start_takes_a_forgotten_site_up_again_and_says_so(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    forget(data, wanted((), FORGOTTEN))
    with levada.open(data) as news:
        assert news.add(f"http://{FORGOTTEN}/") == 1
        assert "was forgotten, and is crawled again" in caplog.text
        assert [site.site for site in news.sites() if site.admitted] == [KEPT, FORGOTTEN]
