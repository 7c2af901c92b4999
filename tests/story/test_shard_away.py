"""One of three shard servers is stopped while a crawl runs: the others go on, and everybody says which one is away."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from levada.core.folder import DataFolder
from levada.demo.child import serving
from levada.serve.access import Access, Tokens
from levada.serve.app import make_app
from levada.serve.view import View
from levada.store.base import StoreLimits
from levada.store.opening import open_shard, shard_places
from tests.servers.postgresql import Cluster, copy_of, new_cluster, own_folder
from tests.story.commands import levada

pytest_plugins = ["tests.servers.fixtures"]

ROOT = Path(__file__).parents[2]
PAGES, STOPPED = 60, 1
WAIT = 60.0  # a crawl that has not come so far by then has stopped


@pytest.fixture(scope="module")
def clusters(postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Cluster]]:
    """Three that may be stopped: nobody else uses them, unlike the one that says whether they are installed."""
    folder = own_folder(tmp_path_factory.mktemp("clusters"))
    one = new_cluster(folder / "0")
    made = [one, *(copy_of(one, folder / str(number)) for number in (1, 2))]
    for each in made:
        each.start()
    yield made
    for each in made:
        each.resume()
        each.kill()
    shutil.rmtree(folder, ignore_errors=True)


def until(is_so: Callable[[], bool], why: str) -> None:
    waited = threading.Event()
    for _ in range(int(WAIT / 0.1)):
        if is_so():
            return
        waited.wait(0.1)
    pytest.fail(why)


class Shards:
    """What lies on each shard, seen past the collection."""

    def __init__(self, data: Path) -> None:
        folder = DataFolder(data)
        self.stores = [
            open_shard(folder, place, StoreLimits(shard=number), read_only=True)
            for number, place in enumerate(shard_places(folder))
        ]

    def urls(self, number: int) -> list[str]:
        return [document.url for document in self.stores[number].scan()]

    def close(self) -> None:
        for store in self.stores:
            store.close()


@pytest.mark.timeout(300)
def test_the_others_go_on_while_one_server_is_stopped(clusters: list[Cluster], tmp_path: Path) -> None:
    data, config = tmp_path / "data", tmp_path / "levada.toml"
    with serving("--speed", "1", "--pages", str(PAGES), "--no-hostile") as web:
        settings = Path(web.config).read_text().replace("[politeness]\ndelay = 0\n", "[politeness]\ndelay = 0.2\n")
        servers = json.dumps([each.address for each in clusters])
        config.write_text(f"{settings}\n[store]\nservers = {servers}\nkey = 'url'\nlease_seconds = 3.0\n")
        command = [sys.executable, "-m", "levada", "crawl", "--data", str(data), "--config", str(config), *web.start]
        made = levada(
            "crawl", "--once", "--max-pages", "12", "--data", data, "--config", config, *web.start, cwd=tmp_path
        )
        assert made.returncode == 0, made.stderr
        with closing(Shards(data)) as shards:
            crawl = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                check_outage(data, clusters[STOPPED], shards, crawl, tmp_path)
            finally:
                clusters[STOPPED].resume()
                crawl.send_signal(signal.SIGINT)
                _, said = crawl.communicate(timeout=WAIT)
        stored = Counter[str]()
        with closing(Shards(data)) as shards:
            for number in range(3):
                stored.update(shards.urls(number))
            assert [shards.stores[number].undelivered(1) for number in range(3)] == [[], [], []]
            versions = {len(shards.stores[number].versions(url)) for number in range(3) for url in shards.urls(number)}
        assert len(stored) == PAGES, said
        assert max(stored.values()) == 1, "a page is held twice"
        assert versions == {1}, "a page was stored twice"


def check_outage(data: Path, stopped: Cluster, shards: Shards, crawl: subprocess.Popen[str], cwd: Path) -> None:
    others = [number for number in range(3) if number != STOPPED]

    def stored() -> int:
        return sum(len(shards.urls(number)) for number in others)

    before = stored()
    until(lambda: stored() > before, "the crawl does not begin")
    stopped.pause()
    begun = stored()
    until(lambda: stored() >= min(begun + 12, PAGES // 2), "the other shards stand still")
    assert crawl.poll() is None
    found = levada("search", "--json", "--data", data, "--", "-nosuchword", cwd=cwd)
    assert found.returncode == 0, found.stderr
    (sentence,) = json.loads(found.stdout)["partial"]
    assert f"shard {STOPPED} cannot be reached" in sentence
    assert "has not answered" in sentence
    looked = levada("doctor", "--json", "--data", data, cwd=cwd)
    checks = {each["name"]: each for each in json.loads(looked.stdout)["checks"]}
    assert checks[f"database of shard {STOPPED}"]["verdict"] == "fail"
    assert "start its server" in checks[f"database of shard {STOPPED}"]["advice"]
    assert checks["database of shard 0"]["verdict"] == "ok"
    app = make_app(View(data), Access(Tokens(), frozenset(), lambda: 0.0))
    with TestClient(app, base_url="http://127.0.0.1:8400", client=("127.0.0.1", 5000)) as api:
        (away,) = api.get("/api/v1/status").json()["away"]
        assert (away["shard"], away["message"].partition(":")[0]) == (STOPPED, f"shard {STOPPED} cannot be reached")
        assert f'levada_shard_away_since{{shard="{STOPPED}"}}' in api.get("/metrics").text
        assert api.get("/api/v1/health").json() | {"version": ""} == {"status": "partial", "version": "", "away": 1}
        assert api.get("/api/v1/search", params={"q": "-nosuchword"}).json()["partial"] == [away["message"]]
        assert api.get("/api/v1/shards").json()["shards"]["shards"][STOPPED]["trouble"] == away["message"]
        stopped.resume()
        until(lambda: not api.get("/api/v1/status").json()["away"], "the shard is not taken up again")
        assert "levada_shard_away_since" not in api.get("/metrics").text
    until(lambda: sum(len(shards.urls(number)) for number in range(3)) == PAGES, "the crawl does not end")
