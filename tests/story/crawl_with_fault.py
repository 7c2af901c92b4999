"""A crawl that meets a fault: `python -m tests.story.crawl_with_fault DATA CONFIG kill|full POINT NTH URL...`.

Ends as the command line would: with the error's line and its exit code.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import uvloop

from levada.collection.crawling import open_crawl
from levada.collection.starts import seeds
from levada.core.errors import LevadaError
from levada.core.folder import DataFolder
from levada.core.protocols import Faults
from levada.core.reports import Report
from levada.core.settings import load_settings
from tests.faults import FaultAt, KillAt


async def crawl(data: str, config: str, faults: Faults, urls: list[str]) -> Report:
    settings = load_settings(Path(config))
    async with open_crawl(DataFolder(Path(data)), settings, seeds(urls), once=True, faults=faults) as work:
        return await work.run()


if __name__ == "__main__":
    data, config, kind, point, nth, *urls = sys.argv[1:]
    fault: Faults = KillAt(point, int(nth))
    if kind == "full":
        fault = FaultAt(point, OSError(errno.ENOSPC, "No space left on device"), int(nth))
    try:
        uvloop.run(crawl(data, config, fault, urls))
    except LevadaError as error:
        print(f"levada: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
