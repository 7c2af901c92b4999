"""Waiting for servers: what needs PostgreSQL and RabbitMQ starts again when they are back, and says so once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import ParamSpec, TypeVar

from levada.core.clock import first_of
from levada.core.errors import BrokerAway, LevadaError, StoreAway, StoreFull, UsageError
from levada.core.protocols import Clock
from levada.crawl.executor import StoreExecutor

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0  # wall clock
_PASSING = (StoreAway, StoreFull, BrokerAway)
_LONGEST_REQUEST = 4096  # bytes
_PATIENCE = 5.0  # seconds in which whoever asks whether we are ready has to ask


class Readiness:
    """Whether a process can do its work now, and if not, why: for whoever routes work to it or restarts it."""

    def __init__(self) -> None:
        self._troubles = {"start": "it is starting"}

    @property
    def trouble(self) -> str:
        """ "": it is ready."""
        return next(reversed(self._troubles.values()), "")

    def note(self, part: str, trouble: str = "") -> None:
        """A part of the process is in order, or has this trouble. Each change is logged."""
        before = self._troubles.pop(part, "")
        if trouble:
            self._troubles[part] = trouble
            if not before:
                log.warning("waiting: %s", trouble)
        elif before and part != "start":
            log.info("going on: %s", part)


@asynccontextmanager
async def answering_health(address: tuple[str, int] | None, readiness: Readiness) -> AsyncIterator[int]:
    """Answer `GET /ready` and `GET /live` over HTTP; gives the port."""
    if address is None:
        yield 0
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_PATIENCE):
                words = (await reader.readuntil(b"\r\n")).split()
                while await reader.readuntil(b"\r\n") != b"\r\n":
                    pass
                writer.write(_health(words, readiness))
                await writer.drain()
        writer.close()

    host, port = address
    try:
        server = await asyncio.start_server(answer, host, port, limit=_LONGEST_REQUEST)
    except OSError as error:
        raise UsageError(
            f"cannot listen at {host}:{port} ({error.strerror}): name another place after --health"
        ) from None
    async with server:
        yield server.sockets[0].getsockname()[1]


def _health(words: list[bytes], readiness: Readiness) -> bytes:
    path = words[1] if len(words) == 3 and words[0] in (b"GET", b"HEAD") else b""
    if path not in (b"/ready", b"/live"):
        status, said = "404 Not Found", "ask for /ready or /live"
    elif path == b"/ready" and readiness.trouble:
        status, said = "503 Service Unavailable", readiness.trouble
    else:
        status, said = "200 OK", path.decode().strip("/")
    body = f"{said}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + (b"" if words[:1] == [b"HEAD"] else body)


async def persistently(
    attempt: Callable[[Callable[[], None]], Awaitable[None]],
    stop: asyncio.Event,
    readiness: Readiness,
    clock: Clock,
) -> None:
    """Make attempts until one ends, or `stop` is set. One that fails because a server is away is made again.

    An attempt calls what it is given when it has what it needs. Any other error ends it.
    """
    pause = _FIRST_PAUSE

    def is_open() -> None:
        nonlocal pause
        pause = _FIRST_PAUSE
        readiness.note("start")
        readiness.note("servers")

    while not stop.is_set():
        try:
            await attempt(is_open)
        except _PASSING as error:
            readiness.note("servers", fact(error))
            await first_of(stop, clock.sleep(pause))
            pause = min(_LONGEST_PAUSE, 2 * pause)
        else:
            return


def fact(error: LevadaError) -> str:
    """What is wrong, without what a user should do about it: we do it."""
    return str(error).partition(": see that it runs")[0].partition(": start again")[0]


class PatientExecutor(StoreExecutor):
    """Repeats each call of the store until its server answers, or until `give_up`; not at all unless it is `patient`.

    Every call is one transaction that may be made twice: a lease that was lost ends by itself, and a commit that was
    made is refused the second time.
    """

    def __init__(self, clock: Clock, readiness: Readiness, *, patient: bool = True) -> None:
        super().__init__()
        self._clock = clock
        self._readiness = readiness
        self._given_up = asyncio.Event()
        if not patient:
            self.give_up()

    def give_up(self) -> None:
        """From now on errors are raised: the process is to end."""
        self._given_up.set()

    async def run(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        pause = _FIRST_PAUSE
        while True:
            try:
                done = await self._call(lambda: operation(*args, **kwargs))
            except (StoreAway, StoreFull) as error:
                if self._given_up.is_set():
                    raise
                self._readiness.note("the store", fact(error))
                await first_of(self._given_up, self._clock.sleep(pause))
                pause = min(_LONGEST_PAUSE, 2 * pause)
            else:
                self._readiness.note("the store")
                return done
