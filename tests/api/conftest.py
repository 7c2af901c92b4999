"""A small bundled web, and a collection of some of its sites that each test has for itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import levada


class Web(msgspec.Struct, frozen=True):
    """A web that is being served, and a collection of one of its sites."""

    start: list[str]
    config: Path
    crawled: Path


@pytest.fixture(scope="session")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    command = [sys.executable, "-m", "levada.demo.server", "--pages", "60", "--no-hostile", "--with-parent"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdin is not None
    said = json.loads(server.stdout.readline())
    crawled = tmp_path_factory.mktemp("web") / "news"
    with levada.open(crawled, levada.Settings.load(said["config"])) as news:
        news.add(said["start"][0])
        news.crawl(once=True)
    yield Web(said["start"], Path(said["config"]), crawled)
    server.stdin.close()
    server.wait(20)
    server.stdout.close()


@pytest.fixture
def here(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the collection `news` and a levada.toml that allows this web."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(web.crawled, "news")
    shutil.copy(web.config, "levada.toml")
    return tmp_path


@pytest.fixture
def news(here: Path) -> Iterator[levada.Collection]:
    with levada.open("news") as opened:
        yield opened
