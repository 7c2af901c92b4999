"""How does a process beside the crawl follow the documents?

Woken by a line on its input, it takes in whatever is new. A line `q` means: finish and end. If the input just
closes, the crawl has died, and the next one will catch up.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from levada.adapters.child_signals import leave_signals_to_parent, signals_held_back
from levada.assemble.parts import calm_collector

__all__ = ["Follower", "begin_following", "follow"]


class Follower:
    """The crawl's end of it: `wake` costs a byte, `finish` waits until everything is taken in."""

    def __init__(self, module: str, *arguments: str) -> None:
        command = [sys.executable, "-I", "-m", module, *arguments]
        with signals_held_back():
            self._process = subprocess.Popen(  # noqa: S603
                command, bufsize=0, stdin=subprocess.PIPE, stderr=subprocess.PIPE
            )
        assert self._process.stdin is not None
        self._input = self._process.stdin
        os.set_blocking(self._input.fileno(), False)  # one that is far behind must not hold up the crawl

    def wake(self) -> None:
        """If there is no room it has been told often enough."""
        self._say(b"\n")

    def finish(self) -> str | None:
        """Wait for the last document; a sentence if it could not be taken in."""
        os.set_blocking(self._input.fileno(), True)
        self._say(b"q\n")
        _, said = self._process.communicate()
        if self._process.returncode == 0:
            return None
        return said.decode("utf-8", "replace").strip() or f"it ended with status {self._process.returncode}"

    def _say(self, line: bytes) -> None:
        with suppress(BrokenPipeError, ValueError):  # it has ended; `finish` says why
            self._input.write(line)


def begin_following() -> None:
    """In the child, first of all."""
    leave_signals_to_parent()
    calm_collector()
    os.nice(10)  # pages come first: what is taken in a little later is taken in larger batches


def follow(catch_up: Callable[[], object], gather_seconds: float) -> None:
    """Catch up whenever the crawl says so, at most every so many seconds, until it ends."""
    said = b"\n"
    while said:
        catch_up()
        if b"q" in said:
            return
        said = _next_words(gather_seconds)


def _next_words(gather_seconds: float) -> bytes:
    """What the crawl says, once some documents have gathered or it is about to end; nothing if it has died."""
    said = b""
    until = time.monotonic() + gather_seconds
    while b"q" not in said:
        left = until - time.monotonic() if said else None
        if left is not None and (left <= 0 or not select.select([sys.stdin], [], [], left)[0]):
            break
        heard = os.read(sys.stdin.fileno(), 65536)
        if not heard:
            return b""
        said += heard
    return said
