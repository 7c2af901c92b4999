"""Egress proxy: the only way from the browser to the network.

An HTTP proxy on loopback that nobody else may use. Every page has a pass of its own, a secret that the browser sends
along. The proxy resolves each name itself, asks the address guard about what it is going to dial, and dials exactly
that; so no spelling, redirect or change of DNS gets around the guard, whatever a script asks for. It counts the bytes
of each page, and ends all connections of a page with the page.

A request to a `http` address is read and sent on alone, with its connection closed afterwards; for `https` and
WebSockets the browser asks for a tunnel to a host and a port.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from levada.browser.upstream import ProxyTroubleError, connect, read_head
from levada.core.site_rules.routes import RESOLVING, ProxyAddress
from levada.fetch.guard import AddressGuard
from levada.fetch.proxies import checked_target

KEY_HOST = "pass.invalid"
"""A host that the proxy answers for by itself: a page of it is loaded once, so that the browser learns its pass."""

_MOST_HEAD = 64 * 1024
_PIECE = 64 * 1024
_HOP_BY_HOP = (b"proxy-", b"connection:", b"keep-alive:")
_USER = "levada"


class EgressLimits(msgspec.Struct, frozen=True):
    max_bytes: int = 30 * 1024 * 1024  # of one page, in both directions
    connections_per_host: int = 6  # of all pages together, as one visitor's browser has
    connect_seconds: float = 10.0
    idle_seconds: float = 30.0


class Pass:
    """The right of one page to use the proxy, and what it has used."""

    def __init__(self, proxy: ProxyAddress | None = None) -> None:
        self.proxy = proxy  # through which everything goes
        self.trouble = ""  # that the proxy does not work
        self.secret = secrets.token_urlsafe(24)
        self.is_open = False
        self.used = 0  # bytes, since it was opened
        self.refused: list[str] = []  # sentences of the guard
        self.too_much = False
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        self.is_open, self.used, self.too_much, self.trouble = True, 0, False, ""
        self.refused.clear()

    def close(self) -> None:
        """End all connections of the page."""
        self.is_open = False
        for task in tuple(self._tasks):
            task.cancel()

    def add(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def count(self, size: int, most: int) -> bool:
        """Whether so many more bytes may pass."""
        self.used += size
        if self.used > most:
            self.too_much = True
        return self.is_open and not self.too_much


class _End(NamedTuple):
    """One end of a connection through the proxy."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class _Refused(Exception):
    def __init__(self, status: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class EgressProxy:
    """Serves until closed; `port` is where, on 127.0.0.1."""

    def __init__(self, guard: AddressGuard, limits: EgressLimits = EgressLimits()) -> None:  # noqa: B008 - frozen
        self.port = 0
        self._guard = guard
        self._limits = limits
        self._server: asyncio.Server | None = None
        self._passes: dict[str, Pass] = {}
        self._hosts: OrderedDict[tuple[str, int], asyncio.Semaphore] = OrderedDict()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_MOST_HEAD)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        for each in tuple(self._passes.values()):
            self.revoke(each)
        if self._server is not None:
            self._server.close()

    def issue(self, proxy: ProxyAddress | None = None) -> Pass:
        issued = Pass(proxy)
        self._passes[_credential(issued.secret)] = issued
        return issued

    def revoke(self, issued: Pass) -> None:
        issued.close()
        self._passes.pop(_credential(issued.secret), None)

    @property
    def user(self) -> str:
        return _USER

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            async with asyncio.timeout(self._limits.idle_seconds):
                first, lines = await read_head(reader)
            issued = self._passes.get(_authorization(lines))
            if issued is None:
                writer.write(_said("407 Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="levada"'))
                await writer.drain()
                return
            issued.add(task)
            await self._pass_on(first, lines, issued, _End(reader, writer))
        except _Refused as refusal:
            with suppress(OSError):
                writer.write(_said(refusal.status))
                await writer.drain()
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # one of the two went away, or did not speak HTTP
        except asyncio.CancelledError:
            pass  # its page ended
        finally:
            writer.close()

    async def _pass_on(self, first: bytes, lines: Sequence[bytes], issued: Pass, browser: _End) -> None:
        method, target, _ = first.decode("ascii").split(" ", 2)
        is_tunnel = method == "CONNECT"
        address = urlsplit(f"//{target}" if is_tunnel else target)
        host, port = address.hostname or "", address.port
        if not is_tunnel and address.scheme != "http":
            raise _Refused("403 Forbidden", f"{address.scheme}: only http and https")
        if host == KEY_HOST:
            browser.writer.write(_said("200 OK", "Content-Type: text/html", body=b"<!doctype html>"))
            await browser.writer.drain()
            return
        if not issued.is_open:
            raise _Refused("403 Forbidden", "its page has ended")
        port = port or (443 if is_tunnel else 80)
        async with self._turn(host, port):
            checked = await self._permitted(host, port, issued)
            try:
                async with asyncio.timeout(self._limits.connect_seconds):
                    site = _End(*await connect(checked, port, issued.proxy, _MOST_HEAD))
            except ProxyTroubleError as trouble:
                issued.trouble = str(trouble)
                raise _Refused("502 Bad Gateway", issued.trouble) from None
            except (OSError, TimeoutError):
                raise _Refused("502 Bad Gateway", f"{host} does not answer") from None
            try:
                if is_tunnel:
                    browser.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    await self._both_ways(issued, browser, site)
                else:
                    path = address._replace(scheme="", netloc="", fragment="").geturl() or "/"
                    kept = [line for line in lines if not line.lower().startswith(_HOP_BY_HOP)]
                    request = f"{method} {path} HTTP/1.1".encode("ascii")
                    site.writer.write(b"\r\n".join([request, *kept, b"Connection: close", b"", b""]))
                    await self._exchange(method.encode(), issued, browser, site)
            finally:
                site.writer.close()

    def _turn(self, host: str, port: int) -> asyncio.Semaphore:
        """At most so many connections to a host at once, whichever pages they are for."""
        turn = self._hosts.get((host, port))
        if turn is None:
            turn = self._hosts[host, port] = asyncio.Semaphore(self._limits.connections_per_host)
            if len(self._hosts) > 2_000:
                self._hosts.popitem(last=False)
        else:
            self._hosts.move_to_end((host, port))
        return turn

    async def _permitted(self, host: str, port: int, issued: Pass) -> str:
        """An address of this host that the guard permits; the host, for a proxy that resolves names itself."""
        loop, proxy = asyncio.get_running_loop(), issued.proxy
        resolves = proxy is not None and proxy.scheme in RESOLVING
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError, TimeoutError):
            found = []
            if not resolves:
                raise _Refused("502 Bad Gateway", f"{host} cannot be resolved") from None
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        checked, refusal = checked_target(self._guard, host, port, addresses, resolves=resolves)
        if refusal is None:
            return host if resolves else checked
        if len(issued.refused) < 100:
            issued.refused.append(refusal[1])
        raise _Refused("403 Forbidden", refusal[1])

    async def _exchange(self, method: bytes, issued: Pass, browser: _End, site: _End) -> None:
        """One request. It ends with its answer: a site may leave its side of the connection open."""
        body = self._one_way(issued, browser.reader, site.writer)
        await _first_of(body, self._answer(issued, site.reader, browser.writer, has_body=method != b"HEAD"))

    async def _answer(
        self, issued: Pass, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, has_body: bool
    ) -> None:
        """Send an answer on, with the connection to be closed after it: each request is checked by itself."""
        while True:
            async with asyncio.timeout(self._limits.idle_seconds):
                first, lines = await read_head(reader)
            is_interim = first.split(b" ", 2)[1].startswith(b"1")
            kept = [line for line in lines if not line.lower().startswith(_HOP_BY_HOP)]
            closing = () if is_interim else (b"Connection: close",)
            head = b"\r\n".join([first, *kept, *closing, b"", b""])
            if not issued.count(len(head), self._limits.max_bytes):
                raise _Refused("403 Forbidden", "too many bytes")
            writer.write(head)
            if not is_interim:
                break
        if not has_body or first.split(b" ", 2)[1] in (b"204", b"304"):
            await writer.drain()
        else:
            await self._one_way(issued, reader, writer, _length(lines))

    async def _both_ways(self, issued: Pass, browser: _End, site: _End) -> None:
        there = self._one_way(issued, browser.reader, site.writer)
        await _first_of(there, self._one_way(issued, site.reader, browser.writer))

    async def _one_way(
        self, issued: Pass, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: int | None = None
    ) -> None:
        """Send on until the end, or so many bytes."""
        while left != 0 and (piece := await reader.read(_PIECE if left is None else min(left, _PIECE))):
            if not issued.count(len(piece), self._limits.max_bytes):
                return
            left = None if left is None else left - len(piece)
            writer.write(piece)
            await writer.drain()


async def _first_of(*ways: Coroutine[None, None, None]) -> None:
    """Run them until one ends."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _length(lines: Sequence[bytes]) -> int | None:
    """How long the body says to be; None if it says nothing, or is chunked."""
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    stated = headers.get(b"content-length", b"")
    return int(stated) if stated.isdigit() and b"transfer-encoding" not in headers else None


def _credential(secret: str) -> str:
    return "basic " + b64encode(f"{_USER}:{secret}".encode()).decode()


def _authorization(lines: Sequence[bytes]) -> str:
    for line in lines:
        name, _, value = line.partition(b":")
        if name.lower() == b"proxy-authorization":
            kind, _, text = value.strip().decode("latin-1").partition(" ")
            return f"{kind.lower()} {text}"
    return ""


def _said(status: str, *headers: str, body: bytes = b"") -> bytes:
    lines = (f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "Connection: close", "", "")
    return "\r\n".join(lines).encode("ascii") + body
