"""One HTTP exchange: limits, headers, buffers, and curl's errors as reasons.

A header value is one character per byte (Latin-1) in both directions, so an entity tag is sent back exactly as it
came. Only a location is decoded, as UTF-8 like in every browser.

A curl handle is used again and again: between two exchanges only the URL and, if they differ, the headers are set.
curl calls back for every piece; small ones are kept together, and all are joined once, at the end.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pycurl

from levada.core.reasons import Reason
from levada.core.records import Request, Response
from levada.fetch.guard import AddressGuard
from levada.fetch.routes import route_failure
from levada.pages.documents.recognition import may_be_document

_MIB = 1024 * 1024


class FetchLimits(msgspec.Struct, frozen=True):
    """Limits of an exchange, each with its own `Reason`; only the minimum rate can be switched off."""

    max_bytes: int = 10 * _MIB  # of the body on the wire
    max_decoded_bytes: int = 20 * _MIB  # of the body after gzip, br or zstd
    max_document_bytes: int = 15 * _MIB  # of a PDF, office file, e-book or data, where that is more than these
    max_buffered_bytes: int = 96 * _MIB  # of all bodies under way
    max_header_bytes: int = 64 * 1024
    seconds: float = 30.0  # from dialling to the last byte
    connect_seconds: float = 10.0  # name, connection and TLS
    min_rate: float = 100.0  # bytes per second, over `min_rate_seconds`; 0: none
    min_rate_seconds: float = 10.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not (value > 0 or (name == "min_rate" and value == 0)):
                raise ValueError(f"{name} must be above 0, not {value}")


class SharedBuffer:
    """Counts the bytes of all bodies under way against one limit.

    Above the limit, an exchange with more than its fair share (limit / exchanges) is stopped. So many large bodies
    can neither fill the memory nor push out a small page. At most twice the limit is ever held.
    """

    def __init__(self, max_bytes: int, exchanges: int) -> None:
        self._max_bytes = max_bytes
        self._fair_share = max_bytes // exchanges
        self.held = 0

    def admits(self, more: int, own: int) -> bool:
        """Add `more` bytes for an exchange that then holds `own`; False: nothing was added, it must stop."""
        if self.held + more > self._max_bytes and own > self._fair_share:
            return False
        self.held += more
        return True

    def release(self, held: int) -> None:
        self.held -= held


_TOO_LARGE = 100  # CURLE_TOO_LARGE: a head or line beyond curl's own limits; pycurl has no name for it
_REASONS = {
    pycurl.E_UNSUPPORTED_PROTOCOL: Reason.PROTOCOL,  # also an answer that is not HTTP/1 or later
    pycurl.E_URL_MALFORMAT: Reason.BAD_URL,
    pycurl.E_COULDNT_RESOLVE_HOST: Reason.DNS,
    pycurl.E_COULDNT_CONNECT: Reason.CONNECT,
    pycurl.E_SSL_CONNECT_ERROR: Reason.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: Reason.TLS,
    pycurl.E_SSL_CACERT_BADFILE: Reason.TLS,
    pycurl.E_SSL_CERTPROBLEM: Reason.TLS,
    pycurl.E_SSL_CIPHER: Reason.TLS,
    pycurl.E_SSL_ISSUER_ERROR: Reason.TLS,
    pycurl.E_SSL_INVALIDCERTSTATUS: Reason.TLS,
    pycurl.E_SSL_CRL_BADFILE: Reason.TLS,
    pycurl.E_USE_SSL_FAILED: Reason.TLS,
    _TOO_LARGE: Reason.HEADER_BYTES,
}


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ADDRESS = "location"
_FOLD = (" ", "\t")
_SPACE = " \t\r\n\v\f"  # ASCII only: Python's other spaces are bytes of letters here
_BLANK = (b"\r\n", b"\n", b"\r", b"")
_LINE_BREAKING = re.compile(r"[\r\n\0]")


def header_lines(headers: Iterable[tuple[str, str]]) -> list[bytes]:
    """The header lines of a request in curl's form; ValueError if a name or value could contain another line."""
    lines = []
    for name, value in headers:
        if not _TOKEN.fullmatch(name) or _LINE_BREAKING.search(value):
            raise ValueError(f"the request header {name!r} is not one line")
        # For curl, "Name:" removes a header and "Name;" sends it empty.
        line = f"{name}: {value}" if value.strip() else f"{name};"
        lines.append(line.encode("latin-1"))
    return lines


def read_head(received: Sequence[bytes]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """HTTP version and headers of the final answer, ("", ()) if its head is incomplete.

    Interim (1xx) heads and trailers are left out.
    """
    block = _final_block(received)
    if not block:
        return "", ()
    first, *lines = b"".join(block).decode("latin-1").split("\n")
    version = first.partition(" ")[0].rpartition("/")[2].strip()
    headers: list[tuple[str, str]] = []
    for line in lines:
        name, colon, value = line.partition(":")
        if line[:1] in _FOLD and headers:  # a folded line continues the header before it
            headers[-1] = (headers[-1][0], f"{headers[-1][1]} {line.strip(_SPACE)}")
        elif colon:
            name, value = name.strip(_SPACE).lower(), value.strip(_SPACE)
            headers.append((name, _address(value) if name == _ADDRESS else value))
    return version, tuple(headers)


def _address(value: str) -> str:
    try:
        return value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value


def _final_block(lines: Sequence[bytes]) -> Sequence[bytes]:
    start = 0
    for index, line in enumerate(lines):
        if line not in _BLANK:
            continue
        block = lines[start:index]
        if block and not block[0].partition(b" ")[2].startswith(b"1"):  # not interim
            return block
        start = index + 1
    return ()


_ACCEPT = ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.5")
_ENOUGH = -1  # not the length of the piece: curl aborts the exchange
_SMALL = 4096  # bytes; curl usually gives 16 KB at a time
_MOST_LINES = 2_000  # of a head
_WIRE_BYTES = getattr(pycurl, "SIZE_DOWNLOAD_T", None) or pycurl.SIZE_DOWNLOAD  # older pycurls have only the second


class Transfer:
    """One curl handle and its current exchange."""

    def __init__(self, curl: Any, limits: FetchLimits, guard: AddressGuard, buffer: SharedBuffer) -> None:
        self.curl = curl
        self.request = Request("")
        self.answer: asyncio.Future[Response] | None = None
        self._limits = limits
        self._guard = guard
        self._buffer = buffer
        self._headers: tuple[tuple[str, str], ...] | None = None
        self._held = 0
        self._started = self._deadline = 0.0
        self.forget()
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.HEADERFUNCTION, self._take_head)
        curl.setopt(pycurl.WRITEFUNCTION, self._take_body)
        # Not curl's MAXFILESIZE: whether it counts wire bytes or decoded ones depends on the version of curl.
        curl.setopt(pycurl.XFERINFOFUNCTION, self._count_wire)
        curl.setopt(pycurl.NOPROGRESS, 0)

    def begin(self, request: Request, answer: asyncio.Future[Response]) -> None:
        """Set the handle up for `request`; ValueError or pycurl.error if the request cannot be made."""
        self.curl.setopt(pycurl.URL, request.url.encode("ascii"))
        if request.headers != self._headers:
            self._set_headers(request.headers)
        if request.body is not None:
            self.curl.setopt(pycurl.POST, 1)
            self.curl.setopt(pycurl.COPYPOSTFIELDS, request.body)
        elif self.request.body is not None:
            self.curl.setopt(pycurl.HTTPGET, 1)
        self.request, self.answer = request, answer
        self._started = time.monotonic()
        self._deadline = self._started + self._limits.seconds

    def end(self, code: int, message: str) -> Response:
        """The response, from what was received."""
        now = time.monotonic()
        info = self.curl.getinfo
        version, headers = read_head(self._head)
        reason, detail = self._failure(code, message, now)
        if (route := self.request.route) is not None and (said := route_failure(self.curl, route, code)):
            reason, detail = said
        if reason is None and not version:
            reason, detail = Reason.PROTOCOL, "The head is incomplete."
        return Response(
            url=self.request.url,
            status=info(pycurl.RESPONSE_CODE),
            headers=headers,
            body=b"".join(self._body) if reason is None else b"",
            reason=reason,
            detail=detail,
            address=info(pycurl.PRIMARY_IP) if route is None or route.proxy is None else route.address,
            wire_bytes=int(info(_WIRE_BYTES)),
            seconds=now - self._started,
            http_version=version,
        )

    def forget(self) -> None:
        """Drop what was received: the handle is ready for another exchange."""
        self._buffer.release(self._held)
        self._held = 0
        self._body: list[bytes | bytearray] = []
        self._head: list[bytes] = []
        self._head_bytes = 0
        self._refused = ""
        self._dialled = False
        self._stopped: tuple[Reason, str] | None = None
        self._kept_enough = False
        self.answer = None

    def _set_headers(self, headers: tuple[tuple[str, str], ...]) -> None:
        names = {name.lower() for name, _ in headers}
        first = () if "accept" in names else (_ACCEPT,)
        self.curl.setopt(pycurl.HTTPHEADER, header_lines((*first, *headers)))
        self.curl.setopt(pycurl.HTTP_CONTENT_DECODING, int("accept-encoding" not in names))
        self._headers = headers

    def _failure(self, code: int, message: str, now: float) -> tuple[Reason | None, str]:
        if not code or self._kept_enough:
            return None, ""
        if self._stopped is not None:
            return self._stopped
        if self._refused and not self._dialled:  # one permitted address of the host is enough
            return Reason.ADDRESS, self._refused
        reason = _REASONS.get(code, Reason.PROTOCOL)
        if code == pycurl.E_OPERATION_TIMEDOUT:  # how far had the exchange come?
            info = self.curl.getinfo
            if info(pycurl.REQUEST_SIZE) > 0:  # not by times: they are 0 or misleading on a reused connection
                reason = Reason.SECONDS if now >= self._deadline else Reason.MIN_RATE
            else:
                reason = Reason.CONNECT if info(pycurl.NAMELOOKUP_TIME) > 0 else Reason.DNS
        return reason, f"{message or self.curl.errstr() or f'curl error {code}'}."

    def _open_socket(self, _purpose: int, address: Any) -> Any:
        ip, port = address.addr[:2]
        route = self.request.route
        if (
            route is None or route.proxy is None or port != route.proxy.port
        ):  # a user named the proxy: it may be anywhere
            refusal = self._guard.refuses(ip, port)
            if refusal is not None:
                self._refused = refusal
                return pycurl.SOCKET_BAD
        self._dialled = True
        return _Dialled(address.family, address.socktype, address.protocol)

    def _take_head(self, line: bytes) -> int | None:
        self._head_bytes += len(line)
        if self._head_bytes > self._limits.max_header_bytes:
            return self._stop(Reason.HEADER_BYTES, f"The head exceeds {self._limits.max_header_bytes} bytes.")
        if len(self._head) >= _MOST_LINES:
            return self._stop(Reason.HEADER_BYTES, f"The head has more than {_MOST_LINES} lines.")
        self._head.append(line)
        return None

    def _take_body(self, piece: bytes) -> int | None:
        limits, keep, held = self._limits, self.request.keep_bytes, self._held + len(piece)
        if time.monotonic() > self._deadline:
            return self._stop(Reason.SECONDS, f"The answer took longer than {limits.seconds:g} seconds.")
        if keep is not None and held > keep:
            self._body.append(piece[: max(0, keep - self._held)])
            self._kept_enough = True
            return _ENOUGH
        # An encoded body may be longer than its bytes on the wire, which `_count_wire` counts.
        if held > limits.max_bytes and not self._head_value(b"content-encoding:"):
            most = self._most_of(limits.max_bytes)
            if held > most:
                return self._stop(Reason.BYTES, f"The body exceeds {most} bytes.")
        if held > limits.max_decoded_bytes and held > (most := self._most_of(limits.max_decoded_bytes)):
            return self._stop(Reason.DECODED_BYTES, f"The body exceeds {most} decoded bytes.")
        if not self._buffer.admits(len(piece), held):
            return self._stop(Reason.BUFFERED_BYTES, "Too many large bodies were under way at once.")
        self._held = held
        self._keep(piece)
        return None

    def _keep(self, piece: bytes) -> None:
        """Keep a piece; small ones together, for each object of Python's takes some forty bytes beside its own."""
        if len(piece) >= _SMALL:
            self._body.append(piece)
        elif self._body and isinstance(self._body[-1], bytearray):
            self._body[-1] += piece
        else:
            self._body.append(bytearray(piece))

    def _count_wire(self, announced: int, received: int, _to_send: int, _sent: int) -> int | None:
        most = self._limits.max_bytes
        announced = 0 if self.request.keep_bytes is not None else announced
        if max(received, announced) <= most or self._kept_enough or self._stopped is not None:
            return None
        if not received and self._head[-1:] not in ([b"\r\n"], [b"\n"]):
            return None  # its content type may be in a line that has yet to come
        most = self._most_of(most)
        return None if max(received, announced) <= most else self._stop(Reason.BYTES, f"The body exceeds {most} bytes.")

    def _most_of(self, limit: int) -> int:
        """The limit for this body: documents may be larger than pages."""
        content_type = self._head_value(b"content-type:").decode("latin-1")
        return max(limit, self._limits.max_document_bytes) if may_be_document(content_type, self.request.url) else limit

    def _head_value(self, name: bytes) -> bytes:
        """What the last header of this name says, "" if there is none; `name` is in lower case, with its colon."""
        found = (line[len(name) :].strip() for line in reversed(self._head) if line[: len(name)].lower() == name)
        return next(found, b"")

    def _stop(self, reason: Reason, detail: str) -> int:
        self._stopped = reason, detail
        self._body.clear()
        return _ENOUGH


class _Dialled(socket.socket):
    """A socket that curl duplicates; ours is closed with this object, without a warning."""

    def __del__(self) -> None:
        self.close()
