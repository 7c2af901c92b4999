"""The workforce contract, run on every pool of workers."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from levada.core.clock import SystemClock
from levada.core.records import RawPage
from levada.parser.pool import ParserPool
from levada.scale.pools import FetchSlots, LocalProcesses
from levada.testing import WorkforceContract
from tests.manual_clock import ManualClock

_WORKER = "import signal, sys; signal.signal(15, lambda *a: sys.exit(0)); signal.pause()"


class TestFetchSlots(WorkforceContract):
    least, most = 1, 8

    @asynccontextmanager
    async def make(self) -> AsyncIterator[Any]:
        yield FetchSlots(8, ManualClock(), 1.0, lambda: 0)

    async def job(self, pool: Any) -> None:
        pool.begin()
        pool.end()


class TestParserChildren(WorkforceContract):
    most = 2

    @asynccontextmanager
    async def make(self) -> AsyncIterator[Any]:
        pool = ParserPool(2)
        try:
            yield pool
        finally:
            await pool.close()

    async def job(self, pool: Any) -> None:
        assert (await pool.parse(RawPage("http://a.test/", b"<title>One</title>", "text/html"))).title == "One"


class TestLocalProcesses(WorkforceContract):
    most, bounded = 2, False

    @asynccontextmanager
    async def make(self) -> AsyncIterator[Any]:
        pool = LocalProcesses("stage", [sys.executable, "-S", "-c", _WORKER], SystemClock(), grace=5.0)
        try:
            yield pool
        finally:
            await pool.close()
