"""The bundled web in a child process."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from levada.core.errors import LevadaError
from levada.core.processes import module_command


class Web(msgspec.Struct, frozen=True):
    """What the server says of itself in its first line."""

    start: tuple[str, ...]
    config: str
    port: int
    origin: float
    started: float
    speed: float
    seed: int
    pages: int


@contextmanager
def serving(*options: str) -> Iterator[Web]:
    """Start the web, give it to the caller, end it; it also ends if this process dies."""
    command = [*module_command("levada.demo.server"), "--with-parent", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise LevadaError(f"the bundled web did not start (status {process.wait()})")
            yield msgspec.json.decode(line, type=Web)
        finally:
            process.terminate()
