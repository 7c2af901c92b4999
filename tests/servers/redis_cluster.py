"""Redis Cluster as three private masters without replicas."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from tests.servers.private import Child, free_ports

__all__ = ["Server"]

_MASTERS = 3
_PATIENCE = 30.0
_LOOK_AGAIN = 0.05


class Server:
    def __init__(self) -> None:
        self._children: list[Child] = []

    @staticmethod
    def installed() -> bool:
        return shutil.which("redis-server") is not None and shutil.which("redis-cli") is not None

    def start(self, folder: Path) -> str:
        ports = free_ports(2 * _MASTERS)
        nodes, buses = ports[:_MASTERS], ports[_MASTERS:]
        self._children = [_node(folder, *pair) for pair in zip(nodes, buses, strict=True)]
        for child in self._children:
            child.wait_for("Ready to accept connections", _PATIENCE)
        _join(nodes)
        _wait_until_whole(nodes)
        return f"redis://127.0.0.1:{nodes[0]}/0"

    def stop(self) -> None:
        for child in self._children:
            child.end()


def _node(folder: Path, port: int, bus: int) -> Child:
    own = folder / str(port)
    own.mkdir(exist_ok=True)
    asked = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(own), "--save", ""]
    clustered = ["--cluster-enabled", "yes", "--cluster-port", str(bus), "--cluster-node-timeout", "5000"]
    return Child(["redis-server", *asked, *clustered], os.environ)


def _join(ports: list[int]) -> None:
    nodes = [f"127.0.0.1:{port}" for port in ports]
    command = ["redis-cli", "--cluster", "create", *nodes, "--cluster-yes"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise OSError("the nodes did not join in time") from error
    if done.returncode:
        raise OSError(f"the nodes do not join: {done.stdout[-500:]}{done.stderr[-500:]}")


def _wait_until_whole(ports: list[int]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not all(_whole(port) for port in ports):
        if time.monotonic() > deadline:
            raise OSError("the cluster is not whole")
        time.sleep(_LOOK_AGAIN)


def _whole(port: int) -> bool:
    command = ["redis-cli", "-p", str(port), "cluster", "info"]
    return "cluster_state:ok" in subprocess.run(command, capture_output=True, text=True).stdout
