"""The process that reads untrusted pages, under limits of CPU and memory.

Started by `parser_pool` with a socket; ends when the socket does. The CPU limit is a timer of the kernel that ends
the process even inside C code; the memory limit is the address space.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import signal
import socket
import sys
from contextlib import suppress

import msgspec

from levada.adapters.child_signals import leave_signals_to_parent
from levada.adapters.parser_wire import HEAD, READY, decode_page, frame
from levada.pages.parse import ParseLimits, parse_page
from levada.reasons import Reason
from levada.records import PageKind, ParsedPage, RawPage

__all__ = ["main"]

_M_TRIM_THRESHOLD = -1  # of malloc.h
_KEPT_BYTES = 32 * 1024 * 1024
_TRIAL = RawPage("http://invalid/", b"<title>ready</title><p>" + b"words and more " * 10_000, "text/html")


def main(arguments: list[str]) -> None:
    descriptor, memory, cpu_seconds, main_text = arguments
    leave_signals_to_parent()
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()
    _keep_freed_memory()
    limits = msgspec.convert({"main_text": main_text}, ParseLimits)
    with socket.socket(fileno=int(descriptor)) as parent:
        parse_page(_TRIAL, limits)  # a child that cannot read this under its limits is not ready
        parent.sendall(READY)
        while message := _receive(parent):
            parent.sendall(_answer(message, limits, float(cpu_seconds)))


def _keep_freed_memory() -> None:
    """Every page needs a tree of some megabytes; giving that back each time costs a third of the CPU."""
    with suppress(AttributeError, OSError):  # another C library: only slower
        ctypes.CDLL(None).mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def _answer(message: bytearray, limits: ParseLimits, cpu_seconds: float) -> bytes:
    signal.setitimer(signal.ITIMER_PROF, max(0.001, cpu_seconds))  # the timer would take less for "no limit"
    kind = PageKind.PAGE
    try:
        page = decode_page(message)
        kind = page.kind
        return frame(parse_page(page, limits))
    except MemoryError:
        return frame(ParsedPage(kind, reason=Reason.PARSE_MEMORY))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _receive(parent: socket.socket) -> bytearray | None:
    head = _exactly(parent, HEAD.size)
    return _exactly(parent, HEAD.unpack(head)[0]) if head else None


def _exactly(parent: socket.socket, size: int) -> bytearray | None:
    """Just so many bytes, or None when the parent is gone."""
    data = bytearray(size)
    view, got = memoryview(data), 0
    while got < size:
        try:
            count = parent.recv_into(view[got:])
        except ConnectionError:
            return None
        if not count:
            return None
        got += count
    return data


if __name__ == "__main__":
    main(sys.argv[1:])
