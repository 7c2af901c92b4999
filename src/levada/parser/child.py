"""Main module of a parser child.

The parser pool starts it with a socket; it ends when the socket does. The CPU limit is a timer of the kernel that
ends the process even inside C code; the memory limit is the address space. Plug-ins may also wait for something:
where there are any, a timer of the wall limits that too.
"""

from __future__ import annotations

import resource
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter

import msgspec

from levada.core.errors import LevadaError
from levada.core.processes import FreedMemory, leave_signals_to_parent, tune_allocator
from levada.core.reasons import Reason
from levada.core.records import PageKind, ParsedPage, RawPage
from levada.pages.parse import ParseLimits, parse_page
from levada.parser.channel import (
    HEAD,
    READY,
    Inbox,
    ProgressWriter,
    SharedPageReader,
    decode_parse_request,
    decode_setup,
    frame,
    page_of,
)

_HELD_BYTES = 256 * 1024  # of answers that wait for others
_FREED_AFTER = 16 * 1024 * 1024  # bytes of pages, after which freed memory goes back to the kernel
_LOAD_SECONDS = 30.0  # of the wall, for importing and making the plug-ins
_DOCUMENT_MEMORY = 160 * 1024 * 1024  # more than the child has, that reading a document may take
_DOCUMENT_TIME = 2  # times the CPU seconds of a page: some have a thousand of them
_WAITS = 4  # times its CPU seconds that a page may take of the wall, where plug-ins read it
_TRIAL = RawPage("http://invalid/", b"<title>ready</title><p>" + b"words and more " * 10_000, "text/html")


def main(arguments: list[str]) -> None:
    descriptor, progress_marker, page_buffer, memory, cpu_seconds = arguments
    leave_signals_to_parent()
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tune_allocator()
    with socket.socket(fileno=int(descriptor)) as parent:
        inbox = Inbox(parent)
        first = inbox.take()
        if first is None:
            return
        setup = decode_setup(first)
        limits = ParseLimits(agent=setup.agent, document_cage=partial(_document_cage, float(cpu_seconds)))
        try:
            parse_page(_TRIAL, limits)  # a child that cannot read this under its limits is not ready
            signal.setitimer(signal.ITIMER_REAL, _LOAD_SECONDS)
            limits = msgspec.structs.replace(limits, plugins=setup.reading.load())
        except LevadaError as error:
            sentence = str(error).encode("utf-8", "replace")
            parent.sendall(HEAD.pack(len(sentence)) + sentence)
            return
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        parent.sendall(READY)
        progress, pages = ProgressWriter(int(progress_marker)), SharedPageReader(int(page_buffer))
        # Answers go out together, once nothing is left to read: a parent that is woken for each does little else.
        answers, held, freed = list[bytes | bytearray](), 0, FreedMemory(_FREED_AFTER)
        while message := inbox.take():
            progress.turn()
            began = perf_counter()
            answers.append(_answer(message, pages, limits, float(cpu_seconds), freed))
            progress.worked(perf_counter() - began)
            held += len(answers[-1])
            if held > _HELD_BYTES or not inbox.has_whole():
                parent.sendall(b"".join(answers))
                answers.clear()
                held = 0


def _answer(
    message: memoryview, page_buffer: SharedPageReader, limits: ParseLimits, cpu_seconds: float, freed: FreedMemory
) -> bytearray:
    cpu_seconds = max(0.001, cpu_seconds)  # the timer would take less for "no limit"
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    if limits.plugins is not None:
        signal.setitimer(signal.ITIMER_REAL, _WAITS * cpu_seconds)
    kind = PageKind.PAGE
    try:
        request = decode_parse_request(message)
        kind = request.page.kind
        page = page_of(request, page_buffer)
        answer = frame(parse_page(page, limits))
        freed.passed(len(page.body))
        return answer
    except MemoryError:
        return frame(ParsedPage(kind, reason=Reason.PARSE_MEMORY))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        if limits.plugins is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def _document_cage(cpu_seconds: float) -> Iterator[None]:
    """More time than for a page of HTML, and less memory: a small document may unpack to a thousand times its size."""
    signal.setitimer(signal.ITIMER_PROF, _DOCUMENT_TIME * max(0.001, cpu_seconds))
    before, most = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft = pages * resource.getpagesize() + _DOCUMENT_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (soft if most == resource.RLIM_INFINITY else min(soft, most), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))


if __name__ == "__main__":
    main(sys.argv[1:])
