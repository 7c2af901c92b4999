"""Frames of MongoDB's wire protocol.

A message begins with four little-endian int32: its length, its number, the number it answers, and its opcode. A
stream may begin in the middle (a capture that started late, a lost segment): then bytes are skipped, and counted,
until something looks like a request.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from enum import IntEnum

HEADER = struct.Struct("<iiii")
LARGEST_MESSAGE = 48_000_000  # the server's own maxMessageSizeBytes
_SMALLEST_MESSAGE = HEADER.size + 5
_CHECKED_BYTES = HEADER.size + 5  # bytes that are checked before a position is taken for a request


class Unreadable(Exception):
    """These bytes are no message that we can read; the text says why."""


class Opcode(IntEnum):
    UPDATE = 2001
    INSERT = 2002
    QUERY = 2004
    GET_MORE = 2005
    DELETE = 2006
    KILL_CURSORS = 2007
    COMMAND = 2010
    COMPRESSED = 2012
    MSG = 2013


_KNOWN = frozenset(Opcode)
# A request answers nothing, so four zeroes come before its opcode.
_REQUEST = re.compile(rb"\0{4}[\xd1\xd2\xd4-\xd7\xda\xdc\xdd]\x07\0\0")


class Frames:
    """The messages of one direction of one connection, from its bytes in order.

    `held` is the size of what it keeps, at most one message and a chunk. `passed_over` counts bytes that belonged
    to no message, `gaps` how often some were missing or meaningless.
    """

    def __init__(self, largest: int = LARGEST_MESSAGE) -> None:
        self._largest = largest
        self._held = bytearray()
        self._searching = False
        self.passed_over = 0
        self.gaps = 0

    @property
    def held(self) -> int:
        return len(self._held)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Every message that is complete now; to be consumed before the next call."""
        self._held += data
        at = 0
        while (begin := self._begin(at)) is not None:
            at = begin
            end = begin + HEADER.unpack_from(self._held, begin)[0]
            if end > len(self._held):
                break
            yield bytes(memoryview(self._held)[begin:end])
            at = end
        else:
            at = self._passed
        del self._held[:at]

    def lose(self) -> None:
        """Note that bytes are missing here: what is held will never be complete."""
        self.gaps += 1
        self.close()
        self._searching = True

    def close(self) -> None:
        """Note that no more bytes will come."""
        self.passed_over += len(self._held)
        self._held.clear()

    def _begin(self, at: int) -> int | None:
        """Where the next message begins; None if that is not known yet. Bytes before `_passed` are done."""
        self._passed = at
        if len(self._held) - at < HEADER.size:
            return None
        if not self._searching and not self._plausible(at):
            self.gaps += 1
            self._searching = True
        if not self._searching:
            return at
        found = self._search(at)
        self._passed = max(at, len(self._held) - _CHECKED_BYTES + 1) if found is None else found
        self.passed_over += self._passed - at
        self._searching = found is None
        return found

    def _search(self, at: int) -> int | None:
        for match in _REQUEST.finditer(self._held, at + 8):
            begin = match.start() - 8
            if begin + _CHECKED_BYTES > len(self._held):
                return None
            if self._looks_like_request(begin):
                return begin
        return None

    def _plausible(self, at: int) -> bool:
        length, _, _, opcode = HEADER.unpack_from(self._held, at)
        return _SMALLEST_MESSAGE <= length <= self._largest and opcode in _KNOWN

    def _looks_like_request(self, at: int) -> bool:
        """Stricter than plausible: in the middle of a document anything may look like a length."""
        if not self._plausible(at):
            return False
        opcode = HEADER.unpack_from(self._held, at)[3]
        inside = struct.unpack_from("<i", self._held, at + HEADER.size)[0]
        if opcode == Opcode.COMPRESSED:
            return inside in _KNOWN
        if opcode == Opcode.MSG:
            return inside & ~0x10003 == 0 and self._held[at + HEADER.size + 4] in (0, 1)
        return True
