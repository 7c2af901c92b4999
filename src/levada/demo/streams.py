"""What does a server send that means no good? Answers that must be written piece by piece.

Every stream ends by itself after `MAX_SECONDS` or `MAX_BYTES`, and at once when the peer is gone.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from itertools import count

from levada.demo.wire import Stream, head

__all__ = [
    "MAX_BYTES",
    "MAX_SECONDS",
    "dripping",
    "endless",
    "endless_text",
    "flooding_headers",
    "gzip_bomb",
    "raw",
]

MAX_BYTES = 256 * 1024 * 1024
MAX_SECONDS = 120.0
_HTML = ("Content-Type", "text/html; charset=utf-8")
_MEGABYTE = 1024 * 1024


def raw(*pieces: bytes) -> Stream:
    """Exactly these bytes, then the end of the connection."""

    async def write() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return Stream(write)


def _bounded(pieces: Iterator[bytes], *, pause: float = 0.0) -> Stream:
    async def write() -> AsyncIterator[bytes]:
        until = time.monotonic() + MAX_SECONDS
        sent = 0
        for piece in pieces:
            yield piece
            sent += len(piece)
            if sent > MAX_BYTES or time.monotonic() > until:
                return
            await asyncio.sleep(pause)  # even 0 lets the neighbours have their turn

    return Stream(write)


def endless() -> Stream:
    """A chunked page that never ends."""
    line = b"<p>And another line, and another line, and another line.</p>\n" * 256
    chunk = f"{len(line):x}\r\n".encode() + line + b"\r\n"

    def pieces() -> Iterator[bytes]:
        yield head(200, (_HTML, ("Transfer-Encoding", "chunked")))
        yield from (chunk for _ in count())

    return _bounded(pieces())


def endless_text(line: bytes) -> Stream:
    """A plain text that never ends and starts sensibly."""

    def pieces() -> Iterator[bytes]:
        yield head(200, (("Content-Type", "text/plain"),))
        yield line
        yield from (b"# " + b"x" * 1022 + b"\n" for _ in count())

    return _bounded(pieces())


def dripping(pause: float = 1.0) -> Stream:
    """A page that comes a byte at a time."""
    text = b"<title>Slow</title><p>" + b"slow and steady " * 64

    def pieces() -> Iterator[bytes]:
        yield head(200, (_HTML, ("Content-Length", str(len(text)))))
        yield from (text[i : i + 1] for i in range(len(text)))

    return _bounded(pieces(), pause=pause)


def flooding_headers(size: int = 10 * _MEGABYTE) -> Stream:
    """Headers by the thousand, then a page."""

    def pieces() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
        yield from (f"X-Flood-{i}: {'f' * 1000}\r\n".encode() for i in range(size // 1000))
        yield b"Content-Length: 5\r\nConnection: close\r\n\r\nflood"

    return _bounded(pieces())


def gzip_bomb(decoded: int = 4096 * _MEGABYTE) -> Stream:
    """A valid gzip body, a thousandth of its decoded size on the wire; the checksum is made as it goes."""

    def pieces() -> Iterator[bytes]:
        yield head(200, (_HTML, ("Content-Encoding", "gzip")))
        # Each block is flushed to a byte boundary and looks back at nothing, so that one can be sent many times.
        blank = b" " * _MEGABYTE
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        block = packer.compress(blank) + packer.flush(zlib.Z_FULL_FLUSH)
        yield b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
        checksum = 0
        for _ in range(decoded // _MEGABYTE):
            checksum = zlib.crc32(blank, checksum)
            yield block
        size = decoded // _MEGABYTE * _MEGABYTE & 0xFFFFFFFF
        yield packer.flush(zlib.Z_FINISH) + checksum.to_bytes(4, "little") + size.to_bytes(4, "little")

    return _bounded(pieces())
