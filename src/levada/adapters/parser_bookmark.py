"""Which page is a parser child at? Four bytes that parent and child share, readable after the child's death.

A child answers several pages at a time, so its answers alone do not tell which page killed it.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from struct import Struct

__all__ = ["Bookmark", "turner"]

_COUNT = Struct("<I")
_MOST = (1 << 32) - 1


class Bookmark:
    """The parent's end."""

    def __init__(self) -> None:
        import tempfile  # here: the child, which starts anew after every death, has no use for it

        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        self._file.truncate(mmap.PAGESIZE)

    def fileno(self) -> int:
        return self._file.fileno()

    def begun(self) -> int:
        """How many pages the child has begun to read."""
        number: int = _COUNT.unpack(os.pread(self._file.fileno(), _COUNT.size, 0))[0]
        return number

    def close(self) -> None:
        self._file.close()


def turner(descriptor: int) -> Callable[[int], None]:
    """The child's end: call it with the number of pages begun."""
    shared = mmap.mmap(descriptor, mmap.PAGESIZE)

    def turn(begun: int) -> None:
        _COUNT.pack_into(shared, 0, begun & _MOST)

    return turn
