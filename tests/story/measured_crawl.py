"""A crawl that is watched from inside: `python -m tests.story.measured_crawl DATA CONFIG URL...`.

Prints one JSON object: the report, how long each visit took by the machine's clock, and the most memory that each
process held.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import uvloop

from levada.assemble.crawling import open_crawl, seeds
from levada.assemble.folder import DataFolder
from levada.assemble.parts import make_fetcher
from levada.flow.progress import Report
from levada.flow.settings import load_settings
from levada.ports import Fetcher
from levada.records import Request, Response, Settled

__all__ = ["Measured"]


class Measured(msgspec.Struct):
    report: Report
    seconds: dict[str, float]  # by URL: from its first byte asked for to its commit
    exchanges: dict[str, float]  # by URL, robots.txt too: one exchange
    megabytes: dict[str, float]  # VmHWM by process: main, parser_child, indexer


class TimedFetcher:
    """Notes when each address was asked for, and how long the answer took."""

    def __init__(self, inner: Fetcher) -> None:
        self.began: dict[str, float] = {}
        self.took: dict[str, float] = {}
        self._inner = inner

    async def fetch(self, request: Request) -> Response:
        began = self.began[request.url] = time.monotonic()
        response = await self._inner.fetch(request)
        self.took[request.url] = max(self.took.get(request.url, 0.0), time.monotonic() - began)
        return response

    async def close(self) -> None:
        await self._inner.close()


async def crawl(data: str, config: str, urls: list[str]) -> Measured:
    settings = load_settings(Path(config))
    fetcher = TimedFetcher(make_fetcher(settings))
    seconds: dict[str, float] = {}

    def committed(visits: Sequence[Settled]) -> None:
        now = time.monotonic()
        for url in (visit.lease.page.url for visit in visits):
            if url in fetcher.began:  # else it was refused before it was asked for
                seconds[url] = max(seconds.get(url, 0.0), now - fetcher.began[url])

    work_ports = {"once": True, "fetcher": fetcher, "on_committed": committed}
    async with open_crawl(DataFolder(Path(data)), settings, seeds(urls), **work_ports) as work:  # type: ignore[arg-type]
        report = await work.run()
        memory = peaks()
    return Measured(report, seconds, fetcher.took, memory)


def peaks() -> dict[str, float]:
    """The most that this process and each of its kinds of children held in memory so far."""
    found = {"main": _peak(os.getpid())}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = folder.joinpath("stat").read_text().rpartition(")")[2].split()[1]
            command = folder.joinpath("cmdline").read_bytes().decode("utf-8", "replace")
            if int(parent) == os.getpid():
                kind = (
                    "indexer" if "indexer" in command else "parser_child" if "parser_child" in command else command
                )
                found[kind] = max(found.get(kind, 0.0), _peak(int(folder.name)))
        except OSError:
            continue  # it has just ended
    return found


def _peak(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1000


if __name__ == "__main__":
    print(msgspec.json.encode(uvloop.run(crawl(sys.argv[1], sys.argv[2], sys.argv[3:]))).decode())
