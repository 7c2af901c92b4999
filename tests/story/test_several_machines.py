"""A crawl by machines that share nothing but three PostgreSQL servers and a RabbitMQ; everybody is killed once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from levada.collection.commands import open_commands
from levada.collection.live import read_live
from levada.collection.search import open_search
from levada.core.commands import Pause, Resume
from levada.core.errors import StoreError
from levada.core.folder import DataFolder
from levada.core.records import CollectionStats
from levada.core.search_records import Query
from levada.demo.child import Web, serving
from levada.demo.world import DemoWorld
from levada.store.opening import open_reading_store, open_shard_reader, shard_folders, shard_places
from tests.servers.private import free_ports
from tests.story.commands import levada, one_line

pytest_plugins = ["tests.servers.fixtures"]

PAGES = 100
SECONDS = 60.0


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving("--speed", "1", "--pages", str(PAGES), "--no-hostile") as running:
        yield running


class Machines:
    """Processes, each in a folder of its own; a worker that was killed is started again."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = os.environ | environment
        self.running: dict[str, subprocess.Popen[str]] = {}
        self._words: dict[str, tuple[str, ...]] = {}

    def start(self, name: str, *words: str | Path, within: Sequence[str] = ()) -> None:
        own = self._folder / name
        own.mkdir(exist_ok=True)
        self._words[name] = tuple(map(str, words))
        command = [*within, sys.executable, "-m", "levada", *self._words[name]]
        with (own / "said").open("a") as said:
            self.running[name] = subprocess.Popen(
                command,
                cwd=own,
                env=self._environment,
                text=True,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )

    def kill_and_start_again(self, name: str) -> None:
        os.killpg(self.running[name].pid, signal.SIGKILL)
        self.running[name].wait()
        self.start(name, *self._words[name])

    def end(self, name: str) -> int:
        self.running[name].send_signal(signal.SIGTERM)
        return self.running.pop(name).wait(timeout=60)

    def said(self) -> str:
        return "".join(f"{each.parent.name}: {each.read_text()}" for each in self._folder.glob("*/said"))


@contextmanager
def machines(folder: Path, **environment: str) -> Iterator[Machines]:
    running = Machines(folder, environment)
    try:
        yield running
    finally:
        for process in running.running.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def stats(folder: DataFolder) -> CollectionStats:
    with closing(open_reading_store(folder)) as store:
        return store.stats(time.time())


def wait_for(folder: DataFolder, stored: int, running: Machines, *, whole: bool = False) -> CollectionStats:
    """Until so many are stored; or all of them, and nothing is under way."""
    ends = time.monotonic() + SECONDS
    found = CollectionStats()
    while time.monotonic() < ends:
        with suppress(StoreError):  # not made yet
            found = stats(folder)
        if found.stored >= stored and not (whole and (found.unvisited or found.leased)):
            return found
        time.sleep(0.1)
    raise AssertionError(f"it did not get there: {found}\n{running.said()}")


def check_whole(folder: DataFolder, world: DemoWorld) -> None:
    """Every page of the web once, on one shard, in one version; the index knows the same pages and no others."""
    held: Counter[str] = Counter()
    for shard in shard_folders(folder):
        with closing(open_shard_reader(shard)) as store:
            store.check()
            assert store.undelivered(1) == []
            held.update(url for _, url in store.urls_after(0, 1_000_000))
    assert max(held.values()) == 1, "held twice"
    with open_search(folder) as (collection, index):
        stored = [document.url for document in collection.store.scan()]
        kept = {page.number for url in stored if (page := world.find(url)) is not None}
        assert kept == {page.number for page in world.pages}, "pages lost"
        assert len(stored) == len(set(stored)) == len(world.pages)
        assert all(len(collection.store.versions(url)) == 1 for url in stored), "stored twice"
        found = [hit.url for hit in index.search(Query("-nosuchword", limit=5_000)).hits]
        assert sorted(found) == sorted(stored), "index and documents disagree"


def test_machines_without_a_common_folder_lose_nothing_and_double_nothing(
    web: Web, tmp_path: Path, rabbitmq: str, postgresql_trio: list[str]
) -> None:
    data, config = tmp_path / "data", tmp_path / "levada.toml"
    servers = json.dumps(postgresql_trio)
    settings = Path(web.config).read_text()
    slow = settings.replace("[politeness]\ndelay = 0\n", "[politeness]\ndelay = 0.6\n")
    assert slow != settings
    config.write_text(f"{slow}\n[store]\nservers = {servers}\nlease_seconds = 3.0\n")
    folder, chance = DataFolder(data), random.Random(5)
    starts = [word for url in web.start for word in ("--start", url)]
    limits = ("--fetch", "0,4", "--catalog", "0,1", "--period", "0.3", "--keda", "127.0.0.1:0")
    with ExitStack() as opened:
        running = opened.enter_context(machines(tmp_path, LEVADA_RABBITMQ=rabbitmq, LEVADA_STORE=postgresql_trio[0]))
        running.start("control", "control", "--data", data, "--config", config, *limits, *starts)
        _until(lambda: read_live(folder.live_file) is not None, "the control shows nothing")
        collection = (data / "collection").read_text()
        for name in ("fetch-0", "fetch-1", "catalog-0"):
            running.start(name, "work", "--stage", name.partition("-")[0], "--collection", collection)
        wait_for(folder, 5, running)
        seen: list[int] = []
        for name in ("fetch-0", "catalog-0", "control", "fetch-1", "catalog-0"):
            seen.append(stats(folder).stored)
            running.kill_and_start_again(name)
            time.sleep(chance.uniform(0.1, 0.5))
        assert seen[-1] < PAGES, "all was done before the last kill"
        moved = levada("shard", "apply", "--data", data, "--shards", "4", cwd=tmp_path)
        assert moved.returncode == 0, moved.stderr
        wait_for(folder, PAGES, running, whole=True)
        status = read_live(folder.live_file)
        assert status is not None
        assert {stage.name for stage in status.stages} == {"fetch", "catalog"}
        _pause_and_go_on(folder)
        for name in ("fetch-0", "fetch-1", "catalog-0", "control"):
            assert running.end(name) == 0, running.said()
    assert read_live(folder.live_file) is None
    check_whole(folder, DemoWorld.build(web.seed, web.pages))
    assert {place.schema for place in shard_places(folder)} == {f"levada_{collection[:8]}_{n}" for n in range(4)}
    assert (data / "placement.json").stat().st_mode & 0o077 == 0
    assert (data / "settings.json").stat().st_mode & 0o077 == 0


def _pause_and_go_on(folder: DataFolder) -> None:
    """Somebody asks for it on the page: the control obeys, and its status shows it."""
    with closing(open_commands(folder)) as commands:
        for order, wanted in ((Pause(), True), (Resume(), False)):
            commands.submit(order)
            _until(lambda wanted=wanted: _is_paused(folder) is wanted, "the order was not obeyed")  # type: ignore[misc]


def _is_paused(folder: DataFolder) -> bool | None:
    status = read_live(folder.live_file)
    return None if status is None else status.paused


def _until(is_so: Callable[[], bool], otherwise: str) -> None:
    ends = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < ends, otherwise
        time.sleep(0.05)


def test_a_worker_that_finds_no_collection_says_so(tmp_path: Path, postgresql_trio: list[str]) -> None:
    work = ("work", "--stage", "fetch", "--store", postgresql_trio[2])
    assert "nobody hands out pages" in one_line(levada(*work, cwd=tmp_path), 3)
    assert "knows no collection" in one_line(levada(*work, "--collection", "news", cwd=tmp_path), 3)
    assert "--store" in one_line(levada("work", "--stage", "fetch", "--collection", "x", cwd=tmp_path), 2)


def test_a_worker_waits_for_a_server_that_is_away_and_says_so_once_without_its_password(tmp_path: Path) -> None:
    with machines(tmp_path, LEVADA_STORE="postgresql://u:sEcret@127.0.0.1:9/none") as running:
        (port,) = free_ports(1)
        running.start("worker", "work", "--stage", "catalog", "--health", f"127.0.0.1:{port}")
        _until(lambda: "waiting: PostgreSQL at 127.0.0.1:9/none" in running.said(), "it does not say that it waits")
        status, said = health(port, "/ready")
        assert status == 503
        assert "PostgreSQL at 127.0.0.1:9/none" in said
        assert health(port, "/live") == (200, "live\n")
        assert health(port, "/other")[0] == 404
        assert running.end("worker") == 0
        assert running.said().count("waiting") == 1
        assert "sEcret" not in running.said() + said


def test_a_worker_that_is_refused_ends(tmp_path: Path, postgresql: str) -> None:
    nowhere = postgresql.rpartition("/")[0] + "/nowhere"
    assert "does not exist" in one_line(levada("work", "--stage", "fetch", "--store", nowhere, cwd=tmp_path), 1)


def health(port: int, path: str) -> tuple[int, str]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=10.0)) as asking:
        asking.request("GET", path)
        answer = asking.getresponse()
        return answer.status, answer.read().decode()
