"""Which bytes can a process share with its children? Those of a file without a name."""

from __future__ import annotations

import os
from typing import IO

__all__ = ["shared_file"]


def shared_file(size: int) -> IO[bytes]:
    """An open file of `size` zero bytes, in memory where the system can and may do that; OSError for no room."""
    try:
        file: IO[bytes] = os.fdopen(os.memfd_create("levada"), "w+b")
    except (AttributeError, OSError):
        import tempfile

        file = tempfile.TemporaryFile()  # noqa: SIM115 - whoever asked closes it
    try:
        file.write(bytes(size))  # not only promised: a map of a file on a full disk would end the process
        file.flush()
    except OSError:
        file.close()
        raise
    return file
