"""A crawl over several shards, and pages that move while it runs: nothing is lost, nothing is doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from levada.collection.search import open_search
from levada.core.folder import DataFolder
from levada.core.search_records import Query
from levada.demo.child import Web, serving
from levada.demo.world import DemoWorld
from levada.follow.counter import open_trends
from levada.store.opening import open_shard_reader, shard_folders, shard_places
from levada.store.sqlite import SqliteStore
from tests.invariants import check_invariants
from tests.story.commands import levada, one_line

pytest_plugins = ["tests.servers.fixtures"]

ROOT = Path(__file__).parents[2]
PAGES = 80


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving("--speed", "1", "--pages", str(PAGES), "--no-hostile") as running:
        yield running


def started(*arguments: str | Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "levada", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def kill_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether it was still at work."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def check_whole(data: Path, world: DemoWorld) -> None:
    """Every page of the web once, on one shard; index and counts know the same pages and no others."""
    folder = DataFolder(data)
    urls: Counter[str] = Counter()
    for shard in shard_folders(folder):
        with closing(open_shard_reader(shard)) as store:
            if isinstance(store, SqliteStore):
                check_invariants(store)
            store.check()
            assert store.fenced() == []
            assert store.undelivered(1) == []
            urls.update(url for _, url in store.urls_after(0, 1_000_000))
    assert max(urls.values()) == 1, "held twice"
    with open_search(folder) as (collection, index):
        stored = [document.url for document in collection.store.scan()]
        kept = {page.number for url in stored if (page := world.find(url)) is not None}
        assert kept == {page.number for page in world.pages}, "pages lost"
        assert len(stored) == len(set(stored)) == len(world.pages)
        assert all(len(collection.store.versions(url)) == 1 for url in stored)
        found = [hit.url for hit in index.search(Query("-nosuchword", limit=5_000)).hits]
        assert sorted(found) == sorted(stored), "index and documents disagree"
    with open_trends(folder) as (_, trends, _):
        assert trends.frequency("") == len(stored), "counts and documents disagree"


def test_pages_move_to_other_shards_under_load_and_under_kills(web: Web, tmp_path: Path) -> None:
    data, config = tmp_path / "data", tmp_path / "levada.toml"
    settings = Path(web.config).read_text() + "\n[store]\nshards = 2\nlease_seconds = 2.0\n"
    slow = settings.replace("[politeness]\ndelay = 0\n", "[politeness]\ndelay = 0.1\nmax_concurrent = 1\n")
    assert slow != settings
    config.write_text(slow)
    crawl: tuple[str | Path, ...] = ("crawl", "--once", "--data", data, "--config", config, *web.start)
    move: tuple[str | Path, ...] = ("shard", "apply", "--data", data, "--shards", "4")
    assert kill_after(started(*crawl), 1.5)
    crawling = started(*crawl)
    # A fast machine has moved everything before half a second is over, a busy one has hardly begun.
    killed = sum(kill_after(started(*move), seconds) for seconds in (0.12, 0.2, 0.3, 0.45, 0.7))
    os.killpg(crawling.pid, signal.SIGKILL)
    crawling.wait()
    crawling = started(*crawl)
    moved = levada(*move, cwd=tmp_path)
    assert moved.returncode == 0, moved.stderr
    assert len(shard_folders(DataFolder(data))) == 4
    os.killpg(crawling.pid, signal.SIGKILL)
    crawling.wait()
    config.write_text(settings.replace("shards = 2", "shards = 4"))
    last = started(*crawl)
    assert last.wait(timeout=60) == 0
    assert killed >= 2, f"only {killed} moves were still at work when they were killed"
    check_whole(data, DemoWorld.build(web.seed, web.pages))


def test_what_cannot_be_done_is_said_in_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert "no collection" in one_line(levada("shard", "apply", "--data", data, cwd=tmp_path), 3)
    assert "--key" in one_line(levada("shard", "apply", "--data", data, "--key", "colour", cwd=tmp_path), 2)
    data.mkdir()
    (data / "placement.json").write_text("{}")
    assert "cannot be read" in one_line(levada("search", "x", "--data", data, cwd=tmp_path), 1)


def test_a_collection_moves_from_files_to_servers_and_is_crawled_on_there(
    web: Web, tmp_path: Path, postgresql_trio: list[str]
) -> None:
    data, config = tmp_path / "data", tmp_path / "levada.toml"
    settings = Path(web.config).read_text()
    config.write_text(settings + "\n[store]\nshards = 2\n")
    crawl: tuple[str | Path, ...] = ("crawl", "--once", "--data", data, "--config", config, *web.start)
    made = levada(*crawl, "--max-pages", "60", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    servers = [argument for server in postgresql_trio for argument in ("--server", server)]
    moved = levada("shard", "apply", "--data", data, "--shards", "4", *servers, "--json", cwd=tmp_path)
    assert moved.returncode == 0, moved.stderr
    places = shard_places(DataFolder(data))
    assert [place.server for place in places] == ["", "", *postgresql_trio, postgresql_trio[0]]
    config.write_text(settings)
    again = levada(*crawl, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    check_whole(data, DemoWorld.build(web.seed, web.pages))
    nowhere = data / "placement.json"
    nowhere.write_text(nowhere.read_text().replace(postgresql_trio[1], "postgresql://127.0.0.1:9/none"))
    found = levada("search", "site:localhost", "--data", data, "--limit", "200", "--json", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert len(json.loads(found.stdout)["hits"]) == PAGES
    assert "shard 3 cannot be reached" in found.stderr
    assert json.loads(found.stdout)["partial"]
    assert "shard 3 cannot be reached" in one_line(levada("export", "--jsonl", "--data", data, cwd=tmp_path), 1)
