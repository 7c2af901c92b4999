"""MariaDB as a private server whose superuser needs no password; for any user, root or not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.servers.private import Child, free_ports

__all__ = ["Server"]

_PROGRAMS = ("mariadbd", "/usr/sbin/mariadbd")


class Server:
    def __init__(self) -> None:
        self._child: Child | None = None

    @staticmethod
    def installed() -> bool:
        return _program() is not None and shutil.which("mariadb-install-db") is not None

    def start(self, folder: Path) -> str:
        program = _program()
        assert program is not None
        data = folder / "data"
        user = ["--user=root"] if os.getuid() == 0 else []
        if not data.exists():
            _make(data, user)
        port = free_ports(1)[0]
        places = [f"--datadir={data}", f"--socket={folder / 'socket'}", f"--pid-file={folder / 'pid'}"]
        thrifty = ["--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M", "--innodb-flush-method=nosync"]
        listening = [f"--port={port}", "--bind-address=127.0.0.1", "--skip-name-resolve"]
        self._child = Child([program, "--no-defaults", *user, *places, *thrifty, *listening], os.environ)
        self._child.wait_for("ready for connections", 60.0)
        return f"mariadb://root@127.0.0.1:{port}/"

    def stop(self) -> None:
        if self._child is not None:
            self._child.end()


def _program() -> str | None:
    return next((found for name in _PROGRAMS if (found := shutil.which(name))), None)


def _make(data: Path, user: list[str]) -> None:
    asked = ["--auth-root-authentication-method=normal", "--skip-test-db", f"--datadir={data}"]
    command = ["mariadb-install-db", "--no-defaults", *user, *asked]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"the data folder cannot be made: {done.stdout[-500:]}{done.stderr[-500:]}")
