"""A crawl that meets a fault: `python -m tests.story.crawl_with_fault DATA CONFIG kill|full POINT NTH URL...`.

Ends as the command line would: with the error's line and its exit code.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import uvloop

from levada.adapters.faults import FaultAt, KillAt
from levada.assemble.crawling import open_crawl, seeds
from levada.assemble.folder import DataFolder
from levada.errors import LevadaError
from levada.flow.progress import Report
from levada.flow.settings import load_settings
from levada.ports import Faults


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
