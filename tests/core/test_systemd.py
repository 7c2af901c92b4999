"""What systemd is told, and that nobody is told anything where it did not ask."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from levada.core.systemd import Service


async def run(service: Service) -> None:
    async with service.running():
        await asyncio.sleep(0)
        service.stopping()


def heard(environment: dict[str, str], address: str) -> list[str]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(address)
        line.setblocking(False)
        asyncio.run(run(Service(environment)))
        found = []
        try:
            while True:
                found.append(line.recv(100).decode())
        except BlockingIOError:
            return found


def test_a_service_is_ready_alive_and_stopping(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}
    assert heard(environment, address) == ["READY=1", "WATCHDOG=1", "STOPPING=1"]
    assert environment == {}, "children are not the service"


def test_the_watch_of_another_process_is_left_to_it(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    for watch in ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}, {}):
        assert heard({"NOTIFY_SOCKET": address, **watch}, address) == ["READY=1", "STOPPING=1"]
        os.unlink(address)


def test_an_abstract_socket_is_reached() -> None:
    name = f"levada-test-{os.getpid()}"
    assert heard({"NOTIFY_SOCKET": f"@{name}"}, f"\0{name}") == ["READY=1", "STOPPING=1"]


def test_nobody_is_told_where_nobody_listens(tmp_path: Path) -> None:
    asyncio.run(run(Service({"NOTIFY_SOCKET": str(tmp_path / "gone")})))
    asyncio.run(run(Service({})))
