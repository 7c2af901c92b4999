"""The process that reads untrusted pages, under limits of CPU and memory.

Started by `parser_pool` with a socket; ends when the socket does. The CPU limit is a timer of the kernel that ends
the process even inside C code; the memory limit is the address space.
"""

from __future__ import annotations

import resource
import signal
import socket
import sys
from time import perf_counter

import msgspec

from levada.adapters.calm_memory import calm_memory
from levada.adapters.child_signals import leave_signals_to_parent
from levada.adapters.parser_bookmark import Turner
from levada.adapters.parser_desk import DeskReader
from levada.adapters.parser_inbox import Inbox
from levada.adapters.parser_wire import READY, decode_errand, frame, page_of
from levada.pages.parse import ParseLimits, parse_page
from levada.reasons import Reason
from levada.records import PageKind, ParsedPage, RawPage

__all__ = ["main"]

_HELD_BYTES = 256 * 1024  # of answers that wait for others
_TRIAL = RawPage("http://invalid/", b"<title>ready</title><p>" + b"words and more " * 10_000, "text/html")


def main(arguments: list[str]) -> None:
    descriptor, bookmark, desk, memory, cpu_seconds, main_text, agent = arguments
    leave_signals_to_parent()
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    calm_memory()
    limits = msgspec.convert({"main_text": main_text, "agent": agent}, ParseLimits)
    with socket.socket(fileno=int(descriptor)) as parent:
        parse_page(_TRIAL, limits)  # a child that cannot read this under its limits is not ready
        parent.sendall(READY)
        _answer_all(parent, limits, float(cpu_seconds), Turner(int(bookmark)), DeskReader(int(desk)))


def _answer_all(
    parent: socket.socket, limits: ParseLimits, cpu_seconds: float, bookmark: Turner, desk: DeskReader
) -> None:
    """Answers go out together, once nothing is left to read: a parent that is woken for each does little else."""
    inbox, answers, held = Inbox(parent), list[bytes | bytearray](), 0
    while message := inbox.take():
        bookmark.turn()
        began = perf_counter()
        answers.append(_answer(message, desk, limits, cpu_seconds))
        bookmark.worked(perf_counter() - began)
        held += len(answers[-1])
        if held > _HELD_BYTES or not inbox.has_whole():
            parent.sendall(b"".join(answers))
            answers.clear()
            held = 0


def _answer(message: memoryview, desk: DeskReader, limits: ParseLimits, cpu_seconds: float) -> bytearray:
    signal.setitimer(signal.ITIMER_PROF, max(0.001, cpu_seconds))  # the timer would take less for "no limit"
    kind = PageKind.PAGE
    try:
        errand = decode_errand(message)
        kind = errand.kind
        return frame(parse_page(page_of(errand, desk), limits))
    except MemoryError:
        return frame(ParsedPage(kind, reason=Reason.PARSE_MEMORY))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
