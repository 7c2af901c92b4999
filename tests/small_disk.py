"""A disk of a few kilobytes, for tests that fill it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["small_disk"]


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[Path]:
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only who may mount can make a small disk, and a container may not allow it")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
