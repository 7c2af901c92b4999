"""Who makes the exchange? `CurlFetcher`: HTTP/1.1 and 2 by libcurl, every address asked of the guard at connect().

What curl could do by itself and we do not let it: follow redirects, speak anything but http and https, use a
proxy or a password from the environment, keep cookies, believe a certificate that does not check out.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
from typing import Any

import pycurl

from levada.adapters.guard import AddressGuard
from levada.adapters.web.buffers import SharedBuffer
from levada.adapters.web.driver import CurlDriver
from levada.adapters.web.limits import FetchLimits
from levada.adapters.web.transfer import Transfer
from levada.adapters.web.trust import trusted_certificates
from levada.errors import SettingsError
from levada.reasons import Reason
from levada.records import Request, Response

__all__ = ["CurlFetcher"]

_PIECE_BYTES = 256 * 1024
_CREDENTIALS = re.compile(r"[a-zA-Z]+:/+[^/?#\\]*@")
_CLOSED = "The fetcher is closed."


class CurlFetcher:
    """A `levada.ports.Fetcher`: at most `connections` exchanges are under way at once, the others wait."""

    def __init__(
        self,
        limits: FetchLimits,
        guard: AddressGuard,
        *,
        agent: str,
        ca_file: str | None = None,
        connections: int = 64,
        http2: bool = True,
    ) -> None:
        if not agent.isascii() or not agent.isprintable():
            raise SettingsError(f"the agent's name must be one line of ASCII, not {agent!r}")
        if ca_file and not os.access(ca_file, os.R_OK):
            raise SettingsError(f"fetch.ca_file: {ca_file} cannot be read: name a file of PEM certificates")
        self._limits = limits
        self._guard = guard
        self._agent = agent
        self._ca_file = ca_file or trusted_certificates()
        self._connections = connections
        self._http2 = http2
        self._turns = asyncio.Semaphore(connections)
        self._buffer = SharedBuffer(limits.max_buffered_bytes, connections)
        self._idle: list[Transfer] = []
        self._busy: dict[Any, Transfer] = {}
        self._driver: CurlDriver | None = None
        self._closed = False

    async def fetch(self, request: Request) -> Response:
        if not request.url[:8].lower().startswith(("http://", "https://")):
            return _refusal(request, Reason.SCHEME, "Only http and https are spoken here.")
        if _CREDENTIALS.match(request.url):
            return _refusal(request, Reason.BAD_URL, "A user name or password in an address is not sent.")
        async with self._turns:
            if self._closed:
                return _refusal(request, Reason.CONNECT, _CLOSED)
            return await self._exchange(request)

    async def close(self) -> None:
        """End what is under way (each with a reason) and every connection."""
        self._closed = True
        for transfer in tuple(self._busy.values()):
            answer, request = transfer.answer, transfer.request
            self._release(transfer)
            if answer is not None and not answer.done():
                answer.set_result(_refusal(request, Reason.CONNECT, _CLOSED))
        if self._driver is not None:
            self._driver.close()
            self._driver = None
        while self._idle:
            self._idle.pop().curl.close()

    async def _exchange(self, request: Request) -> Response:
        loop = asyncio.get_running_loop()
        if self._driver is None:
            self._driver = CurlDriver(loop, self._finish, keep_connections=4 * self._connections)
        transfer = self._idle.pop() if self._idle else self._new_transfer()
        answer: asyncio.Future[Response] = loop.create_future()
        try:
            transfer.begin(request, answer)
        except (ValueError, pycurl.error) as error:
            self._idle.append(transfer)
            return _refusal(request, Reason.BAD_URL, f"This cannot be asked: {error}.")
        self._busy[transfer.curl] = transfer
        self._driver.start(transfer.curl)
        try:
            return await answer
        finally:
            if transfer.answer is answer:  # cancelled: nobody finished it
                self._release(transfer)

    def _finish(self, curl: Any, code: int, message: str) -> None:
        transfer = self._busy[curl]
        answer = transfer.answer
        response = transfer.end(code, message)
        self._release(transfer)
        if answer is not None and not answer.done():
            answer.set_result(response)

    def _release(self, transfer: Transfer) -> None:
        if self._busy.pop(transfer.curl, None) is not None and self._driver is not None:
            self._driver.stop(transfer.curl)
            transfer.forget()
            self._idle.append(transfer)

    def _new_transfer(self) -> Transfer:
        return Transfer(self._handle(), self._limits, self._guard, self._buffer)

    def _handle(self) -> Any:
        limits, curl = self._limits, pycurl.Curl()
        version = pycurl.CURL_HTTP_VERSION_2TLS if self._http2 else pycurl.CURL_HTTP_VERSION_1_1
        for option, value in (
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.REDIR_PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.PROXY, ""),
            (pycurl.NETRC, pycurl.NETRC_IGNORED),
            (pycurl.NOSIGNAL, 1),
            (pycurl.HTTP_VERSION, version),
            (pycurl.SSL_VERIFYPEER, 1),
            (pycurl.SSL_VERIFYHOST, 2),
            (pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2),
            (pycurl.USERAGENT, self._agent),
            (pycurl.ACCEPT_ENCODING, _encodings()),
            (pycurl.BUFFERSIZE, _PIECE_BYTES),
            (pycurl.TIMEOUT_MS, max(1, int(limits.seconds * 1000))),
            (pycurl.CONNECTTIMEOUT_MS, max(1, int(limits.connect_seconds * 1000))),
            (pycurl.LOW_SPEED_LIMIT, math.ceil(limits.min_rate)),
            (pycurl.LOW_SPEED_TIME, math.ceil(limits.min_rate_seconds)),
        ):
            curl.setopt(option, value)
        if self._ca_file is not None:
            curl.setopt(pycurl.CAINFO, self._ca_file)
        return curl


def _encodings() -> str:
    """What this libcurl decodes piece by piece, so that the cap on decoded bytes stops a bomb early."""
    built_in = (("gzip", "zlib/"), ("br", "brotli/"), ("zstd", "zstd/"))
    return ", ".join(name for name, library in built_in if library in pycurl.version) or "identity"


def _refusal(request: Request, reason: Reason, detail: str) -> Response:
    return Response(url=request.url, status=0, reason=reason, detail=detail)
