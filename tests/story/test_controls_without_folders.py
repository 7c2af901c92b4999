"""Controls without a data folder: two start a collection at the same time, one is killed, and nothing is missing."""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from levada.collection.machines.joining import joined
from levada.core.configuration.layers import Given, file_given
from levada.core.errors import NotFound, UsageError
from levada.core.folder import DataFolder
from levada.demo.child import Web, serving
from levada.store.base import StoreLimits
from levada.store.opening import collection_name
from levada.store.workplace import server_workplace
from tests.story.commands import levada, one_line
from tests.story.test_several_machines import _until, machines

pytest_plugins = ["tests.servers.fixtures"]

PAGES = 60
NONE = ("--fetch", "0,0", "--catalog", "0,0", "--period", "0.3")


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving("--speed", "1", "--pages", str(PAGES), "--no-hostile") as running:
        yield running


@pytest.fixture
def database(postgresql: str) -> str:
    name = f"folderless_{secrets.token_hex(4)}"
    with psycopg.connect(postgresql, autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name}")
    return make_conninfo(postgresql, dbname=name)


def configured(folder: Path, web: Web, database: str, opensearch: str) -> Path:
    config = folder / "levada.toml"
    slow = Path(web.config).read_text().replace("[politeness]\ndelay = 0\n", "[politeness]\ndelay = 0.6\n")
    engine = f'[index]\nengine = "opensearch"\n[plugins.opensearch]\nhosts = ["{opensearch}"]\n'
    config.write_text(f'{slow}\n[store]\nservers = ["{database}"]\n{engine}')
    return config


def test_two_controls_without_folders_share_a_crawl_that_outlives_one(
    web: Web, tmp_path: Path, rabbitmq: str, database: str, opensearch: str
) -> None:
    config, name = configured(tmp_path, web, database, opensearch), secrets.token_hex(8)
    starts = [word for url in web.start for word in ("--start", url)]
    with machines(tmp_path, LEVADA_RABBITMQ=rabbitmq, LEVADA_STORE=database, LEVADA_DATA="") as running:
        for control in ("control-0", "control-1"):
            running.start(control, "control", "--collection", name, "--config", config, *NONE, *starts)
        _until(lambda: "owns 32 of 64 slices" in running.said(), "the two do not share")
        for worker in ("fetch-0", "catalog-0"):
            running.start(worker, "work", "--stage", worker.partition("-")[0], "--collection", name)
        _until_stored(database, name, 5, running.said)
        os.killpg(running.running["control-0"].pid, signal.SIGKILL)
        running.running.pop("control-0").wait()
        stored = _until_stored(database, name, PAGES, running.said)
        assert max(stored.values()) == 1
        for each in list(running.running):
            assert running.end(each) == 0, running.said()
        # What the killed one would have indexed, the other has.
        found = levada("search", "--store", database, "--collection", name, "--json", "--", "-nosuchword", cwd=tmp_path)
        assert found.returncode == 0, found.stderr
        assert f'"total":{PAGES}' in found.stdout


def _until_stored(database: str, name: str, wanted: int, said: Callable[[], str]) -> Counter[str]:
    ends = time.monotonic() + 50
    stored: Counter[str] = Counter()
    while time.monotonic() < ends:
        with suppress(NotFound):  # it is not there yet
            place = server_workplace(database, name)
            with closing(place), closing(place.open_store(StoreLimits())) as store:
                stored = Counter(document.url for document in store.scan())
                stats = store.stats(time.time())
                if len(stored) >= wanted and not (wanted == PAGES and (stats.unvisited or stats.leased)):
                    return stored
        time.sleep(0.3)
    raise AssertionError(f"{len(stored)} of {wanted} are stored\n{said()}")


def test_those_who_join_find_the_plan_and_the_settings(web: Web, tmp_path: Path, database: str) -> None:
    config, name = configured(tmp_path, web, database, "http://127.0.0.1:9"), secrets.token_hex(8)
    with joined(database, name, file_given(config)) as first:
        with joined(database, name, Given()) as second:
            assert first != second
            one, other = DataFolder(first), DataFolder(second)
            assert collection_name(one) == collection_name(other) == name
            assert one.placement.read_bytes() == other.placement.read_bytes()
            assert other.settings().store.servers == (database,)
            assert other.settings().politeness.delay == 0.6
        assert not second.exists()
    assert not first.exists()


def test_what_cannot_be_joined_is_said(tmp_path: Path, database: str) -> None:
    told = one_line(levada("control", "--collection", "news", "--store", database, cwd=tmp_path), 2)
    assert "sixteen" in told
    name = secrets.token_hex(8)
    told = one_line(levada("control", "--collection", name, "--store", database, cwd=tmp_path), 2)
    assert "store.servers" in told
    (tmp_path / "levada.toml").write_text(f'[store]\nservers = ["{database}"]\n')
    told = one_line(levada("control", "--collection", name, "--store", database, cwd=tmp_path), 2)
    assert "opensearch" in told
    assert "--store" in one_line(levada("control", "--collection", name, cwd=tmp_path), 2)
    with pytest.raises(UsageError, match="sixteen"), joined(database, "../../etc", Given()):
        pass
