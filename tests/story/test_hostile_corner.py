"""The hostile corner: every case ends with its reason, in little memory, and the neighbours are crawled."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec

from levada.core.reasons import Reason
from levada.core.records import PageState
from levada.demo.child import Web, serving
from levada.demo.hostile import HOSTILE_CASES
from levada.demo.world import DemoWorld
from levada.store.base import StoreLimits
from levada.store.faults import NoFaults
from levada.store.sqlite import SqliteStore
from levada.store.sqlite.database import SqliteDatabase
from tests.story.measured_crawl import Measured

ROOT = Path(__file__).parents[2]
MOST_MEGABYTES = 300.0
MOST_PAGES = 300  # of the whole corner: what the traps may cost
# Kept, and nothing to complain of: session ids are taken out of addresses, so that five articles remain; of a
# robots.txt 500 KiB are read; a body ends where it says.
KEPT = {"session", "robots-endless", "too-long", "charset-1254", "charset-utf7"}

_RECORDED = """
WITH here AS (SELECT p.id FROM pages p JOIN sites s ON s.id = p.site_id WHERE s.site = ?1)
SELECT v.reason FROM visited v WHERE v.reason IS NOT NULL AND v.page_id IN here
UNION SELECT v.reason FROM visited v JOIN pages p ON p.id = v.page_id
    WHERE v.reason IS NOT NULL AND p.found_on IN here
UNION SELECT r.reason FROM refusals r JOIN sites s ON s.id = r.site_id WHERE s.site = ?1
"""


def test_every_case_ends_with_its_reason_and_the_neighbours_are_crawled(tmp_path: Path) -> None:
    with serving("--speed", "1") as web:
        measured = _crawl(tmp_path, web)
    print(f"memory in MB: {measured.megabytes}")
    assert measured.report.stopped == "done"
    assert set(measured.megabytes) == {"main", "parser child", "index follower"}
    assert max(measured.megabytes.values()) < MOST_MEGABYTES
    database = tmp_path / "levada.db"
    assert not _unmet(database, web)
    with closing(SqliteStore.open_reader(database)) as store:
        documents = [document.url for document in store.scan()]
        for case in HOSTILE_CASES:
            if case.name in KEPT:
                record = store.page(case.url(web.port))
                assert record is not None
                assert record.state is PageState.LIVE, case.name
    world = DemoWorld.build(web.seed, web.pages)
    ordinary = {page.number for url in documents if (page := world.find(url)) is not None}
    assert ordinary == {page.number for page in world.pages}, "some neighbours were not crawled"
    assert len(documents) - len(ordinary) < MOST_PAGES
    assert Reason.INTERNAL not in measured.report.failed


def _crawl(data: Path, web: Web) -> Measured:
    command = [sys.executable, "-m", "tests.story.measured_crawl", str(data), web.config, *web.start]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=100)
    assert ended.returncode == 0, ended.stderr.decode()
    assert ended.stderr == b""
    return msgspec.json.decode(ended.stdout, type=Measured)


def _unmet(database: Path, web: Web) -> dict[str, set[str]]:
    """The cases that ended without one of their reasons, and what was recorded instead."""
    unmet = {}
    with closing(SqliteDatabase(database, StoreLimits(), NoFaults(), read_only=True)) as file:
        for case in HOSTILE_CASES:
            recorded = {row[0] for row in file.rows(_RECORDED, (f"{case.host}:{web.port}",))}
            if case.name not in KEPT and not recorded & case.reasons:
                unmet[case.name] = recorded
    return unmet
