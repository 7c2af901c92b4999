"""A parser child in which some pages do harm, as their URLs say."""

from __future__ import annotations

import os
import signal
import sys
import time

from levada.core.records import ParsedPage, RawPage
from levada.pages.parse import ParseLimits, parse_page
from levada.parser import child as parser_child


def read(page: RawPage, limits: ParseLimits) -> ParsedPage:
    if "kill" in page.url:
        os.kill(os.getpid(), signal.SIGKILL)
    if "loop" in page.url:
        while True:
            pass
    if "eat" in page.url:
        return ParsedPage(page.kind, title="x" * 10**12)
    if "wait" in page.url:
        time.sleep(60)
    if "lie" in page.url:
        os.write(int(sys.argv[1]), b"\xff\xff\xff\xff and more")
    if "garble" in page.url:
        os.write(int(sys.argv[1]), b"\x03\x00\x00\x00\xc1\xc1\xc1")
    return parse_page(page, limits)


parser_child.parse_page = read  # type: ignore[assignment,attr-defined]
if __name__ == "__main__":
    parser_child.main(sys.argv[1:])
