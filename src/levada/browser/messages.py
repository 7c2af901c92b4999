"""Messages between a fetcher and the browser child, and the frames that carry them."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec

from levada.core.reasons import Reason
from levada.core.site_rules.routes import ProxyAddress

_LENGTH = 4  # bytes
_MOST = 256 * 1024 * 1024
_M = TypeVar("_M")
_encode = msgspec.msgpack.Encoder().encode


class BrowserSetup(msgspec.Struct, frozen=True):
    """What a browser child begins with."""

    command: str  # the program
    agent: str  # User-Agent
    allow: tuple[str, ...] = ()  # of the address guard
    pages: int = 2  # at once
    seconds: float = 30.0  # of one page
    memory: int = 1024 * 1024 * 1024  # of one page's process
    max_bytes: int = 30 * 1024 * 1024  # that a page loads
    max_html: int = 10 * 1024 * 1024  # of a rendered page


class ToRender(msgspec.Struct, frozen=True):
    """A page as it was served, to be rendered."""

    id: int
    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    agent: str = ""  # "": that of the setup
    accept_language: str = ""
    wait_for: str = ""
    screenshot: bool = False
    media: bool = False
    proxy: ProxyAddress | None = None  # through which everything goes that the page loads
    cookies: str = ""  # of a session with the site, as a Cookie header has them


class Rendered(msgspec.Struct, frozen=True):
    """The document as the browser has it, or why there is none."""

    id: int
    html: bytes = b""
    screenshot: bytes = b""
    location: str = ""  # where a script or a refresh leads to instead
    retry_after: str | None = None  # its site asks to come back later; "": it does not say when
    failed: bool = False  # something that its site should have sent for the page failed
    reason: Reason | None = None
    detail: str = ""
    loaded: int = 0  # bytes
    refused: tuple[str, ...] = ()  # what the address guard said


def frame(message: msgspec.Struct) -> bytes:
    body = _encode(message)
    return len(body).to_bytes(_LENGTH, "big") + body


async def read_frame(reader: asyncio.StreamReader, kind: type[_M]) -> _M:
    """The next message; `asyncio.IncompleteReadError` at the end, ValueError for anything else than a message."""
    size = int.from_bytes(await reader.readexactly(_LENGTH), "big")
    if size > _MOST:
        raise ValueError(f"a frame of {size:,} bytes")
    return msgspec.msgpack.decode(await reader.readexactly(size), type=kind)
