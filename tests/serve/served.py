"""A server as users start it: its own process, a free port of the loopback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["served"]


@contextmanager
def served(data: Path, *options: str, environment: Mapping[str, str] | None = None, port: int = 0) -> Iterator[str]:
    """Its address, without the slash at the end."""
    command = [sys.executable, "-m", "levada", "serve", "--data", str(data), "--port", str(port), *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert " at http" in line, f"it did not start: {line}"
        yield line.rpartition(" ")[2].strip().rstrip("/")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)  # a view that is computed is finished first
        process.stdout.close()
