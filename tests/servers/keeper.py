"""The process that ends a server shared by several test processes: it counts who holds it.

`python -m tests.servers.keeper NAME FOLDER` starts the server of `tests/servers/NAME.py`, says its address and goes
on in the background. Whoever connects to the socket in the folder is told the address, and holds on by staying
connected; if it is killed, the system hangs up. When the last has gone, the server ends and the folder goes.
"""

from __future__ import annotations

import os
import selectors
import shutil
import socket
import sys
import time
from importlib import import_module
from pathlib import Path

from tests.servers.private import PrivateServer

__all__ = ["SOCKET"]

SOCKET = "held"
_TRIES = 3  # a port may be taken between being found free and being used
_FIRST_HOLDER = 60.0
_ENDING = 30.0


def keep(name: str, folder: Path) -> None:
    _make(folder)
    server: PrivateServer = import_module(f"tests.servers.{name}").Server()
    try:
        address = _started(server, folder)
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(folder / SOCKET))
            door.listen()
            _say(address)
            _serve(door, address.encode())
    except OSError as error:
        _say(f"failed: {error}")
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _make(folder: Path) -> None:
    """A keeper that is just ending still has the folder, and removes it: wait for that."""
    deadline = time.monotonic() + _ENDING
    while True:
        try:
            return folder.mkdir(parents=True)
        except FileExistsError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _started(server: PrivateServer, folder: Path) -> str:
    for tried in range(1, _TRIES + 1):
        try:
            return server.start(folder)
        except OSError:
            server.stop()
            if tried == _TRIES:
                raise
    raise AssertionError("the last try returns or raises")


def _serve(door: socket.socket, address: bytes) -> None:
    holders: set[socket.socket] = set()
    with selectors.DefaultSelector() as events:
        events.register(door, selectors.EVENT_READ)
        while ready := events.select(None if holders else _FIRST_HOLDER):
            for key, _ in ready:
                if key.fileobj is door:
                    holder, _ = door.accept()
                    holder.sendall(address)
                    events.register(holder, selectors.EVENT_READ)
                    holders.add(holder)
                else:
                    gone = next(each for each in holders if each is key.fileobj)
                    events.unregister(gone)
                    holders.remove(gone)
                    gone.close()
            if not holders:
                return


def _say(line: str) -> None:
    """To whoever started this, who then need not wait."""
    with open(1, "w", encoding="utf-8", closefd=False) as out:
        out.write(line)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.close(silence)


if __name__ == "__main__":
    if os.fork() == 0:
        os.setsid()
        keep(sys.argv[1], Path(sys.argv[2]))
