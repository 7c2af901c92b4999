"""A crawl that is watched from inside: `python -m tests.story.measured_crawl DATA CONFIG URL...`.

Prints one JSON object: the report, and the most memory that each process held.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import uvloop

from levada.collection.crawling import open_crawl
from levada.collection.starts import seeds
from levada.core.folder import DataFolder
from levada.core.reports import Report
from levada.core.settings import load_settings

__all__ = ["Measured"]


class Measured(msgspec.Struct):
    report: Report
    megabytes: dict[str, float]  # VmHWM by process: main, parser child, index follower


async def crawl(data: str, config: str, urls: list[str]) -> Measured:
    settings = load_settings(Path(config))
    async with open_crawl(DataFolder(Path(data)), settings, seeds(urls), once=True) as work:
        report = await work.run()
        memory = peaks()
    return Measured(report, memory)


def peaks() -> dict[str, float]:
    """The most that this process and each of its kinds of children held in memory so far."""
    found = {"main": _peak(os.getpid())}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = folder.joinpath("stat").read_text().rpartition(")")[2].split()[1]
            command = folder.joinpath("cmdline").read_bytes().decode("utf-8", "replace")
            if int(parent) == os.getpid():
                kind = (
                    "index follower"
                    if "follow.index" in command
                    else "parser child"
                    if "parser.child" in command
                    else command
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
