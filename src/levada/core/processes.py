"""Child processes: signals, allocator tuning and shared memory.

A terminal or a service manager sends its signal to all processes at once. Only the parent reacts: it shuts down in
order and ends its children. A child that ended by itself would be counted as a failure.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

_SENT_TO_ALL = (signal.SIGINT, signal.SIGTERM)


def module_command(module: str, *arguments: str) -> list[str]:
    """The command of a child that runs one of our modules.

    Without -P, Python would import `typer.py` or any other module from the current folder, whoever put it there. -I
    would also leave out the packages of the user, and with them a Levada installed by `pip install --user`.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Block signals while a child starts: it inherits the mask, so no signal kills it before it has handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SENT_TO_ALL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_signals_to_parent() -> None:
    """Ignore signals; a child calls this first. It ends when the parent closes their connection."""
    for number in _SENT_TO_ALL:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SENT_TO_ALL)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT_BYTES = 32 * 1024 * 1024


def tune_allocator() -> None:
    """Collect garbage less often, and keep freed memory in the process.

    Python's default, a collection every 700 objects, costs a tenth of a crawl's CPU. Every page needs a few
    megabytes for a moment: returning them to the kernel each time costs a third of the CPU of reading it.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    with suppress(AttributeError, OSError):  # not glibc: only slower
        for option in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
            ctypes.CDLL(None).mallopt(option, _KEPT_BYTES)


def give_back_freed_memory() -> None:
    """Give back to the kernel what `tune_allocator` keeps, where the allocator can."""
    with suppress(AttributeError, OSError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


class FreedMemory:
    """Gives back to the kernel what was freed, each time that so much more has passed through the process.

    What `tune_allocator` keeps is spread over the heap: after a page of some megabytes, a third of a process may be
    memory that nothing uses.
    """

    def __init__(self, after: int) -> None:
        self._after = after
        self._passed = 0

    def passed(self, amount: int) -> None:
        """Note that so much has passed: bytes, or pages, as `after` was meant."""
        self._passed += amount
        if self._passed >= self._after:
            self._passed = 0
            give_back_freed_memory()


def shared_file(size: int) -> IO[bytes]:
    """An open file of `size` zero bytes, in memory if the system allows it; OSError if there is no room."""
    try:
        file: IO[bytes] = os.fdopen(os.memfd_create("levada"), "w+b")
    except (AttributeError, OSError):
        import tempfile

        file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    try:
        file.write(bytes(size))  # not sparse: writing to a map of a file on a full disk would kill the process
        file.flush()
    except OSError:
        file.close()
        raise
    return file
