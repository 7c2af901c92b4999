"""What do the head of a request and the head of an answer say?

A value is a character per byte (Latin-1), in both directions: a tag that is sent back is what it was, whatever the
server meant by it. Only an address has to be understood, and its bytes are UTF-8 to every browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["header_lines", "is_encoded", "read_head"]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ADDRESS = "location"
_FOLD = (" ", "\t")
_SPACE = " \t\r\n\v\f"  # of ASCII: what else Python takes for space is a byte of a letter here
_BLANK = (b"\r\n", b"\n", b"\r", b"")
_LINE_BREAKING = re.compile(r"[\r\n\0]")


def header_lines(headers: Iterable[tuple[str, str]]) -> list[bytes]:
    """The lines of a request in curl's form; ValueError if a name or value could smuggle another line in."""
    lines = []
    for name, value in headers:
        if not _TOKEN.fullmatch(name) or _LINE_BREAKING.search(value):
            raise ValueError(f"the request header {name!r} is not one line")
        # curl takes "Name:" for "leave this header out" and "Name;" for "send it empty".
        line = f"{name}: {value}" if value.strip() else f"{name};"
        lines.append(line.encode("latin-1"))
    return lines


def read_head(received: Sequence[bytes]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """HTTP version and headers of the final answer, ("", ()) if its head did not end; neither interim (1xx) heads
    nor trailers count."""
    block = _final_block(received)
    if not block:
        return "", ()
    first, *lines = b"".join(block).decode("latin-1").split("\n")
    version = first.partition(" ")[0].rpartition("/")[2].strip()
    headers: list[tuple[str, str]] = []
    for line in lines:
        name, colon, value = line.partition(":")
        if line[:1] in _FOLD and headers:  # a folded line goes on with the header before it
            headers[-1] = (headers[-1][0], f"{headers[-1][1]} {line.strip(_SPACE)}")
        elif colon:
            name, value = name.strip(_SPACE).lower(), value.strip(_SPACE)
            headers.append((name, _address(value) if name == _ADDRESS else value))
    return version, tuple(headers)


def is_encoded(lines: Sequence[bytes]) -> bool:
    """Whether the body is longer than what goes over the wire."""
    return any(line[:17].lower() == b"content-encoding:" for line in lines)


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
        if not _is_interim(block):
            return block
        start = index + 1
    return ()


def _is_interim(block: Sequence[bytes]) -> bool:
    return not block or block[0].partition(b" ")[2].startswith(b"1")
