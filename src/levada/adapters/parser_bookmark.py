"""Which page is a parser child at, and how long has it read? Bytes that parent and child share.

They can be read after the child's death. A child answers several pages at a time, so its answers alone do not tell
which page killed it. What the child writes is no more to be believed than the child.
"""

from __future__ import annotations

import mmap
import os
from struct import Struct

from levada.adapters.shared_file import shared_file

__all__ = ["Bookmark", "Turner"]

_COUNT = Struct("<I")
_SECONDS = Struct("<d")
_SECONDS_AT = 8
_MOST = (1 << 32) - 1


class Bookmark:
    """The parent's end."""

    def __init__(self) -> None:
        self._file = shared_file(mmap.PAGESIZE)

    def fileno(self) -> int:
        return self._file.fileno()

    def begun(self) -> int:
        """How many pages the child has begun to read."""
        number: int = _COUNT.unpack(os.pread(self._file.fileno(), _COUNT.size, 0))[0]
        return number

    def seconds(self) -> float:
        """How long it has read pages, in all, as it says."""
        number: float = _SECONDS.unpack(os.pread(self._file.fileno(), _SECONDS.size, _SECONDS_AT))[0]
        return number

    def close(self) -> None:
        self._file.close()


class Turner:
    """The child's end."""

    def __init__(self, descriptor: int) -> None:
        self._shared = mmap.mmap(descriptor, mmap.PAGESIZE)
        self._begun = 0
        self._seconds = 0.0

    def turn(self) -> None:
        """The next page is begun."""
        self._begun += 1
        _COUNT.pack_into(self._shared, 0, self._begun & _MOST)

    def worked(self, seconds: float) -> None:
        """A page took so long."""
        self._seconds += seconds
        _SECONDS.pack_into(self._shared, _SECONDS_AT, self._seconds)
