"""PostgreSQL as a private cluster. It refuses to run as root, who runs it as the user that its package made."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.servers.private import Child, free_ports

__all__ = ["Cluster", "Server", "copy_of", "new_cluster", "own_folder"]

_OWNER = "postgres"
_PLACES = "/usr/lib/postgresql"  # Debian's, one folder per version; elsewhere the programs are on the path
# No fsync: what is killed here are processes, never the machine, and what they wrote is then still in its memory.
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "shared_preload_libraries": "pg_stat_statements",
    "unix_socket_directories": "",  # the path of a temporary folder may be too long for one
}


class Cluster:
    """One instance in one folder; may be killed and started again at the same port."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.settings = dict(_SETTINGS)
        self.within: list[str] = []  # what to put before the command, to run it on another host
        self._child: Child | None = None

    @property
    def address(self) -> str:
        return f"postgresql://{_OWNER}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        settings = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        command = [
            *self.within,
            *_as_owner(),
            _program("postgres"),
            "-D",
            str(self.folder),
            "-p",
            str(self.port),
            *settings,
        ]
        self._child = Child(command, _environment())
        self._child.wait_for("ready to accept connections", 60.0)

    def crash(self) -> None:
        """`kill -9` of the postmaster and of every process of it; the next start replays the log."""
        assert self._child is not None
        _, *backends = self._processes()
        self._signal(signal.SIGKILL)
        self._child.end()
        _wait_until_gone(backends)  # while one is left, the next start finds the shared memory in use
        self._child = None

    def pause(self) -> None:
        """SIGSTOP for every process of it: connections stay and are even accepted, and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for pid in self._processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _processes(self) -> list[int]:
        """The postmaster, who begins no more once it is stopped, and its backends."""
        postmaster = int((self.folder / "postmaster.pid").read_text().split()[0])
        return [postmaster, *map(int, Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split())]

    def kill(self) -> None:
        """At once and unsaved, but by the server's own means: for the end of the tests."""
        if self._child is None:
            return
        # Each backend leads a group of its own, so the postmaster is asked to end them, at once and unsaved.
        command = [*_as_owner(), _program("pg_ctl"), "-D", str(self.folder), "-m", "immediate", "stop"]
        subprocess.run(command, env=_environment(), capture_output=True, check=False, timeout=60.0)
        self._child.end()
        self._child = None


class Server:
    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._folder: Path | None = None

    @staticmethod
    def installed() -> bool:
        return bool(_program("initdb")) and (os.geteuid() != 0 or _owner_exists())

    def start(self, folder: Path) -> str:
        self._folder = own_folder(folder)
        self._cluster = new_cluster(self._folder / "data")
        self._cluster.start()
        return self._cluster.address

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def own_folder(folder: Path) -> Path:
    """A folder that the cluster's owner may reach: pytest's are closed to other users."""
    if os.geteuid() != 0:
        return Path(tempfile.mkdtemp(prefix="postgresql", dir=folder))
    made = Path(tempfile.mkdtemp(prefix="levada-postgresql-"))
    shutil.chown(made, _OWNER, _group())
    return made


def new_cluster(folder: Path) -> Cluster:
    command = [*_as_owner(), _program("initdb"), "-D", str(folder), "-N", "-A", "trust", "-U", _OWNER]
    command += ["--encoding=UTF8", "--locale=C"]
    made = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False, timeout=120.0)
    if made.returncode:
        raise OSError(f"initdb failed: {made.stderr}")
    return Cluster(folder, free_ports(1)[0])


def copy_of(cluster: Cluster, folder: Path) -> Cluster:
    """Another instance from one that has not run yet: a third of the time of making it anew."""
    subprocess.run([*_as_owner(), "cp", "-r", cluster.folder, folder], check=True, timeout=60.0)
    return Cluster(folder, free_ports(1)[0])


def _wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 30.0
    while any(Path(f"/proc/{pid}").exists() and not _is_zombie(pid) for pid in pids):
        if time.monotonic() > deadline:
            raise OSError("killed processes of the server are still there")
        time.sleep(0.01)


def _is_zombie(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def _program(name: str) -> str:
    """Of the newest version; an empty string where there is none."""
    with suppress(OSError):
        versions = sorted(os.listdir(_PLACES), key=lambda each: (len(each), each), reverse=True)
        for version in versions:
            if found := shutil.which(f"{_PLACES}/{version}/bin/{name}"):
                return found
    return shutil.which(name) or ""


def _as_owner() -> list[str]:
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={_OWNER}", f"--regid={_group()}", "--init-groups"]


def _owner_exists() -> bool:
    return any(each.pw_name == _OWNER for each in pwd.getpwall())


def _group() -> int:
    return pwd.getpwnam(_OWNER).pw_gid


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
    return kept | {"LC_ALL": "C", "PWD": "/"}
