"""A crawl over hosts of their own: a late wire, a lossy one, a cut one, and a clock that is an hour ahead.

PostgreSQL and RabbitMQ run on one host; control, two fetch workers and a catalog worker each on another, with a
folder and a loopback of their own.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from levada.collection.live import read_live
from levada.core.folder import DataFolder
from levada.demo.child import Web, serving
from levada.demo.world import DemoWorld
from tests.needs import program
from tests.servers import postgresql, rabbitmq
from tests.servers.hosts import ENGINES, Host, Network, network
from tests.servers.postgresql import new_cluster, own_folder
from tests.story.test_several_machines import check_whole, machines, stats, wait_for

PAGES = 100
FAULTS: tuple[tuple[str, Callable[[Host], None]], ...] = (
    ("catalog-0", lambda host: host.lose(5)),
    ("fetch-0", lambda host: host.cut(outgoing=False)),
    ("control", lambda host: host.lose(5)),
    ("fetch-0", Host.heal),
    ("fetch-1", lambda host: host.late(0.3)),
)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving("--speed", "1", "--pages", str(PAGES), "--no-hostile") as running:
        yield running


class Engines:
    """PostgreSQL and RabbitMQ on the network's host of engines."""

    def __init__(self, wires: Network, folder: Path) -> None:
        self._cluster = new_cluster(own_folder(folder) / "data")
        self._cluster.within = wires.engines.within
        self._cluster.settings["listen_addresses"] = "*"
        with (self._cluster.folder / "pg_hba.conf").open("a") as rights:
            rights.write("host all all 10.213.0.0/16 trust\n")
        self._cluster.start()
        self._broker = rabbitmq.Server(wires.engines.within)
        (folder / "rabbitmq").mkdir()
        broker = urlsplit(self._broker.start(folder / "rabbitmq"))
        self.ports = (self._cluster.port, broker.port or 0)
        self.store = f"postgresql://postgres@{ENGINES}:{self.ports[0]}/postgres"
        self.queue = f"amqp://guest:guest@{ENGINES}:{self.ports[1]}/"

    def stop(self) -> None:
        self._broker.stop()
        self._cluster.kill()


@contextmanager
def engines(wires: Network, folder: Path) -> Iterator[Engines]:
    if not (postgresql.Server.installed() and rabbitmq.Server.installed()):
        program("postgres")
    running = Engines(wires, folder)
    try:
        yield running
    finally:
        running.stop()


def test_late_lossy_and_cut_hosts_and_a_wrong_clock_lose_nothing_and_double_nothing(web: Web, tmp_path: Path) -> None:
    chance = random.Random(7)
    with network() as wires, engines(wires, tmp_path) as shared:
        hosts = {name: wires.host(name) for name in ("control", "fetch-0", "catalog-0")}
        hosts["fetch-1"] = wires.host("fetch-1", relayed=shared.ports)
        for host in hosts.values():  # every host sees the web on its own loopback, as the whole world would
            wires.relay(host, ("127.0.0.1", web.port), None, ("127.0.0.1", web.port))
        hosts["fetch-1"].late(0.1)
        folder = DataFolder(tmp_path / "data")
        config = tmp_path / "levada.toml"
        settings = Path(web.config).read_text().replace("[politeness]\ndelay = 0\n", "[politeness]\ndelay = 0.6\n")
        config.write_text(f"{settings}\n[store]\nservers = {json.dumps([shared.store])}\nlease_seconds = 4.0\n")
        starts = [word for url in web.start for word in ("--start", url)]
        limits = ("--fetch", "0,4", "--catalog", "0,1", "--period", "0.3", "--keda", "127.0.0.1:0")
        environment = {"LEVADA_RABBITMQ": shared.queue, "LEVADA_STORE": shared.store}
        with machines(tmp_path, **environment) as running, hosts["control"].entered():
            running.start(
                "control", "control", "--data", folder.path, "--config", config, *limits, *starts,
                within=hosts["control"].within,
            )  # fmt: skip
            deadline = time.monotonic() + 60
            while read_live(folder.live_file) is None:
                assert time.monotonic() < deadline, running.said()
                time.sleep(0.05)
            collection = (folder.path / "collection").read_text()
            ahead = ("env", f"LD_PRELOAD={faked_time()}", "FAKETIME=+3600")
            for name in ("fetch-0", "fetch-1", "catalog-0"):
                work = ("work", "--stage", name.partition("-")[0], "--collection", collection)
                clock = ahead if name == "fetch-0" else ()
                running.start(name, *work, within=[*hosts[name].within, *clock])
            wait_for(folder, 5, running)
            for name, fault in FAULTS:
                fault(hosts[name])
                time.sleep(chance.uniform(1.0, 2.0))
            _cut_for(hosts["catalog-0"], 6.0)  # longer than a lease
            for name in ("fetch-0", "catalog-0", "control"):
                hosts[name].heal()
            wait_for(folder, PAGES, running, whole=True)
            assert stats(folder).stored >= PAGES
            for name in ("fetch-0", "fetch-1", "catalog-0", "control"):
                assert running.end(name) == 0, running.said()
            check_whole(folder, DemoWorld.build(web.seed, web.pages))


def faked_time() -> Path:
    """The library of faketime. The program would take the signals that are meant for the worker."""
    program("faketime")
    return next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


def _cut_for(host: Host, seconds: float) -> None:
    host.cut()
    time.sleep(seconds)
    host.heal()
