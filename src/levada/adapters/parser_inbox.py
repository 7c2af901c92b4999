"""Which message comes next? Several arrive together, and are read from the socket together."""

from __future__ import annotations

import socket

from levada.adapters.parser_wire import HEAD

__all__ = ["Inbox"]

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
        """Is another message here already?"""
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
