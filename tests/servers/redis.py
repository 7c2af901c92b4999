"""Redis as a private server that keeps nothing on disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.servers.private import Child, free_ports

__all__ = ["Server"]


class Server:
    def __init__(self) -> None:
        self._child: Child | None = None

    @staticmethod
    def installed() -> bool:
        return shutil.which("redis-server") is not None

    def start(self, folder: Path) -> str:
        port = free_ports(1)[0]
        asked = [
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(folder),
            "--save",
            "",
            "--databases",
            "16",
        ]
        self._child = Child(["redis-server", *asked], os.environ)
        self._child.wait_for("Ready to accept connections", 30.0)
        return f"redis://127.0.0.1:{port}/0"

    def stop(self) -> None:
        if self._child is not None:
            self._child.end()
