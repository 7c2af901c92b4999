"""Converting a stored page to Markdown in a child process with limits of CPU time and memory.

The body came from outside, whenever it is read: it could hold a process that reads it for hours, or fill its memory.
Each page gets a child of its own, which takes a tenth of a second; conversions are asked for by people and language
models, one at a time.
"""

from __future__ import annotations

import math
import resource
import subprocess
import sys

import msgspec

from levada.core.processes import leave_signals_to_parent
from levada.core.records import Document, RawPage
from levada.core.settings import ParseSettings
from levada.pages.charset import decode
from levada.pages.markdown import markdown_of, text_as_markdown
from levada.pages.parse import Form, ParseLimits, form_of

_START_SECONDS = 5  # of CPU, for Python and its imports
_WALL = 4  # times its CPU seconds that a child may take of the wall


class Conversion(msgspec.Struct, frozen=True, array_like=True):
    """What a child is asked."""

    page: RawPage
    title: str


def markdown_document(document: Document, settings: ParseSettings) -> str:
    """Headings, lists, tables, code and links of the main content; of a page that is no HTML, its text."""
    kind = next((value for name, value in document.headers if name.lower() == "content-type"), "")
    written = convert(RawPage(document.url, document.body, kind), document.title, settings) if document.body else None
    return written or text_as_markdown(document.text, document.title)


def convert(page: RawPage, title: str, settings: ParseSettings) -> str | None:
    """The page as Markdown; None if it is no HTML, has no content, or cannot be converted within the limits."""
    seconds = math.ceil(settings.cpu_seconds) + _START_SECONDS
    command = [sys.executable, "-m", __spec__.name, str(settings.memory), str(seconds)]
    try:
        done = subprocess.run(  # noqa: S603 -- our own module
            command,
            input=msgspec.msgpack.encode(Conversion(page, title)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_WALL * seconds,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return None
    return done.stdout.decode("utf-8", "replace") or None if done.returncode == 0 else None


def main(arguments: list[str]) -> None:
    memory, seconds = map(int, arguments)
    leave_signals_to_parent()
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    asked = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Conversion)
    page = asked.page
    if form_of(page) is Form.HTML:
        html = decode(page.body[: ParseLimits().max_html_bytes], page.content_type).utf8
        sys.stdout.buffer.write(markdown_of(html, page.url, asked.title).encode("utf-8", "replace"))


if __name__ == "__main__":
    main(sys.argv[1:])
