"""Waiting for servers: what needs PostgreSQL and RabbitMQ starts again when they are back, and says so once."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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
_PATIENCE = 5.0  # seconds in which whoever asks whether we are ready has to ask


class Readiness:
    """Whether a process can do its work now, and if not, why: for whoever routes work to it or restarts it."""

    def __init__(self) -> None:
        self._troubles = {"start": "it is starting"}

    @property
    def trouble(self) -> str:
        """ "": it is ready."""
        return next(reversed(list(self._troubles.values())), "")

    def note(self, part: str, trouble: str = "") -> None:
        """A part of the process is in order, or has this trouble. Each change is logged."""
        before = self._troubles.pop(part, "")
        if trouble:
            self._troubles[part] = trouble
            if not before:
                log.warning("waiting: %s", trouble)
        elif before and part != "start":
            log.info("going on: %s", part)


@contextmanager
def answering_health(address: tuple[str, int] | None, readiness: Readiness) -> Iterator[int]:
    """Answer `GET /ready` and `GET /live` over HTTP; gives the port.

    On a thread of its own: while a server is dialled, the process is alive.
    """
    if address is None:
        yield 0
        return

    class Probe(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            status, said = _health(self.path, readiness)
            body = f"{said}\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Probes come every few seconds."""

    try:
        server = ThreadingHTTPServer(address, Probe)
    except OSError as error:
        words = f"cannot listen at {address[0]}:{address[1]} ({error.strerror}): name another place after --health"
        raise UsageError(words) from None
    thread = threading.Thread(target=server.serve_forever, name="health", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def _health(path: str, readiness: Readiness) -> tuple[int, str]:
    if path not in ("/ready", "/live"):
        return 404, "ask for /ready or /live"
    if path == "/ready" and readiness.trouble:
        return 503, readiness.trouble
    return 200, path.strip("/")


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
