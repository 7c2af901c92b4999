"""Messages and shared memory between the parser pool and its children.

A page's bytes are most of what a child is sent, and a socket would copy them in and out of the kernel. So they go
into a shared buffer if there is room, and the child is sent their place. Only the parent writes pages there and
only the child reads them. Answers never go through shared memory: the child could change one while it is read.

The progress marker can be read after the child's death. A child answers several pages at a time, so its answers
alone do not tell which page killed it. What a child writes is trusted no more than the child.
"""

from __future__ import annotations

import mmap
import os
import socket
from collections import deque
from struct import Struct

import msgspec
from msgspec.structs import replace

from levada.core.processes import shared_file
from levada.core.records import ParsedPage, RawPage
from levada.pages.plugins import ReadingChoice

Place = tuple[int, int]
"""First byte, and how many."""
_BUFFER_BYTES = 2 * 1024 * 1024  # some dozens of pages; a page that finds no room is sent


class SharedPageBuffer:
    """The parent's end: a ring, because pages are read in the order in which they were written."""

    def __init__(self, size: int = _BUFFER_BYTES) -> None:
        self._size = size
        self._file = shared_file(size)
        self._shared = mmap.mmap(self._file.fileno(), size)
        self._taken: deque[int] = deque()  # where the pages begin, the oldest first
        self._free = 0  # from here on

    def fileno(self) -> int:
        return self._file.fileno()

    def put(self, page: bytes) -> Place | None:
        """Write a page; None where there is no room."""
        start = self._room_for(len(page))
        if start is None:
            return None
        self._free = start + len(page)
        self._shared[start : self._free] = page
        self._taken.append(start)
        return start, len(page)

    def take_oldest(self) -> None:
        """Free the room of the oldest page: it was read."""
        self._taken.popleft()

    def close(self) -> None:
        self._shared.close()
        self._file.close()

    def _room_for(self, size: int) -> int | None:
        if not self._taken:
            return 0 if size <= self._size else None
        oldest = self._taken[0]
        if self._free <= oldest:  # the free part lies between the newest and the oldest
            return self._free if self._free + size < oldest else None
        if self._free + size <= self._size:
            return self._free
        return 0 if size < oldest else None


class SharedPageReader:
    """The child's end."""

    def __init__(self, descriptor: int) -> None:
        self._shared = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)

    def page(self, place: Place) -> bytes:
        start, size = place
        return self._shared[start : start + size]


HEAD = Struct("<I")
READY = HEAD.pack(0)  # a child's first message; one that cannot load a plug-in sends a sentence instead


class ParserSetup(msgspec.Struct, frozen=True):
    """The first message to a child: by what, and for whom, it reads pages."""

    agent: str = "levada"
    reading: ReadingChoice = ReadingChoice()


class ParseRequest(msgspec.Struct, frozen=True, array_like=True):
    """A page to read; its bytes are at the place in the shared buffer, if there is one."""

    page: RawPage
    place: Place | None


_encoder = msgspec.msgpack.Encoder()
decode_parse_request = msgspec.msgpack.Decoder(ParseRequest).decode
decode_parsed = msgspec.msgpack.Decoder(ParsedPage).decode
decode_setup = msgspec.msgpack.Decoder(ParserSetup).decode


def parse_request(page: RawPage, place: Place | None) -> ParseRequest:
    return ParseRequest(page if place is None else replace(page, body=b""), place)


def page_of(request: ParseRequest, page_buffer: SharedPageReader) -> RawPage:
    return request.page if request.place is None else replace(request.page, body=page_buffer.page(request.place))


def frame(message: ParseRequest | ParsedPage | ParserSetup) -> bytearray:
    buffer = bytearray(HEAD.size)
    _encoder.encode_into(message, buffer, HEAD.size)
    HEAD.pack_into(buffer, 0, len(buffer) - HEAD.size)
    return buffer


_PROGRESS = Struct("<Qd")  # pages begun, seconds spent on pages


class ProgressMarker:
    """The parent's end."""

    def __init__(self) -> None:
        self._file = shared_file(mmap.PAGESIZE)

    def fileno(self) -> int:
        return self._file.fileno()

    def read(self) -> tuple[int, float]:
        """How many pages the child has begun to read, and the seconds that it has spent on them, as it says."""
        begun, seconds = _PROGRESS.unpack(os.pread(self._file.fileno(), _PROGRESS.size, 0))
        return begun, seconds

    def close(self) -> None:
        self._file.close()


class ProgressWriter:
    """The child's end."""

    def __init__(self, descriptor: int) -> None:
        self._shared = mmap.mmap(descriptor, mmap.PAGESIZE)
        self._begun = 0
        self._seconds = 0.0

    def turn(self) -> None:
        """Note that the next page is begun."""
        self._begun += 1
        _PROGRESS.pack_into(self._shared, 0, self._begun, self._seconds)

    def worked(self, seconds: float) -> None:
        """Add the seconds that a page took."""
        self._seconds += seconds
        _PROGRESS.pack_into(self._shared, 0, self._begun, self._seconds)


_READ_BYTES = 512 * 1024


class Inbox:
    """Messages with their length before them; a view of one is good until the next is taken."""

    def __init__(self, sender: socket.socket) -> None:
        self._sender = sender
        self._view = memoryview(bytearray(_READ_BYTES))
        self._start = self._end = 0

    def take(self) -> memoryview | None:
        """The next message, waited for; None when the sender is gone."""
        head = self._exactly(HEAD.size)
        return None if head is None else self._exactly(HEAD.unpack(head)[0])

    def has_whole(self) -> bool:
        """Whether another message is here already."""
        here = self._end - self._start - HEAD.size
        return here >= 0 and here >= HEAD.unpack_from(self._view, self._start)[0]

    def _exactly(self, size: int) -> memoryview | None:
        if size > _READ_BYTES:
            return self._large(size)
        while self._end - self._start < size:
            self._move_to_front()
            count = self._receive(self._view[self._end :])
            if not count:
                return None
            self._end += count
        self._start += size
        return self._view[self._start - size : self._start]

    def _large(self, size: int) -> memoryview | None:
        whole = memoryview(bytearray(size))
        got = self._end - self._start
        whole[:got] = self._view[self._start : self._end]
        self._start = self._end = 0
        while got < size:
            count = self._receive(whole[got:])
            if not count:
                return None
            got += count
        return whole

    def _move_to_front(self) -> None:
        left = self._end - self._start
        self._view[:left] = bytes(self._view[self._start : self._end])
        self._start, self._end = 0, left

    def _receive(self, room: memoryview) -> int:
        try:
            return self._sender.recv_into(room)
        except ConnectionError:
            return 0
