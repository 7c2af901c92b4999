"""Two controls share a collection; one is killed, then the server of the store goes away for a moment."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from levada.collection.commands import open_commands
from levada.core.commands import Pause, Resume
from levada.core.folder import DataFolder
from levada.demo.child import Web, serving
from levada.demo.world import DemoWorld
from tests.servers.postgresql import Cluster, new_cluster, own_folder
from tests.servers.private import free_ports
from tests.story.test_several_machines import _is_paused, _until, check_whole, health, machines, stats, wait_for

pytest_plugins = ["tests.servers.fixtures"]

PAGES = 100
NONE = ("--fetch", "0,0", "--catalog", "0,0", "--period", "0.3")


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving("--speed", "1", "--pages", str(PAGES), "--no-hostile") as running:
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


def test_two_controls_share_a_crawl_that_outlives_one_of_them_and_a_server_that_goes_away(
    web: Web, tmp_path: Path, rabbitmq: str, cluster: Cluster
) -> None:
    first, second, config = tmp_path / "first", tmp_path / "second", tmp_path / "levada.toml"
    settings = Path(web.config).read_text()
    slow = settings.replace("[politeness]\ndelay = 0\n", "[politeness]\ndelay = 0.6\n")
    config.write_text(f'{slow}\n[store]\nservers = ["{cluster.address}"]\n')
    starts = [word for url in web.start for word in ("--start", url)]
    with ExitStack() as opened:
        running = opened.enter_context(machines(tmp_path, LEVADA_RABBITMQ=rabbitmq, LEVADA_STORE=cluster.address))
        running.start("control-0", "control", "--data", first, "--config", config, *NONE, *starts)
        _until(lambda: "owns 64 of 64 slices" in running.said(), "the first control owns nothing")
        second.mkdir()
        for name in ("collection", "placement.json", "settings.json"):
            shutil.copy(first / name, second)
        (port,) = free_ports(1)
        running.start("control-1", "control", "--data", second, "--health", f"127.0.0.1:{port}", *NONE)
        for name in ("fetch-0", "fetch-1", "catalog-0"):
            running.start(name, "work", "--stage", name.partition("-")[0])
        _until(lambda: running.said().count("owns 32 of 64 slices of the sites, beside 1 other") == 2, "no halves")
        assert health(port, "/ready") == (200, "ready\n")
        _command_both(DataFolder(first), DataFolder(second))
        wait_for(DataFolder(second), 10, running)
        os.killpg(running.running["control-0"].pid, signal.SIGKILL)
        running.running.pop("control-0").wait()
        _until(lambda: running.said().count("owns 64 of 64 slices") == 2, "nobody takes over")
        assert stats(DataFolder(second)).stored < PAGES, "all was done before the other was killed"
        cluster.crash()
        _until(lambda: health(port, "/ready")[0] == 503, "it is ready without its store")
        cluster.start()
        wait_for(DataFolder(second), PAGES, running, whole=True)
        _until(lambda: health(port, "/ready")[0] == 200, "it is not ready again")
        for name in list(running.running):
            assert running.end(name) == 0, running.said()
    check_whole(DataFolder(second), DemoWorld.build(web.seed, web.pages))


def _command_both(told: DataFolder, other: DataFolder) -> None:
    """What one is told, both do."""
    with closing(open_commands(told)) as commands:
        for order, wanted in ((Pause(), True), (Resume(), False)):
            commands.submit(order)
            for folder in (told, other):
                _until(lambda at=folder, so=wanted: _is_paused(at) is so, "it does not obey")  # type: ignore[misc]


def test_two_controls_of_one_file_are_told_apart(web: Web, tmp_path: Path, rabbitmq: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    starts = [word for url in web.start for word in ("--start", url)]
    with machines(tmp_path, LEVADA_RABBITMQ=rabbitmq) as running:
        running.start("control-0", "control", "--data", first, "--config", web.config, *NONE, *starts)
        _until(lambda: (first / "live.json").exists(), "the first control does not start")
        second.mkdir()
        for name in ("collection", "settings.json"):
            shutil.copy(first / name, second)
        shutil.copy(first / "levada.db", second)
        running.start("control-1", "control", "--data", second, "--config", web.config, *NONE, *starts)
        assert running.running.pop("control-1").wait(timeout=60) == 1
        assert "another levada control hands out pages of this collection" in running.said()
        assert running.end("control-0") == 0, running.said()
