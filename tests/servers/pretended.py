"""A server that needs no installing: the keeper is tested with it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.servers.private import Child

__all__ = ["Server"]

_SERVE = "import signal, sys; print('ready', flush=True); pipe = open(sys.argv[1], 'wb'); signal.pause()"


class Server:
    """Its address is a named pipe that it holds open for writing: whoever reads it learns of the server's end."""

    def __init__(self) -> None:
        self._child: Child | None = None

    @staticmethod
    def installed() -> bool:
        return True

    def start(self, folder: Path) -> str:
        if folder.parent.name == "crowded":
            raise OSError("no port is free")
        os.mkfifo(folder / "pipe")
        self._child = Child([sys.executable, "-c", _SERVE, folder / "pipe"], os.environ)
        self._child.wait_for("ready", 60.0)
        return str(folder / "pipe")

    def stop(self) -> None:
        if self._child is not None:
            self._child.end()
