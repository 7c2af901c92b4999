"""How is an index read in a folder where we may not write?

tantivy makes a lock file even to read, so it is given a folder of its own: the newest commit as a copy, and links
to the segments. Whoever writes there may delete a segment before tantivy has opened it: then a newer commit is
there, and the reader asks again.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["IndexLinks", "may_write"]

_COMMIT = "meta.json"


def may_write(segments: Path) -> bool:
    return os.access(segments, os.W_OK)


class IndexLinks:
    """Its `path` stands for `segments`, as of now; gone with `close`."""

    def __init__(self, segments: Path) -> None:
        from tempfile import TemporaryDirectory  # here: most folders may be written

        self._folder = TemporaryDirectory(prefix="levada-index-")
        self.path = Path(self._folder.name)
        (self.path / _COMMIT).write_bytes((segments / _COMMIT).read_bytes())
        for file in segments.resolve().iterdir():
            if file.name != _COMMIT and file.suffix != ".lock":
                (self.path / file.name).symlink_to(file)

    def close(self) -> None:
        self._folder.cleanup()
