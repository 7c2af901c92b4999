"""`CurlFetcher`: HTTP/1.1 and 2 by libcurl, with every address checked at connect().

curl is kept from following redirects, from protocols other than http and https, from proxies and passwords of the
environment, from cookies, and from invalid certificates. A request with a route (`levada.fetch.routes`) gets a handle
of its own, which is closed afterwards; its connections are kept and reused like all others, for the same route only.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import ssl
from pathlib import Path
from typing import Any

import pycurl

from levada.core.errors import SettingsError
from levada.core.reasons import Reason
from levada.core.records import Request, Response, Route
from levada.fetch.event_loop import CurlDriver
from levada.fetch.guard import AddressGuard
from levada.fetch.routes import route_options
from levada.fetch.transfer import FetchLimits, SharedBuffer, Transfer

# A packaged libcurl has its own OpenSSL, which looks where the build machine kept its certificates.
_USUAL_PLACES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS
    "/opt/homebrew/etc/ca-certificates/cert.pem",
)


def trusted_certificates() -> str | None:
    """The file of trusted authorities: SSL_CERT_FILE, Python's file, or a usual place; None if there is none."""
    candidates = (os.environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile, *_USUAL_PLACES)
    return next((path for path in candidates if path and Path(path).is_file()), None)


_PIECE_BYTES = 256 * 1024
_CREDENTIALS = re.compile(r"[a-zA-Z]+:/+[^/?#\\]*@")
_CLOSED = "The fetcher is closed."


class CurlFetcher:
    """A `levada.core.protocols.Fetcher` with at most `connections` exchanges at once; the others wait."""

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
            raise SettingsError(f"the name of the agent must be one line of ASCII, not {agent!r}")
        if ca_file and not os.access(ca_file, os.R_OK):
            raise SettingsError(f"fetch.ca_file: {ca_file} cannot be read: name a file of PEM certificates")
        self._limits = limits
        self._guard = guard
        self._agent = agent
        self._ca_file = ca_file or trusted_certificates()
        self._connections = connections
        self._http2 = http2
        self._slots = asyncio.Semaphore(connections)
        self._buffer = SharedBuffer(limits.max_buffered_bytes, connections)
        self._idle: list[Transfer] = []
        self._busy: dict[Any, Transfer] = {}
        self._driver: CurlDriver | None = None
        self._closed = False

    async def fetch(self, request: Request) -> Response:
        if not request.url[:8].lower().startswith(("http://", "https://")):
            return _refusal(request, Reason.SCHEME, "Only http and https are fetched.")
        if _CREDENTIALS.match(request.url):
            return _refusal(request, Reason.BAD_URL, "A user name or password in a URL is not sent.")
        async with self._slots:
            if self._closed:
                return _refusal(request, Reason.CONNECT, _CLOSED)
            return await self._exchange(request)

    async def close(self) -> None:
        """End the exchanges under way, each with a reason, and close every connection."""
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
        route = request.route
        transfer = self._idle.pop() if self._idle and route is None else self._new_transfer()
        answer: asyncio.Future[Response] = loop.create_future()
        try:
            if route is not None:
                self._set_route(transfer.curl, route)
            transfer.begin(request, answer)
        except (ValueError, pycurl.error) as error:
            self._put_aside(transfer)
            return _refusal(request, Reason.BAD_URL, f"This request cannot be made: {error}.")
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
            self._put_aside(transfer)

    def _put_aside(self, transfer: Transfer) -> None:
        """Keep the handle for another exchange; one that holds the secrets of a route is closed."""
        if transfer.request.route is None:
            self._idle.append(transfer)
        else:
            transfer.curl.close()

    def _set_route(self, curl: Any, route: Route) -> None:
        for option, value in route_options(route):
            curl.setopt(option, value)
        if self._ca_file is not None:
            curl.setopt(pycurl.PROXY_CAINFO, self._ca_file)

    def _new_transfer(self) -> Transfer:
        limits, curl = self._limits, pycurl.Curl()
        version = pycurl.CURL_HTTP_VERSION_2TLS if self._http2 else pycurl.CURL_HTTP_VERSION_1_1
        for option, value in (
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.REDIR_PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.PROXY, ""),
            (pycurl.NOPROXY, ""),
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
        return Transfer(curl, limits, self._guard, self._buffer)


def _encodings() -> str:
    """The encodings that this libcurl decodes as a stream, so that the limit on decoded bytes stops a bomb."""
    built_in = (("gzip", "zlib/"), ("br", "brotli/"), ("zstd", "zstd/"))
    return ", ".join(name for name, library in built_in if library in pycurl.version) or "identity"


def _refusal(request: Request, reason: Reason, detail: str) -> Response:
    return Response(url=request.url, status=0, reason=reason, detail=detail)
