"""A collection on PostgreSQL and OpenSearch, served by machines that have nothing but the addresses of both."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from levada.collection.search import open_search
from levada.core.folder import DataFolder
from levada.core.search_records import Query
from levada.demo.child import Web, serving
from tests.servers.private import free_ports
from tests.story.commands import levada, one_line

pytest_plugins = ["tests.servers.fixtures"]

QUERIES = ("termos", "gün teslimat", "termos -lang:en", "url:sayfa", "teslim*")


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving("--speed", "1", "--pages", "60", "--no-hostile") as running:
        yield running


@pytest.fixture
def settings(web: Web, opensearch: str) -> str:
    plugin = f'[plugins.opensearch]\nhosts = ["{opensearch}"]\n'
    return f'{Path(web.config).read_text()}\n[index]\nengine = "opensearch"\n{plugin}'


def crawled(folder: Path, web: Web, settings: str, *words: str) -> None:
    config = folder / "levada.toml"
    config.write_text(settings)
    done = levada("crawl", "--once", *web.start[:4], "--data", "news", "--config", config, *words, cwd=folder)
    assert done.returncode == 0, done.stderr


def asked(address: str, path: str, method: str = "GET") -> Any:
    request = urllib.request.Request(f"{address}api/v1/{path}", method=method, data=b"{}" if method == "POST" else None)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


@contextmanager
def server(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    folder.mkdir()
    command = [sys.executable, "-m", "levada", "serve", "--port", "0", "--json", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield running, json.loads(running.stdout.readline())["url"]
        finally:
            running.kill()


def hits(folder: Path, query: str) -> list[str]:
    with open_search(DataFolder(folder)) as (_, index):
        return [hit.url for hit in index.search(Query(query)).hits]


def test_the_same_pages_are_found_as_with_the_index_on_this_machine(web: Web, tmp_path: Path, settings: str) -> None:
    crawled(tmp_path, web, settings)
    there = {query: hits(tmp_path / "news", query) for query in QUERIES}
    assert all(there.values()), there
    assert levada("settings", "set", "index.engine=tantivy", "--data", "news", cwd=tmp_path).returncode == 0
    here = {query: hits(tmp_path / "news", query) for query in QUERIES}
    assert {query: (found[0], sorted(found)) for query, found in there.items()} == {
        query: (found[0], sorted(found)) for query, found in here.items()
    }


def test_machines_without_the_data_folder_serve_one_collection(
    web: Web, tmp_path: Path, settings: str, postgresql: str
) -> None:
    crawled(tmp_path, web, f'{settings}\n[store]\nservers = ["{postgresql}"]\nshards = 2\n')
    name = (tmp_path / "news" / "collection").read_text()
    words = ("--store", postgresql, "--collection", name)
    own = hits(tmp_path / "news", "termos")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    said = json.loads(levada("search", "termos", "--json", *words, cwd=elsewhere).stdout)
    assert [hit["url"] for hit in said["hits"]] == own
    assert all(hit["snippet"] for hit in said["hits"])
    with ExitStack() as opened:
        first, one = opened.enter_context(server(tmp_path / "one", *words))
        _, other = opened.enter_context(server(tmp_path / "other", *words))
        for address in (one, other):
            assert [hit["url"] for hit in asked(address, "search?q=termos")["hits"]] == own
        assert asked(one, "pause", "POST")["waiting"] == 1
        assert asked(other, "pause", "POST")["waiting"] == 2
        first.kill()
        for _ in range(10):
            assert [hit["url"] for hit in asked(other, "search?q=termos")["hits"]] == own
    assert not list(elsewhere.iterdir())
    assert "paused" in one_line(levada("check", own[0], "--data", "news", cwd=tmp_path), 3)


def test_a_crawl_without_its_search_server_stores_everything_and_says_what_waits(
    web: Web, tmp_path: Path, settings: str, opensearch: str
) -> None:
    (port,) = free_ports(1)
    config = tmp_path / "levada.toml"
    config.write_text(settings.replace(opensearch, f"http://127.0.0.1:{port}"))
    done = levada("crawl", "--once", *web.start[:2], "--data", "news", "--config", config, cwd=tmp_path)
    assert f"OpenSearch at http://127.0.0.1:{port} cannot be reached" in done.stderr
    assert "waits in the change log" in done.stderr
    assert done.returncode == 1
    assert "cannot be reached" in one_line(levada("search", "termos", "--data", "news", cwd=tmp_path), 1)
    assert "cannot be reached" in levada("doctor", "--data", "news", cwd=tmp_path).stdout
    hosts = json.dumps([opensearch])
    assert (
        levada("settings", "set", f"plugins.opensearch.hosts={hosts}", "--data", "news", cwd=tmp_path).returncode == 0
    )
    assert hits(tmp_path / "news", "termos")


def test_forgotten_pages_leave_the_index_too(web: Web, tmp_path: Path, settings: str, opensearch: str) -> None:
    crawled(tmp_path, web, settings)
    name = (tmp_path / "news" / "collection").read_text()
    gone, *_ = found = hits(tmp_path / "news", "termos")
    done = levada("forget", gone, "--yes", "--data", "news", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert hits(tmp_path / "news", "termos") == found[1:]
    with urllib.request.urlopen(f"{opensearch}/_cat/indices/levada-{name}-0*?h=index", timeout=30) as answer:
        assert answer.read().decode().split() == [f"levada-{name}-000002"], "words of deleted pages stay in files"
