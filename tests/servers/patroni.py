"""Patroni: PostgreSQL instances of which one is the primary, and another takes over; etcd says who."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.needs import missing
from tests.servers.postgresql import as_owner, own_folder, programs
from tests.servers.private import Child, free_ports, wait_for_port

__all__ = ["FAILOVER_SECONDS", "Cluster", "patroni"]

FAILOVER_SECONDS = 20.0  # the time to live of the primary's key in etcd: after that, another one is chosen
_PATIENCE = 120.0


class _Member:
    # By etcd's second interface. By the third, a primary of Patroni 3.0 that was stopped and woke up took the key from
    # its successor in this test, and what had been committed there was lost.
    def __init__(self, folder: Path, name: str, etcd: int) -> None:
        self.name = name
        self.port, self.api = free_ports(2)
        self._folder = folder / name
        self._config = folder / f"{name}.json"  # which is YAML too
        local = {"listen": f"127.0.0.1:{self.port}", "connect_address": f"127.0.0.1:{self.port}"}
        who = {"username": "postgres"}
        shared = {"ttl": int(FAILOVER_SECONDS), "loop_wait": 2, "retry_timeout": 5, "synchronous_mode": True}
        hba = ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
        parameters = {"max_connections": 60, "unix_socket_directories": str(folder), "shared_buffers": "32MB"}
        self._config.write_text(
            json.dumps(
                {
                    "scope": "levada",
                    "name": name,
                    "restapi": {"listen": f"127.0.0.1:{self.api}", "connect_address": f"127.0.0.1:{self.api}"},
                    "etcd": {"host": f"127.0.0.1:{etcd}"},
                    "bootstrap": {"dcs": shared, "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "no-sync"]},
                    "postgresql": {
                        **local,
                        "data_dir": str(self._folder),
                        "bin_dir": str(programs()),
                        "pgpass": str(folder / f"{name}.pgpass"),
                        "pg_hba": hba,
                        "use_pg_rewind": True,
                        "authentication": {"superuser": who, "replication": who, "rewind": who},
                        "parameters": parameters,
                    },
                }
            )
        )
        self._config.chmod(0o644)
        self._child: Child | None = None

    @property
    def address(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        program = shutil.which("patroni")
        assert program is not None
        self._child = Child([*as_owner(), program, self._config], {**os.environ, "LC_ALL": "C"})
        self._child.wait_for("INFO: ", _PATIENCE)

    def is_primary(self) -> bool:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.api}/primary", timeout=2.0) as said:
            return bool(said.status == 200)
        return False

    def state(self) -> dict[str, object]:
        with (
            suppress(OSError, ValueError),
            urllib.request.urlopen(f"http://127.0.0.1:{self.api}/cluster", timeout=2.0) as said,
        ):
            answer: dict[str, object] = json.load(said)
            return answer
        return {}

    def processes(self) -> list[int]:
        """Patroni, its server, and the processes of that."""
        assert self._child is not None
        found = [self._child.pid]
        with suppress(OSError, ValueError, IndexError):
            found.append(int((self._folder / "postmaster.pid").read_text().split()[0]))
        for pid in found:
            with suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    found += [int(each) for each in (task / "children").read_text().split() if int(each) not in found]
        return found

    def send(self, which: signal.Signals) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, which)

    def end(self) -> None:
        if self._child is not None:
            self.send(signal.SIGKILL)
            self._child.end()
            self._child = None


class Cluster:
    """Three members; `address` names them all."""

    def __init__(self, members: list[_Member]) -> None:
        self.members = members
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in members)
        self.address = f"postgresql://postgres@{hosts}/postgres"

    def primary(self) -> _Member:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            for each in self.members:
                if each.is_primary():
                    return each
            time.sleep(0.2)
        raise OSError("there is no primary")

    def wait_until_synchronous(self) -> None:
        """Until another member has every commit, and the third streams."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            members = self.primary().state().get("members", [])
            assert isinstance(members, list)
            roles = sorted(each["role"] for each in members if each.get("state") in ("running", "streaming"))
            if len(roles) == len(self.members) and "sync_standby" in roles:
                return
            time.sleep(0.2)
        raise OSError(f"the members do not stream: {members}")

    def switch_over(self) -> None:
        primary = self.primary()
        body = json.dumps({"leader": primary.name}).encode()
        asked = urllib.request.Request(f"http://127.0.0.1:{primary.api}/switchover", body, method="POST")
        urllib.request.urlopen(asked, timeout=60.0).close()


@contextmanager
def patroni(folder: Path) -> Iterator[Cluster]:
    for program in ("patroni", "etcd"):
        if shutil.which(program) is None:
            missing(f"{program} is not installed: run tests/servers/install.sh as root with PATRONI=1, or install it")
    own = own_folder(folder)
    client, peer = free_ports(2)
    url = f"http://127.0.0.1:{client}"
    command: list[str | Path] = [
        "etcd",
        "--data-dir",
        own / "etcd",
        "--listen-client-urls",
        url,
        "--advertise-client-urls",
        url,
    ]
    command += ["--listen-peer-urls", f"http://127.0.0.1:{peer}", "--unsafe-no-fsync", "--enable-v2"]
    etcd = Child([*as_owner(), *command], {**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64"})
    members: list[_Member] = []
    try:
        wait_for_port(client, "etcd")
        for number in range(3):
            members.append(_Member(own, f"db{number}", client))
            members[-1].start()
            if number == 0:
                Cluster(members).primary()
        cluster = Cluster(members)
        cluster.wait_until_synchronous()
        yield cluster
    finally:
        for each in members:
            each.end()
        etcd.end()
        shutil.rmtree(own, ignore_errors=True)
