"""A map behind Redis Sentinel: the master is found, and found again after a failover."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from levada.bulk.protocols import Away
from levada.bulk.targets.redis import RedisMaps, fence_key
from levada.bulk.targets.redis_client import RedisLine, RedisNodes, command
from tests.servers.private import Child, free_ports

pytest_plugins = ["tests.servers.fixtures"]


class LiveSource:
    """A master, its replica and the Sentinel that watches both."""

    def __init__(self, folder: Path) -> None:
        master, replica, sentinel = free_ports(3)
        own = ["--bind", "127.0.0.1", "--dir", str(folder), "--save", "", "--repl-diskless-sync-delay", "0"]
        self.children = [Child(["redis-server", "--port", str(master), *own], os.environ)]
        self.children[0].wait_for("Ready to accept connections", 30.0)
        following = ["--replicaof", f"127.0.0.1 {master}"]
        self.children.append(Child(["redis-server", "--port", str(replica), *own, *following], os.environ))
        self.children[1].wait_for("Finished with success", 30.0)
        settings = folder / "sentinel.conf"
        settings.write_text(f"port {sentinel}\nbind 127.0.0.1\nsentinel monitor maps 127.0.0.1 {master} 1\n")
        self.children.append(Child(["redis-server", str(settings), "--sentinel"], os.environ))
        self.children[2].wait_for("monitor master", 30.0)
        self.replica = f"redis://127.0.0.1:{replica}/0"
        self.sentinel = f"redis://127.0.0.1:{sentinel}/0"
        self.url = f"redis+sentinel://127.0.0.1:{free_ports(1)[0]},127.0.0.1:{sentinel}/maps/0"

    def fail_over(self) -> None:
        with closing(RedisLine.at(self.sentinel)) as line:
            line.ask("SENTINEL", "DEBUG", "info-period", 100, "ping-period", 100, "default-failover-timeout", 5_000)
            before = line.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "maps")
            _until(lambda: line.exchange(command("SENTINEL", "FAILOVER", "maps"), 1) == [b"OK"])  # it knows the replica
            _until(lambda: line.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "maps") != before)


@pytest.fixture
def watched(tmp_path: Path, redis: str) -> Iterator[LiveSource]:
    """`redis` says whether there is one to start."""
    servers = LiveSource(tmp_path)
    yield servers
    for child in servers.children:
        child.end()


def test_the_master_is_found_again_after_a_failover(watched: LiveSource) -> None:
    with closing(RedisNodes(watched.url, time.sleep)) as nodes:
        target = RedisMaps(nodes)
        before = target.fingerprint()
        assert target.fence("m", 1, "open") == 1
        with closing(RedisLine.at(watched.replica)) as replica:  # a failover loses what has not got there
            _until(lambda: replica.ask("GET", fence_key("m", 1, 0, 1)) == b"1")
        watched.fail_over()
        _until(lambda: _moved(target, before))
        _until(lambda: _wrote(target))


def _moved(target: RedisMaps, before: str) -> bool:
    try:
        return target.fingerprint() != before
    except Away:
        return False


def _wrote(target: RedisMaps) -> bool:
    try:
        return target.fence("m", 1, "move") > 1
    except Away:  # the old master says READONLY until the connection is made anew
        return False


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
