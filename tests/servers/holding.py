"""The hold of a test process on a server that all processes of a run share."""

from __future__ import annotations

import fcntl
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.servers.keeper import SOCKET

__all__ = ["held"]

_ROOT = Path(__file__).parents[2]


@contextmanager
def held(name: str, shared: Path) -> Iterator[str]:
    """The address of the server, which runs at least until the end of this block."""
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = shared / name
        hold = _hold(folder)
        if hold is None:
            _start(name, folder)
            hold = _hold(folder)
    if hold is None:
        raise RuntimeError(f"{name} ended as soon as it had started")
    with hold.line:
        yield hold.address


class _Hold(NamedTuple):
    line: socket.socket
    address: str


def _hold(folder: Path) -> _Hold | None:
    """Nothing if there is no such server, or if it is just ending."""
    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(str(folder / SOCKET))
        address = line.recv(4096).decode()
    except OSError:
        address = ""
    if address:
        return _Hold(line, address)
    line.close()
    return None


def _start(name: str, folder: Path) -> None:
    command = [sys.executable, "-m", "tests.servers.keeper", name, str(folder)]
    started = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True)
    if started.stdout.startswith("failed:") or not started.stdout:
        raise RuntimeError(f"{name} does not start: {started.stdout}")
