"""Telling systemd how a service is: ready, alive, stopping. The protocol of `sd_notify`, without its library.

systemd names a datagram socket in NOTIFY_SOCKET, and in WATCHDOG_USEC how often it wants to hear of the service. Where
it is not systemd that started the process, nothing is told. The names are taken out of the environment, because a
child is not the service.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager, suppress

_PER_LIMIT = 3  # signs of life before systemd takes the service for hung


class Service:
    """The service that this process is, as systemd sees it."""

    def __init__(self, environment: MutableMapping[str, str] | None = None) -> None:
        known = os.environ if environment is None else environment
        self._address = known.pop("NOTIFY_SOCKET", "")
        limit, process = known.pop("WATCHDOG_USEC", ""), known.pop("WATCHDOG_PID", "")
        ours = process in ("", str(os.getpid()))
        self._every = int(limit) / 1e6 / _PER_LIMIT if limit.isdecimal() and int(limit) and ours else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Say that the service is ready, and that it is alive for as long as its event loop runs."""
        self._tell("READY=1")
        beating = asyncio.create_task(self._beat(self._every)) if self._every else None
        try:
            yield
        finally:
            if beating:
                beating.cancel()

    def stopping(self) -> None:
        """Say that the service ends, and needs a while for it."""
        self._tell("STOPPING=1")

    async def _beat(self, every: float) -> None:
        while True:
            self._tell("WATCHDOG=1")
            await asyncio.sleep(every)

    def _tell(self, state: str) -> None:
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:  # a lost word harms nobody
            line.sendto(state.encode(), socket.MSG_DONTWAIT, address)
