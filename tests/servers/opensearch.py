"""OpenSearch as private nodes of 512 MB, from jars that `tests/servers/jvm/install.sh` keeps outside the checkout."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.servers.private import Child, free_ports

__all__ = ["Cluster", "Server", "home"]

_INSTALL = Path(__file__).parent / "jvm" / "install.sh"
# The tests start few nodes for a short time: starting soon counts for more than running fast.
_JAVA = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class Cluster:
    """Some nodes, each of which may be killed and started again at the same ports with the same data."""

    def __init__(self, folder: Path, nodes: int = 1) -> None:
        self._folder = folder
        ports = free_ports(2 * nodes)
        self._http, self._transport = ports[:nodes], ports[nodes:]
        self._children: list[Child | None] = [None] * nodes

    @property
    def addresses(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self._http]

    @property
    def pids(self) -> list[int]:
        """The processes of the nodes that run."""
        return [child.pid for child in self._children if child is not None]

    def start(self) -> None:
        """All nodes at once: a cluster of several needs most of them to begin."""
        for number in range(len(self._children)):
            self._launch(number)
        for number in range(len(self._children)):
            self._wait(number)

    def revive(self, number: int) -> None:
        self._launch(number)
        self._wait(number)

    def kill(self, number: int = 0) -> None:
        """As by kill -9."""
        child = self._children[number]
        if child is not None:
            child.end()
        self._children[number] = None

    def stop(self) -> None:
        for number in range(len(self._children)):
            self.kill(number)

    def _wait(self, number: int) -> None:
        child = self._children[number]
        assert child is not None
        child.wait_for("the node answers", 90.0)

    def _launch(self, number: int) -> None:
        place = self._folder / f"node-{number}"
        (place / "config").mkdir(parents=True, exist_ok=True)
        settings = {
            "cluster.name": f"levada-{self._http[0]}",
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            "http.port": str(self._http[number]),
            "http.type": "netty4",
            "network.host": "127.0.0.1",
            "node.name": f"node-{number}",
            "node.processors": "1",
            "path.data": str(place / "data"),
            "path.home": str(place),
            "path.logs": str(place / "logs"),
            "transport.port": str(self._transport[number]),
            "transport.type": "netty4",
            **self._discovery(),
        }
        command = [*_java(), "SearchNode", *(f"{name}={value}" for name, value in settings.items())]
        self._children[number] = Child(command, {**os.environ, "HOME": str(place)})

    def _discovery(self) -> dict[str, str]:
        if len(self._children) == 1:
            return {"discovery.type": "single-node"}
        names = ",".join(f"node-{number}" for number in range(len(self._children)))
        return {
            "cluster.initial_cluster_manager_nodes": names,
            "discovery.seed_hosts": ",".join(f"127.0.0.1:{port}" for port in self._transport),
            # A dead node is missed soon.
            "cluster.fault_detection.follower_check.interval": "500ms",
            "cluster.fault_detection.follower_check.timeout": "2s",
            "cluster.fault_detection.follower_check.retry_count": "1",
            "cluster.fault_detection.leader_check.interval": "500ms",
            "cluster.fault_detection.leader_check.timeout": "2s",
            "cluster.fault_detection.leader_check.retry_count": "1",
        }


class Server:
    """One node; its address, as the first of `plugins.opensearch.hosts`."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None

    @staticmethod
    def installed() -> bool:
        return home() is not None

    def start(self, folder: Path) -> str:
        self._cluster = Cluster(folder)
        self._cluster.start()
        return self._cluster.addresses[0]

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.stop()


@cache
def home() -> Path | None:
    """The folder with the jars; they are fetched where they are missing and can be."""
    done = subprocess.run(["sh", _INSTALL], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def _java() -> Sequence[str]:
    place = home()
    assert place is not None
    return ["java", *_JAVA, "-cp", f"{place}/classes:{place}/lib/*"]
