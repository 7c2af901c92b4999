"""What was asked, and how is an answer written? HTTP/1.1 as far as the bundled web needs it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from email.utils import formatdate, parsedate_to_datetime
from http import HTTPStatus

__all__ = [
    "MAX_HEAD_BYTES",
    "Answer",
    "Asked",
    "Stream",
    "head",
    "http_date",
    "parse_http_date",
    "read_head",
    "wire",
]

MAX_HEAD_BYTES = 64 * 1024
_AUTHORITY = re.compile(r"([A-Za-z0-9.-]{1,253})(:\d{1,5})?\Z")


@dataclass(frozen=True, slots=True)
class Asked:
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
class Stream:
    """An answer written piece by piece, head and all, after which the connection is closed."""

    pieces: Callable[[], AsyncIterator[bytes]]


def http_date(t: float) -> str:
    return formatdate(int(t), usegmt=True)


def parse_http_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def read_head(data: bytes) -> Asked | HTTPStatus:
    """The request in these bytes (up to the empty line), or the status that says what is wrong with it."""
    lines = data.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return HTTPStatus.BAD_REQUEST
    method, target, version = words
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
    }
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
    return Asked(method, named[1].lower(), named[2] or "", path, query, headers, keep_alive)


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
