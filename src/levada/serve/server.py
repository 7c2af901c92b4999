"""From settings to a listening server."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import uvicorn
import uvloop

from levada.accounts.accounts import Accounts
from levada.accounts.openid import OpenIdLogin, Provider
from levada.collection.components import make_fetcher
from levada.collection.notifications import notification_runner
from levada.core.clock import SystemClock
from levada.core.errors import UsageError
from levada.core.systemd import Service
from levada.serve.access import Access, Tokens, is_loopback
from levada.serve.app import make_app, make_shared_app
from levada.serve.gateway import PatientProtocol
from levada.serve.login import Login
from levada.serve.streaming import EventStreams
from levada.serve.view import View

_WAITING_CONNECTIONS = 256
_AT_ONCE = 1_000
_SHORTEST_TOKEN = 16
_LOOK = 1.0  # seconds between two looks at whether the parent is still there
_LOW_PORT = "ports below 1024 are for root: name another --port"
_WHY_NOT = {
    errno.EADDRINUSE: "another program listens there: name another --port, or 0 for any free one",
    errno.EADDRNOTAVAIL: "this machine does not have that address",
    errno.EACCES: _LOW_PORT,
    errno.EPERM: _LOW_PORT,
}


def listen(host: str, port: int, tokens: Tokens, accounts: Accounts | None = None) -> socket.socket:
    """A bound socket; `UsageError` where others could connect without a token, a user or a key."""
    is_closed = bool(tokens) or (accounts is not None and (accounts.has_users or accounts.has_keys))
    if not is_closed and not is_loopback(host):
        raise UsageError(
            f"beyond this machine ({host}) a token is needed: set LEVADA_TOKEN, name a file with --token-file, "
            "or add a user with 'levada users add'"
        )
    if not is_loopback(host):
        for token in (tokens.admin, tokens.reader):
            if 0 < len(token) < _SHORTEST_TOKEN:
                raise UsageError(
                    f"beyond this machine ({host}) a token must have at least {_SHORTEST_TOKEN} characters: make one "
                    "with 'openssl rand -hex 16'"
                )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_WAITING_CONNECTIONS)
    except OSError as error:
        why = _WHY_NOT.get(error.errno or 0) or (error.strerror or str(error)).partition(" (while ")[0]
        raise UsageError(f"cannot listen at {host}:{port}: {why}") from None


class Served(msgspec.Struct, frozen=True):
    """What a server serves: collections by name, and who may use them."""

    folders: Mapping[str, Path]
    shared: bool = False  # each is below /c/NAME/, even if there is only one
    tokens: Tokens = Tokens()
    accounts: Accounts | None = None
    names: frozenset[str] = frozenset()  # host names besides loopback addresses
    openid: Provider | None = None
    capture: bool = False
    closed: bool = False  # listens beyond this machine
    proxies: tuple[str, ...] = ()  # whose word on the client's address and on TLS is taken


def serve(
    served: Served,
    door: socket.socket,
    on_ready: Callable[[], None] = lambda: None,
    *,
    beside: int | None = None,
) -> None:
    """Serve until Ctrl-C or SIGTERM, or until the process `beside` has ended."""
    views = {
        name: View(path, capturing=served.capture, name=name, accounts=served.accounts)
        for name, path in served.folders.items()
    }
    first, now = next(iter(views.values())), SystemClock().monotonic
    access = Access(served.tokens, served.names, now, served.accounts, tuple(views), closed=served.closed)
    logging.getLogger("uvicorn.error").addFilter(_is_news)

    async def run() -> None:
        senders = [notification_runner(view).run for view in views.values()]
        streams, service = EventStreams(), Service()
        async with _login(access, served, first) as login:
            if served.shared:
                app = make_shared_app(views, access, *senders, streams=streams, login=login)
            else:
                app = make_app(first, access, *senders, streams=streams, login=login)
            server = _Server(
                uvicorn.Config(
                    app,
                    log_level="warning",
                    access_log=False,
                    server_header=False,
                    http=PatientProtocol,
                    limit_concurrency=_AT_ONCE,
                    proxy_headers=bool(served.proxies),
                    forwarded_allow_ips=list(served.proxies),
                    timeout_keep_alive=15,
                    timeout_graceful_shutdown=2,
                    loop="uvloop",
                ),
                streams,
                service,
            )
            on_ready()
            watching = asyncio.create_task(_end_with(beside, server))
            try:
                async with service.running():  # who connects from now on is answered: the socket listens
                    await server.serve(sockets=[door])
            finally:
                watching.cancel()

    uvloop.run(run())


@asynccontextmanager
async def _login(access: Access, served: Served, view: View) -> AsyncIterator[Login]:
    """The ways in. The OpenID provider is asked by the fetcher of the first collection, and so past its guard."""
    if served.openid is None:
        yield Login(access)
        return
    fetcher = make_fetcher(view.folder.settings(), direct=True)
    try:
        openid = OpenIdLogin(served.openid, fetcher.fetch, view.clock.monotonic)
        yield Login(access, openid, urlsplit(served.openid.issuer).hostname or "")
    finally:
        await fetcher.close()


async def _end_with(parent: int | None, server: uvicorn.Server) -> None:
    """End when the parent has: a parent that was killed cannot say so."""
    while parent is None or os.getppid() == parent:  # noqa: ASYNC110 -- the kernel has no event for it
        await asyncio.sleep(_LOOK)
    server.should_exit = True


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, streams: EventStreams, service: Service) -> None:
        super().__init__(config)
        self._streams = streams
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the event streams first: uvicorn would wait for them until its timeout."""
        self._service.stopping()
        self._streams.end()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals without raising them again, which would make a regular end look like a failure."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


def _is_news(record: logging.LogRecord) -> bool:
    """Whether to log it: an answer that was cut off because the server ends is not an error."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
