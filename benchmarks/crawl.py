"""CPU per page of Levada and of a tuned Scrapy, on the same local web, in the same run.

    python benchmarks/crawl.py [--json] [--pages 6000] [--rounds 5]

The programs take turns. What is counted is the CPU of the whole program and its children, start-up included,
per page; the web runs beside them and does not count. Both read pages with the same function: a plain one
(title, text, links, digest) for `fetch_parse_hash`, Levada's own (main text, language, sketch, zstd) with
SQLite and the same tantivy index on both sides for `with_store_and_index`. Each ratio is the least of Scrapy's
rounds over the least of Levada's (what else the machine does can only add): Scrapy tuned in the usual ways
(asyncio reactor, uvloop, lexbor, own seen-set), and, in the ratios that end in `_trimmed`, cut down as far as
its settings go (see peers/scrapy_crawl.py).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from table import show

HERE = Path(__file__).parent
SCRAPY, LEVADA = "peers/scrapy_crawl.py", "peers/levada_crawl.py"
PEERS = {
    ("scrapy", False): [SCRAPY],
    ("scrapy, trimmed", False): [SCRAPY, "--trimmed"],
    ("levada", False): [LEVADA],
    ("scrapy", True): [SCRAPY, "--store"],
    ("scrapy, trimmed", True): [SCRAPY, "--store", "--trimmed"],
    ("levada", True): [LEVADA, "--store"],
}
RATIOS = (("fetch_parse_hash", False), ("with_store_and_index", True))


@contextmanager
def web(pages: int) -> Iterator[dict[str, Any]]:
    command = [sys.executable, str(HERE / "web.py"), "--pages", str(pages)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            yield json.loads(server.stdout.readline())
        finally:
            server.stdin.close()


def run(program: list[str], starts: list[str]) -> tuple[int, float]:
    """Pages crawled, and CPU seconds of the program and all its children."""
    command = [sys.executable, str(HERE / program[0]), *program[1:], *starts]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.read()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command[1:3])} failed with status {process.returncode}")
    return json.loads(said.splitlines()[-1])["pages"], usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pages", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    costs: dict[tuple[str, bool], list[float]] = {peer: [] for peer in PEERS}
    crawled: dict[tuple[str, bool], int] = {}
    with web(options.pages) as site:
        for _ in range(options.rounds):
            for peer, program in PEERS.items():
                crawled[peer], seconds = run(program, site["sites"])
                costs[peer].append(1000 * seconds / crawled[peer])
    rows = [
        {
            "program": name,
            "store and index": "yes" if stored else "no",
            "pages": crawled[name, stored],
            "page bytes": site["bytes"],
            "CPU ms per page, least": min(costs[name, stored]),
            "median": median(costs[name, stored]),
            "most": max(costs[name, stored]),
        }
        for name, stored in PEERS
    ]
    ratios = {
        name + suffix: min(costs[peer, stored]) / min(costs["levada", stored])
        for name, stored in RATIOS
        for peer, suffix in (("scrapy", ""), ("scrapy, trimmed", "_trimmed"))
    }
    show("crawl", rows, ratios, as_json=options.json)


if __name__ == "__main__":
    main()
