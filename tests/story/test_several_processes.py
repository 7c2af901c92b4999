"""A crawl of the bundled web by several processes over a real RabbitMQ, with workers killed on the way."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from levada.search.tantivy.index import TantivyIndex
from levada.store.sqlite import SqliteStore

pytest_plugins = ["tests.servers.fixtures"]

PAGES = 150
SECONDS = 80.0


@contextmanager
def process(*arguments: str, folder: Path, **more: Any) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "levada", *arguments]
    with subprocess.Popen(command, cwd=folder, text=True, **more) as running:
        try:
            yield running
        finally:
            running.terminate()


def workers_of(control: int) -> list[int]:
    """The children of the control that are workers, read from the system's own list."""
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(control)], capture_output=True, text=True)
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if " work " in line]


def stats(database: Path) -> dict[str, int]:
    if not database.exists():
        return {}
    line = sqlite3.connect(database, timeout=10)
    try:
        counts: dict[str, int] = dict(line.execute("SELECT name, n FROM counters"))
        (leased,) = line.execute("SELECT count(*) FROM leases WHERE live = 1").fetchone()
        (versions,) = line.execute("SELECT count(*) FROM versions").fetchone()
        (documents,) = line.execute("SELECT count(*) FROM pages WHERE version > 0").fetchone()
    except sqlite3.OperationalError:  # not made yet
        return {}
    finally:
        line.close()
    return counts | {"leased": leased, "held_versions": versions, "documents": documents}


def wait_for(database: Path, stored: int, *, whole: bool = False) -> dict[str, int]:
    """Until so many are stored; or all of them, and nothing is under way."""
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        found = stats(database)
        if found.get("stored", 0) >= stored and not (whole and (found["unvisited"] or found["leased"])):
            return found
        time.sleep(0.1)
    raise AssertionError(f"it did not get there: {stats(database)}")


def test_killed_workers_and_a_killed_control_lose_nothing_and_double_nothing(rabbitmq: str, tmp_path: Path) -> None:
    data, out = tmp_path / "collection", tmp_path / "rounds"
    words = ("demo", "--serve-only", "--no-hostile", "--pages", str(PAGES), "--speed", "1")
    with process(*words, folder=tmp_path, stdout=subprocess.PIPE) as web, out.open("w") as said:
        assert web.stdout is not None
        told = json.loads(web.stdout.readline())
        starts = [word for url in told["start"] for word in ("--start", url)]
        limits = ("--fetch", "1,2", "--catalog", "1,1", "--period", "0.3", "--json")
        control_words = ("control", "--data", str(data), "--config", told["config"], *limits, *starts)
        environment = {**os.environ, "LEVADA_RABBITMQ": rabbitmq}
        with process(*control_words, folder=tmp_path, env=environment, stdout=said) as control:
            wait_for(data / "levada.db", 20)
            for pid in workers_of(control.pid):
                os.kill(pid, signal.SIGKILL)
            wait_for(data / "levada.db", 60)
            control.kill()
        with process(*control_words, folder=tmp_path, env=environment, stdout=said) as control:
            found = wait_for(data / "levada.db", PAGES, whole=True)
            control.send_signal(signal.SIGTERM)
            assert control.wait(timeout=60) == 0
    assert found["held_versions"] == found["documents"] == found["stored"]
    rounds = [json.loads(line) for line in out.read_text().splitlines()]
    assert {stage["stage"] for stage in rounds[-1]["stages"]} == {"fetch", "catalog"}
    index, store = TantivyIndex(data / "index", writer=True), SqliteStore.open_reader(data / "levada.db")
    try:
        assert index.position() == store.newest_seq() > 0
    finally:
        index.close()
        store.close()
