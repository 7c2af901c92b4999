"""HTTP/1.1 as far as the bundled web needs it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from email.utils import formatdate, parsedate_to_datetime
from http import HTTPStatus
from typing import cast

from levada.core.protocols import Clock

MAX_HEAD_BYTES = 64 * 1024
HTML = ("Content-Type", "text/html; charset=utf-8")
PLAIN = ("Content-Type", "text/plain; charset=utf-8")
_AUTHORITY = re.compile(r"([A-Za-z0-9.-]{1,253})(:\d{1,5})?\Z")


@dataclass(frozen=True, slots=True)
class WebRequest:
    """One request, with whatever form its target had."""

    method: str
    host: str  # lower case, without port
    port: str  # ":8000" or nothing, as the asker wrote it
    path: str
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)  # names in lower case
    keep_alive: bool = True

    @property
    def wants_gzip(self) -> bool:
        return "gzip" in self.headers.get("accept-encoding", "")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    after: float = 0.0  # seconds of the wall that the site takes to answer


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """An answer written piece by piece, head and all, after which the connection is closed."""

    pieces: Callable[[], AsyncIterator[bytes]]


def address(host: str, port: int | None = None, path: str = "/") -> str:
    return f"http://{host}{f':{port}' if port else ''}{path}"


def http_date(t: float) -> str:
    return formatdate(int(t), usegmt=True)


def parse_http_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def read_head(data: bytes) -> WebRequest | HTTPStatus:
    """The request in these bytes (up to the empty line), or the status that says what is wrong with it."""
    lines = data.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return HTTPStatus.BAD_REQUEST
    method, target, version = words
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    authority = headers.get("host", "")
    if target[:7].lower() == "http://":  # asked as a proxy is
        authority, slash, rest = target[7:].partition("/")
        target = slash + rest or "/"
    named = _AUTHORITY.match(authority)
    if named is None or not target.startswith("/"):
        return HTTPStatus.BAD_REQUEST
    if method not in ("GET", "HEAD"):
        return HTTPStatus.METHOD_NOT_ALLOWED
    path, _, query = target.partition("#")[0].partition("?")
    connection = headers.get("connection", "").lower()
    keep_alive = "close" not in connection and (version == "HTTP/1.1" or "keep-alive" in connection)
    return WebRequest(method, named[1].lower(), named[2] or "", path, query, headers, keep_alive)


def head(status: int, headers: tuple[tuple[str, str], ...] = (), *, keep_alive: bool = False) -> bytes:
    """Status line and headers."""
    phrase = HTTPStatus(status).phrase
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers)]
    if not keep_alive:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def wire(answer: Answer, *, now: float, keep_alive: bool, body: bool = True) -> bytes:
    """The whole answer as bytes; the Date is the world's, so that no Last-Modified lies in its future."""
    headers = (("Date", http_date(now)), *answer.headers)
    if answer.status not in (204, 304):
        headers += (("Content-Length", str(len(answer.body))),)
    first = head(answer.status, headers, keep_alive=keep_alive)
    return first + answer.body if body and answer.status not in (204, 304) else first


_END_OF_HEAD = b"\r\n\r\n"


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive and pipelining; a stream is written only as fast as the peer reads it."""

    def __init__(
        self, answer: Callable[[WebRequest, float], Answer | StreamedAnswer], clock: Clock, open_: set[Connection]
    ) -> None:
        self._answer = answer
        self._clock = clock
        self._open = open_
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._streaming: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        self._transport = None
        if self._streaming is not None:
            self._streaming.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()
        # Who asks without reading the answers is not listened to; during a stream we listen for the peer's end.
        if self._transport is not None and self._streaming is None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writable.set()
        if self._transport is not None and not (self._transport.is_closing() or self._transport.is_reading()):
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._transport is not None and self._streaming is None:
            end = self._buffer.find(_END_OF_HEAD)
            if end < 0:
                if len(self._buffer) > MAX_HEAD_BYTES:
                    self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
                return
            first, self._buffer = self._buffer[:end], self._buffer[end + len(_END_OF_HEAD) :]
            self._serve(first)
        # While a stream runs, what else arrives is not for us to keep.
        if len(self._buffer) > MAX_HEAD_BYTES:
            self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _serve(self, first: bytes) -> None:
        asked = read_head(first)
        if isinstance(asked, HTTPStatus):
            self._refuse(asked)
            return
        answer = self._answer(asked, self._clock.now())
        if isinstance(answer, StreamedAnswer):
            self._streaming = asyncio.get_running_loop().create_task(self._write_stream(answer))
            return
        if answer.after:
            self._streaming = asyncio.get_running_loop().create_task(self._write_late(answer, asked))
        else:
            self._write(answer, asked)

    def _write(self, answer: Answer, asked: WebRequest) -> None:
        if self._transport is None:
            return
        now = self._clock.now()
        self._transport.write(wire(answer, now=now, keep_alive=asked.keep_alive, body=asked.method == "GET"))
        if not asked.keep_alive:
            self.close()

    async def _write_late(self, answer: Answer, asked: WebRequest) -> None:
        await asyncio.sleep(answer.after)
        self._streaming = None
        self._write(answer, asked)
        self.data_received(b"")  # what was asked meanwhile

    def _refuse(self, status: HTTPStatus) -> None:
        assert self._transport is not None
        self._transport.write(wire(Answer(status), now=self._clock.now(), keep_alive=False))
        self._buffer = b""
        self.close()

    async def _write_stream(self, stream: StreamedAnswer) -> None:
        async for piece in stream.pieces():
            await self._writable.wait()
            if self._transport is None or self._transport.is_closing():
                return
            self._transport.write(piece)
        self.close()
