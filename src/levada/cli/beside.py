"""The dashboard beside a crawl: a process of its own, which ends with it, however that ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from levada.assemble.folder import DataFolder
from levada.cli.serve import BESIDE, PORT

__all__ = ["served_beside"]


@contextmanager
def served_beside(folder: DataFolder, *options: str, port: int = PORT, wanted: bool = True) -> Iterator[str]:
    """Its address; "" if it is not wanted, or cannot be had: a crawl does not depend on being watched."""
    process, address = _start(folder, port, options) if wanted else (None, "")
    if wanted and not address and process is not None:
        _end(process)
        process, address = _start(folder, 0, options)  # somebody else has that port
    try:
        yield address
    finally:
        if process is not None:
            _end(process)


def _start(folder: DataFolder, port: int, options: Sequence[str]) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "levada", "serve", "--data", str(folder.path), "--port", str(port), *options]
    process = subprocess.Popen(  # noqa: S603 -- ourselves
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, BESIDE: str(os.getpid())},
        start_new_session=True,  # Ctrl-C is for the crawl, which ends this one itself
    )
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    return process, said.rpartition(" ")[2] if " at http" in said else ""


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
