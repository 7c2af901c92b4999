"""Which bytes can a process share with its children? Those of a file without a name."""

from __future__ import annotations

import os
from typing import IO

__all__ = ["shared_file"]


def shared_file(size: int) -> IO[bytes]:
    """An open file of `size` zero bytes, in memory where the system can do that."""
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = os.fdopen(os.memfd_create("levada"), "r+b", buffering=0)
    else:
        import tempfile

        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - whoever asked closes it
    file.truncate(size)
    return file
