"""Converting stored pages to Markdown in a child process with limits of CPU time and memory.

The body came from outside, whenever it is read: it could hold a process that reads it for hours, or fill its memory.
A converter starts its child with the first page, which takes a tenth of a second, and a new one after each page that
ended it.
"""

from __future__ import annotations

import math
import os
import resource
import select
import signal
import struct
import subprocess
import sys
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from levada.core.processes import leave_signals_to_parent, module_command
from levada.core.records import Document, RawPage
from levada.core.settings import ParseSettings
from levada.pages.charset import decode
from levada.pages.markdown import markdown_of, text_as_markdown
from levada.pages.parse import Form, ParseLimits, form_of

_START_SECONDS = 5  # of CPU, for Python and its imports
_WALL = 4  # times its CPU seconds that a page may take of the wall
_HEAD = struct.Struct("!Q")
_AT_ONCE = 1 << 16  # bytes


class Conversion(msgspec.Struct, frozen=True, array_like=True):
    """What a child is asked."""

    page: RawPage
    title: str


class MarkdownConverter:
    """Documents as Markdown, by a child process that lives as long as it reads them within its limits.

    ```python
    with MarkdownConverter(settings.parse) as converter:
        for document in documents:
            print(converter.markdown(document))
    ```
    """

    def __init__(self, settings: ParseSettings) -> None:
        self._settings = settings
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()

    def markdown(self, document: Document) -> str:
        """Headings, lists, tables, code and links of the main content; of a page that is no HTML, its text."""
        kind = next((value for name, value in document.headers if name.lower() == "content-type"), "")
        page = RawPage(document.url, document.body, kind)
        written = self.convert(page, document.title) if document.body else None
        return written or text_as_markdown(document.text, document.title)

    def convert(self, page: RawPage, title: str) -> str | None:
        """The page as Markdown; None if it is no HTML, has no content, or cannot be converted within the limits."""
        if form_of(page) is not Form.HTML:
            return None
        try:
            if self._child is None:
                self._child = self._started()
            answer = self._answer(self._child, msgspec.msgpack.encode(Conversion(page, title)))
        except OSError:
            answer = None
        if answer is None:
            self.close()
            return None
        return answer.decode("utf-8", "replace") or None

    def _started(self) -> subprocess.Popen[bytes]:
        command = module_command(__spec__.name, str(self._settings.memory), str(self._settings.cpu_seconds))
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0)  # noqa: S603 -- our own module

    def _answer(self, child: subprocess.Popen[bytes], asked: bytes) -> bytes | None:
        """What the child answers; None if it ends or takes too long."""
        assert child.stdin is not None
        assert child.stdout is not None
        until = monotonic() + _WALL * (math.ceil(self._settings.cpu_seconds) + _START_SECONDS)
        into, out_of = child.stdin.fileno(), child.stdout.fileno()
        os.set_blocking(into, False)
        waiting, got = memoryview(_HEAD.pack(len(asked)) + asked), bytearray()
        while len(got) < _HEAD.size or len(got) < _HEAD.size + _HEAD.unpack_from(got)[0]:
            left = until - monotonic()
            readable, writable, _ = select.select([out_of], [into] if waiting else [], [], max(0.0, left))
            if not readable and not writable:
                return None
            if writable:
                waiting = waiting[os.write(into, waiting[:_AT_ONCE]) :]
            if readable:
                more = os.read(out_of, _AT_ONCE)
                if not more:
                    return None
                got += more
        return bytes(got[_HEAD.size :])


def main(arguments: list[str]) -> None:
    leave_signals_to_parent()
    memory = int(arguments[0])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limits, seconds = ParseLimits(), max(0.001, float(arguments[1]))
    while head := sys.stdin.buffer.read(_HEAD.size):
        asked = msgspec.msgpack.decode(_exactly(sys.stdin.buffer, _HEAD.unpack(head)[0]), type=Conversion)
        page = asked.page
        signal.setitimer(signal.ITIMER_PROF, seconds)
        html = decode(page.body[: limits.max_html_bytes], page.content_type).utf8
        written = markdown_of(html, page.url, asked.title).encode("utf-8", "replace")
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(_HEAD.pack(len(written)) + written)
        sys.stdout.buffer.flush()


def _exactly(pipe: BinaryIO, size: int) -> bytes:
    found = pipe.read(size)
    if len(found) < size:
        raise EOFError
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
