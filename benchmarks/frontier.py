"""What does it cost to pop a page and put it back, at 10,000 URLs and at 1,000,000?

Each round leases a batch of due pages and settles them unchanged, as a crawl that keeps its pages fresh does all
day: every page has been stored before and comes back after an interval of its own, between an hour and a month.
The two stores take turns round by round, so that neither has the machine's caches, or a quiet moment, to itself.
The ratio depends much on how many pages of one site a lease takes in a row (`--run`, without a delay) and on
politeness (`--delay`, which spreads a batch over as many sites as there are): the defaults are the store's own.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from msgspec.structs import replace

from levada.adapters.limits import StoreLimits
from levada.adapters.sqlite import SqliteStore
from levada.records import Found, Lease, NewVersion, Outcome, PageState, Settled, Visit

BATCH = 200
HOUR = 3600.0
SHORTEST, LONGEST = HOUR, 30 * 24 * HOUR
VERSION = NewVersion("t", "en", "utf-8", 200, (), b"", b"", b"s" * 32, 100, 80, 0.0)


class Crawl:
    """A store whose pages were all visited once, and its time."""

    def __init__(self, path: Path, urls: int, limits: StoreLimits) -> None:
        per_site = limits.max_pages_per_site
        self.urls = urls
        self.sites = -(-urls // per_site)
        self.cpu: list[float] = []
        self.wall: list[float] = []
        self._chance = random.Random(7)
        started = time.perf_counter()
        # Filled without a delay: politeness is part of what is measured, not of the filling.
        self.store = SqliteStore(path, limits=replace(limits, delay=0.0))
        for start in range(0, urls, 20_000):
            self._fill(range(start, min(start + 20_000, urls)), per_site)
        self.store.close()
        self.store = SqliteStore(path, limits=limits)
        self.build_seconds = time.perf_counter() - started
        # From a backlog of some hours, time moves a little faster than pages can be visited.
        self._now = 20 * HOUR
        self._step = 1.6 * BATCH / urls * SHORTEST * log(LONGEST / SHORTEST)

    def round(self) -> None:
        cpu, wall = time.process_time(), time.perf_counter()
        leases = self.store.lease(self._now, BATCH, 600.0)
        self.store.settle([_unchanged(lease, self._now) for lease in leases])
        self.cpu.append((time.process_time() - cpu) / BATCH)
        self.wall.append((time.perf_counter() - wall) / BATCH)
        self._now += self._step
        if len(leases) != BATCH:
            raise SystemExit(f"only {len(leases)} of {self.urls} pages were due")

    def forget_rounds(self) -> None:
        self.cpu.clear()
        self.wall.clear()

    def row(self) -> dict[str, Any]:
        return {
            "urls": self.urls,
            "sites": self.sites,
            "build_seconds": round(self.build_seconds, 1),
            "database_mb": round(self.store.standing(self._now).bytes / 1e6, 1),
            "cpu_mean_us": round(sum(self.cpu) / len(self.cpu) * 1e6, 1),
            "cpu_median_us": round(median(self.cpu) * 1e6, 1),
            "wall_mean_us": round(sum(self.wall) / len(self.wall) * 1e6, 1),
        }

    def _fill(self, numbers: range, per_site: int) -> None:
        self.store.add([_found(number, per_site) for number in numbers], [], 0.0)
        while leases := self.store.lease(0.0, 5_000, LONGEST):
            self.store.settle([self._first(lease) for lease in leases])

    def _first(self, lease: Lease) -> Settled:
        interval = SHORTEST * exp(self._chance.random() * log(LONGEST / SHORTEST))
        next_visit = 1.0 + interval * self._chance.random()
        digest = lease.page.id.to_bytes(16, "big")
        visit = Visit(0.0, Outcome.FIRST)
        return Settled(
            lease,
            visit,
            PageState.LIVE,
            interval,
            next_visit,
            etag=f'"{lease.page.id:x}"',
            body_digest=digest,
            text_digest=digest,
            version=VERSION,
        )


def _found(number: int, per_site: int) -> Found:
    site = f"www.site-{number // per_site}.example"
    return Found(f"https://{site}/section-{number % 37}/an-article-of-some-length-{number}.html", site)


def _unchanged(lease: Lease, now: float) -> Settled:
    page = lease.page
    interval = page.interval or SHORTEST
    return Settled(lease, Visit(now, Outcome.UNCHANGED), PageState.LIVE, interval, now + interval, etag=page.etag)


def run(crawls: Sequence[Crawl], rounds: int) -> None:
    for warm_up in (max(5, rounds // 2), rounds):
        for crawl in crawls:
            crawl.forget_rounds()
        for _ in range(warm_up):
            for crawl in crawls:
                crawl.round()


def main() -> None:
    parser = argparse.ArgumentParser(description="lease + settle per page, small store against large")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--per-site", type=int, default=1_000)
    parser.add_argument("--run", type=int, default=StoreLimits().run)
    parser.add_argument("--delay", type=float, default=StoreLimits().delay)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="levada-frontier-"))
    try:
        limits = StoreLimits(max_pages_per_site=options.per_site, run=options.run, delay=options.delay)
        crawls = [Crawl(folder / f"{urls}.db", urls, limits) for urls in (options.small, options.large)]
        run(crawls, options.rounds)
        report([crawl.row() for crawl in crawls], options.json)
        for crawl in crawls:
            crawl.store.close()
    finally:
        shutil.rmtree(folder)


def report(rows: list[dict[str, Any]], as_json: bool) -> None:
    ratio = round(rows[1]["cpu_mean_us"] / rows[0]["cpu_mean_us"], 3)
    if as_json:
        print(json.dumps({"name": "frontier", "rows": rows, "ratios": {"cost_1m_vs_10k": ratio}}))
        return
    for key in rows[0]:
        print(f"{key:>16}", *(f"{row[key]:>12,}" for row in rows))
    print(f"{'cost_1m_vs_10k':>16} {ratio:>25}   (CPU of lease + settle per page, mean; at most 1.3)")


if __name__ == "__main__":
    main()
