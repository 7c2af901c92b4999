"""Settings stay with their collection, and a running crawl obeys a changed one."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from levada.collection.live import LiveStatus, read_live
from levada.core.folder import DataFolder
from levada.demo.child import Web, serving
from tests.story.commands import levada, one_line, started, what_it_said

PATIENCE = 60.0  # seconds until a wait is given up


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving("--speed", "1", "--pages", "30", "--no-hostile") as running:
        yield running


def allowed(web: Web) -> str:
    (line,) = [line for line in Path(web.config).read_text().splitlines() if line.startswith("allow")]
    return line.partition('"')[2].rstrip('"]')


def test_a_crawl_without_the_config_of_the_first_one_is_refused_nothing(web: Web, tmp_path: Path) -> None:
    first = levada("crawl", *web.start, "--config", web.config, "--max-pages", "5", "--once", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "kept with the collection: " in first.stdout
    second = levada("crawl", "--once", "--json", cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    report = json.loads(second.stdout)
    assert (report["fetched"] > 5, "address" in report["refused"]) == (True, False)
    assert second.stderr == "", "nothing changed, so nothing is said of it"


def test_a_changed_flag_or_file_is_said_once_and_kept(web: Web, tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text(Path(web.config).read_text() + "max_concurrent = 3\n")
    run = ("crawl", *web.start, "--once", "--max-pages", "1")
    assert levada(*run, "--config", config, cwd=tmp_path).returncode == 0
    assert levada("crawl", "--once", "--max-pages", "1", "--per-hour", "5000", cwd=tmp_path).stderr == (
        "budget.per_hour: 0 -> 5000, kept with the collection\n"
    )
    config.write_text(Path(web.config).read_text())
    again = levada("crawl", "--once", "--max-pages", "1", "--config", config, cwd=tmp_path)
    assert again.stderr == "politeness.max_concurrent: 3 -> 2, the default\n"
    assert DataFolder(tmp_path / "levada-data").settings().budget.per_hour == 5000


def test_a_damaged_settings_file_stops_a_crawl_and_is_not_written_over(web: Web, tmp_path: Path) -> None:
    assert levada("crawl", *web.start, "--config", web.config, "--max-pages", "1", cwd=tmp_path).returncode == 0
    damaged = tmp_path / "levada-data" / "settings.json"
    damaged.write_text('{"politeness": {"delay": ')
    for command in (("crawl",), ("search", "x"), ("settings",), ("settings", "set", "politeness.delay=1")):
        assert "settings.json cannot be read" in one_line(levada(*command, cwd=tmp_path), 1)
    assert damaged.read_text() == '{"politeness": {"delay": '


def until(data: Path, is_so: Callable[[LiveStatus], bool]) -> LiveStatus:
    """The live status of the crawl, once it is so."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        status = read_live(data / "live.json")
        if status is not None and is_so(status):
            return status
        time.sleep(0.1)
    pytest.fail(f"it never came to be so: {read_live(data / 'live.json')}")


def test_a_running_crawl_obeys_a_changed_budget_and_guard(web: Web, tmp_path: Path) -> None:
    config, data = tmp_path / "quick.toml", tmp_path / "levada-data"
    revisits = "[revisit]\nfloor = 1\nfirst = 1\nceiling = 2\ngone = 1\nretry = 1\n"
    config.write_text(
        Path(web.config).read_text().replace("per_page_per_day = 24.0", "per_page_per_day = 90000") + revisits
    )
    running = started("crawl", *web.start, "--config", config, cwd=tmp_path)
    try:
        until(data, lambda live: live.visits > 20)
        said = levada("settings", "set", "budget.per_hour=360000", cwd=tmp_path).stdout
        assert said.endswith("kept with the collection; the running crawl takes it up within a second\n")
        until(data, lambda live: live.per_hour == 360000)
        levada("settings", "set", "guard.allow=127.0.0.1:1", "politeness.delay=0.01", cwd=tmp_path)
        until(data, lambda live: live.refused.get("address", 0) > 20)
        levada("settings", "set", f"guard.allow={allowed(web)}", cwd=tmp_path)
        refused = until(data, lambda live: True)
        until(data, lambda live: live.fetched > refused.fetched + 50)
    finally:
        os.killpg(running.pid, signal.SIGINT)
    what_it_said(running)
    assert running.returncode == 0
    kept = DataFolder(data).settings()
    assert (kept.budget.per_hour, kept.politeness.delay, kept.guard.allow) == (360000, 0.01, (allowed(web),))
