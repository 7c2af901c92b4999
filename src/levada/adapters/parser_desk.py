"""Where does a page lie while a parser child reads it? In memory that parent and child share.

A page's bytes are most of what a child is sent, and a socket would copy them in and out of the kernel. So they are
laid on a desk, and the child is sent their place. Only the parent lays pages down and only the child looks at them;
what the child says never lies here, for it could still change it while it is read.
"""

from __future__ import annotations

import mmap
from collections import deque

from levada.adapters.shared_file import shared_file

__all__ = ["Desk", "DeskReader", "Place"]

Place = tuple[int, int]
"""First byte, and how many."""

_DESK_BYTES = 2 * 1024 * 1024  # some dozens of pages; a page that finds no room is sent


class Desk:
    """The parent's end: a ring, for pages are taken away in the order in which they were laid down."""

    def __init__(self, size: int = _DESK_BYTES) -> None:
        self._size = size
        self._file = shared_file(size)
        self._shared = mmap.mmap(self._file.fileno(), size)
        self._taken: deque[int] = deque()  # where the pages begin, the oldest first
        self._free = 0  # from here on

    def fileno(self) -> int:
        return self._file.fileno()

    def put(self, page: bytes) -> Place | None:
        """Lay a page down; None where there is no room."""
        start = self._room_for(len(page))
        if start is None:
            return None
        self._free = start + len(page)
        self._shared[start : self._free] = page
        self._taken.append(start)
        return start, len(page)

    def take_oldest(self) -> None:
        """The page that has lain here longest was read."""
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


class DeskReader:
    """The child's end."""

    def __init__(self, descriptor: int) -> None:
        self._shared = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)

    def page(self, place: Place) -> bytes:
        start, size = place
        return self._shared[start : start + size]
