"""A data folder that an older Levada wrote still opens, and everything that was in it is there.

`tests/data/README.md` says what is in the folders and how they were made.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from levada.demo.child import serving
from tests.story.commands import levada

DATA = Path(__file__).parents[1] / "data"
STORED: dict[str, Any] = json.loads((DATA / "older-folder.json").read_text(encoding="utf-8"))
OFTEN_CHANGED = "http://boun.localhost:18417/"
SOON_AFTER = 1_795_000_000.0  # some hours after the folders were written
PORT = 18417  # of the web that they were crawled from: it is part of every stored address


@pytest.fixture
def older(tmp_path: Path) -> Path:
    with tarfile.open(DATA / "older-folder.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def facts(*arguments: str | Path, cwd: Path, codes: tuple[int, ...] = (0,)) -> Any:
    ended = levada(*arguments, "--json", cwd=cwd)
    assert ended.returncode in codes, ended.stderr
    return json.loads(ended.stdout)


def exported(folder: str, cwd: Path) -> dict[str, dict[str, Any]]:
    ended = levada("export", "--jsonl", "--data", folder, cwd=cwd)
    assert ended.returncode == 0, ended.stderr
    return {row["url"]: row for row in map(json.loads, ended.stdout.splitlines())}


@contextmanager
def served(folder: str, cwd: Path) -> Iterator[str]:
    """The address of its API."""
    command = [sys.executable, "-m", "levada", "serve", "--data", folder, "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"].rstrip("/") + "/api/v1"
        finally:
            process.terminate()


def answer(url: str) -> Any:
    with urlopen(url, timeout=20) as got:
        return json.load(got)


@pytest.mark.parametrize("folder", ["plain", "sharded"])
def test_every_page_is_there_with_its_text(older: Path, folder: str) -> None:
    rows = exported(folder, older)
    assert {
        url: (row["title"], row["words"], row["version"], hashlib.sha256(row["text"].encode()).hexdigest()[:16])
        for url, row in rows.items()
    } == {url: (each["title"], each["words"], each["version"], each["text"]) for url, each in STORED.items()}


@pytest.mark.parametrize("folder", ["plain", "sharded"])
def test_it_is_searched_compared_and_explained(older: Path, folder: str) -> None:
    assert facts("search", "istanbul", "--data", folder, cwd=older)["total"] == 6
    assert facts("search", "lang:en a", "--data", folder, cwd=older)["total"] == 2

    versions = facts("diff", OFTEN_CHANGED, "--versions", "--data", folder, cwd=older)["versions"]
    assert [[each["version"], each["words"]] for each in versions] == STORED[OFTEN_CHANGED]["versions"]
    change = facts("diff", OFTEN_CHANGED, "--data", folder, cwd=older)
    assert (change["from"]["version"], change["to"]["version"], change["similarity"]) == (3, 4, 0.59375)
    assert (change["removed"], change["added"]) == (2, 2)

    why = facts("why", OFTEN_CHANGED, "--data", folder, cwd=older)
    assert (why["visits"], why["state"], why["how"], why["policy"]) == (4, "live", "seed", "learned")
    assert [visit["outcome"] for visit in why["history"]] == ["first", "changed", "changed", "changed"]
    assert why["history"][-1]["said"] == ["dated", "date-moved"]

    counted = facts("trends", "--data", folder, cwd=older, codes=(0, 3))["counting"]
    assert counted["position"] == 41 or folder == "sharded"
    balance = facts("trends", "--balance", "--data", folder, cwd=older)
    assert balance["balance"][0]["method"] == "levelled"


def test_commands_webhook_and_status_are_there(older: Path) -> None:
    with served("plain", older) as api:
        assert answer(f"{api}/budget") == {"paused": False, "per_hour": 360_000}
        (hook,) = answer(f"{api}/webhooks")["hooks"]
        assert (hook["url"], hook["words"], hook["least"]) == ("https://example.org/hook", "istanbul", 0.25)
        stats = answer(f"{api}/status")["standing"]
        assert (stats["sites"], stats["known"], stats["stored"], stats["versions"]) == (23, 52, 24, 41)
        assert answer(f"{api}/page?url={quote(OFTEN_CHANGED)}")["version"] == 4
        assert len(answer(f"{api}/changes?limit=500")["changes"]) == 41


def test_its_warm_map_is_read(older: Path) -> None:
    found = facts("load", "get", "pages", OFTEN_CHANGED, "--to", "plain/maps", cwd=older)["found"]
    assert found[OFTEN_CHANGED][4:7] == [STORED[OFTEN_CHANGED]["title"], 106, 4]
    status = facts("load", "status", "pages", "--to", "plain/maps", cwd=older)
    assert (status["state"], status["rows"], status["keys"]) == ("published", 52, 52)


def test_the_crawl_goes_on_with_the_older_settings(older: Path) -> None:
    config = older / "levada.toml"
    clock = f"[clock]\nspeed = 1.0\norigin = {SOON_AFTER}\nstarted = {time.time()}\n"
    config.write_text(f"{config.read_text(encoding='utf-8')}\n{clock}", encoding="utf-8")
    web = ("--port", str(PORT), "--speed", "1000", "--pages", "24", "--page-bytes", "2000", "--no-hostile")
    with serving(*web):
        for folder in ("plain", "sharded"):
            codes = (0, 1) if folder == "plain" else (0,)  # 1: its webhook wants a change, and nobody is there
            report = facts("crawl", "--once", "--data", folder, "--config", config, cwd=older, codes=codes)
            assert (report["stopped"], report["failed"], report["new"]) == ("done", {}, 0)
            assert report["changed"] + report["unchanged"] == 48
    for folder in ("plain", "sharded"):
        rows = exported(folder, older)
        assert rows.keys() == STORED.keys()
        assert all(row["version"] >= STORED[url]["version"] for url, row in rows.items())
        assert facts("why", OFTEN_CHANGED, "--data", folder, cwd=older)["visits"] == 5
    with served("plain", older) as api:
        assert answer(f"{api}/budget") == {"paused": False, "per_hour": 240_000}, "the commands were executed"
