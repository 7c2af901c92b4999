"""A crawl into PostgreSQL is killed repeatedly, and its server once: nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from levada.demo.child import Web, serving
from levada.demo.world import DemoWorld
from tests.servers.postgresql import Cluster, new_cluster, own_folder
from tests.story.collections import check_whole

pytest_plugins = ["tests.servers.fixtures"]

ROOT = Path(__file__).parents[2]
KILLS = 6
SLOWLY = "[politeness]\ndelay = 1\nmax_concurrent = 1\n"  # no machine is through before the last kill


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving("--speed", "1", "--pages", "150", "--no-hostile") as running:
        yield running


@pytest.fixture
def cluster(postgresql: str, tmp_path: Path) -> Iterator[Cluster]:
    """One that may be killed: nobody else uses it, unlike the one that says whether it is installed."""
    folder = own_folder(tmp_path)
    made = new_cluster(folder / "data")
    made.start()
    yield made
    made.kill()
    shutil.rmtree(folder, ignore_errors=True)


class Crawls:
    """`levada crawl --once`, each in a process group of its own, so that all of it can be killed at once."""

    def __init__(self, folder: Path, web: Web, cluster: Cluster) -> None:
        self.data = folder / "data"
        self._config = folder / "levada.toml"
        self._web = web
        self._store = f'\n[store]\nservers = ["{cluster.address}"]\naway_seconds = 2.0\n'

    def start(self, *, slowly: bool) -> subprocess.Popen[str]:
        settings = Path(self._web.config).read_text()
        if slowly:
            settings = settings.replace("[politeness]\ndelay = 0\n", SLOWLY)
            assert SLOWLY in settings
        self._config.write_text(settings + self._store)
        command = [sys.executable, "-m", "levada", "crawl", "--once"]
        options = ["--data", str(self.data), "--config", str(self._config)]
        return subprocess.Popen(
            [*command, *options, *self._web.start],
            cwd=ROOT,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )


def still_at_work(process: subprocess.Popen[str], seconds: float) -> bool:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


@pytest.mark.timeout(600)
def test_kills_of_a_crawl_and_of_its_server_lose_nothing_and_double_nothing(
    web: Web, cluster: Cluster, tmp_path: Path
) -> None:
    chance = random.Random(77)
    crawls = Crawls(tmp_path, web, cluster)
    killed, server_killed = 0, False
    for turn in range(KILLS):
        process = crawls.start(slowly=True)
        assert process.stderr is not None
        with process.stderr:
            if still_at_work(process, chance.uniform(0.5, 1.2)):
                killed += 1
                if turn >= KILLS // 2 and not server_killed:
                    server_killed = True
                    _server_goes(cluster, process)
                else:
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    last = crawls.start(slowly=False)
    said = last.communicate(timeout=200)[1]
    assert last.returncode == 0, said
    assert server_killed
    assert killed == KILLS, f"only {killed} runs were still at work when they were killed"
    check_whole(crawls.data, DemoWorld.build(web.seed, web.pages))


def _server_goes(cluster: Cluster, process: subprocess.Popen[str]) -> None:
    """The crawl says so, waits, says so again and ends; the server is started again."""
    cluster.crash()
    said = process.communicate(timeout=100)[1]
    cluster.start()
    assert process.returncode == 1, said
    waiting, ended = said.splitlines()
    assert "waiting up to 2 s" in waiting
    assert "is away" in ended
