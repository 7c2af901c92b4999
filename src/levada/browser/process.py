"""The browser's child process, as the fetcher sees it: started when it is first needed, and again when it ends."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import time
from contextlib import suppress
from importlib.util import find_spec

from msgspec.structs import replace

from levada.browser.messages import BrowserSetup, Rendered, ToRender, frame, read_frame
from levada.core.processes import module_command, signals_held_back
from levada.core.reasons import Reason

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_GRACE = 20.0  # seconds above those of two renderings, after which the child itself is taken to hang
_CLOSING = 5.0
_TRIES = 3
_PAUSE = 1.0  # seconds between two starts
_MOST_FRAME = 256 * 1024 * 1024
_ADVICE = "apt install chromium and pip install 'levada[browser]'"


def find_browser(command: str) -> str | None:
    """The browser's program: the one that is named, or the first that is installed."""
    names = (command,) if command else PROGRAMS
    return next((found for name in names if (found := shutil.which(name))), None)


def missing(command: str) -> str:
    """What is not installed, in one sentence that says what to do; "" if nothing is missing."""
    if find_spec("playwright") is None:
        return f"the package that drives the browser is not installed: {_ADVICE}"
    if find_browser(command) is None:
        what = f"there is no {command!r} (browser.command)" if command else "no Chromium is installed"
        return f"{what}: {_ADVICE}"
    return ""


class BrowserProcess:
    """Sends pages to the child and takes its answers; a child that died is an answer with a reason."""

    def __init__(self, setup: BrowserSetup) -> None:
        self._setup = setup
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[int, tuple[asyncio.subprocess.Process, asyncio.Future[Rendered]]] = {}
        self._numbers = itertools.count(1)
        self._starting = asyncio.Lock()
        self._started_at = float("-inf")
        self._closed = False

    async def render(self, asked: ToRender) -> Rendered:
        if said := missing(self._setup.command):
            return Rendered(asked.id, reason=Reason.BROWSER_MISSING, detail=said)
        number = next(self._numbers)
        answer: asyncio.Future[Rendered] = asyncio.get_running_loop().create_future()
        try:
            process = await self._send(replace(asked, id=number), answer)
            try:
                async with asyncio.timeout(2 * self._setup.seconds + _GRACE):
                    return await answer
            except TimeoutError:
                _kill(process)
                return Rendered(asked.id, reason=Reason.RENDER_TIMEOUT, detail="The browser does not answer.")
        except OSError:
            return _ended(asked.id)
        finally:
            self._waiting.pop(number, None)

    async def _send(self, asked: ToRender, answer: asyncio.Future[Rendered]) -> asyncio.subprocess.Process:
        """Send a page to the child; to a new one, if that has ended unseen."""
        for _ in range(_TRIES):
            process = await self._running()
            assert process.stdin is not None
            self._waiting[asked.id] = process, answer
            try:
                process.stdin.write(frame(asked))
                await process.stdin.drain()
            except OSError:
                if self._process is process:
                    self._process = None
                _kill(process)
            else:
                return process
        raise OSError("it ends as soon as it starts")

    async def close(self) -> None:
        """End the child in order, and the browser with it."""
        self._closed = True
        await self.rest()

    async def rest(self) -> None:
        """The same until the next page."""
        async with self._starting:
            process, self._process = self._process, None
            if process is not None:
                await self._end(process)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(_CLOSING):
                await process.wait()
        except TimeoutError:
            _kill(process)
            await process.wait()
        if self._reading is not None:
            await self._reading

    async def _running(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._closed:
                raise OSError("closed")
            if self._process is not None and self._process.returncode is None:
                return self._process
            await asyncio.sleep(max(0.0, self._started_at + _PAUSE - time.monotonic()))
            self._started_at = time.monotonic()
            with signals_held_back():
                self._process = await asyncio.create_subprocess_exec(
                    *module_command("levada.browser.child"),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                    limit=_MOST_FRAME,
                )
            assert self._process.stdin is not None
            self._process.stdin.write(frame(replace(self._setup, command=find_browser(self._setup.command) or "")))
            self._reading = asyncio.create_task(self._read(self._process))
            return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        with suppress(asyncio.IncompleteReadError, OSError, ValueError):
            while True:
                rendered = await read_frame(process.stdout, Rendered)
                _, waiting = self._waiting.get(rendered.id, (None, None))
                if waiting is not None and not waiting.done():
                    waiting.set_result(rendered)
        if self._process is process:
            self._process = None
        for number, (asked, waiting) in self._waiting.items():
            if asked is process and not waiting.done():
                waiting.set_result(_ended(number))
        _kill(process)
        await process.wait()


def _ended(number: int) -> Rendered:
    return Rendered(number, reason=Reason.RENDER_CRASH, detail="The browser's process ended.")


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
