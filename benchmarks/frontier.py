"""What does it cost to pop a page and put it back, at 10,000 URLs and at 1,000,000?

Each round leases a batch of due pages and settles them unchanged, as a crawl that keeps its pages fresh does all
day: every page has been stored before and comes back after an interval of its own, between an hour and a month.
Two stores take turns round by round, so that neither has the machine's caches, or a quiet moment, to itself; a
repeat is many rounds, so that each bears its share of checkpoints, and a ratio is the median of the repeats' own.

`cost_1m_vs_10k` asks whether the cost grows with the number of URLs: 1,000 sites, of 10 pages or of 1,000. It
flatters the large store a little: a site of ten pages has not a whole run of them due, so that the small store
keeps more turns per page. `cost_1m_vs_10k_of_10_sites` is against 10 sites of 1,000 pages, where runs are equal
and the large store has more sites. `cost_1m_vs_10k_delay_1s` has a politeness delay, as crawls have by default: a
batch is spread over as many sites as it has pages, no two of which are neighbours. `--run` is how many pages of a
site a lease takes in a row where there is no delay; the shorter, the dearer the large store.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from table import show

from levada.core.records import FoundUrl, Lease, NewVersion, Outcome, PageState, Visit, VisitResult
from levada.store.base import StoreLimits
from levada.store.sqlite import SqliteStore

BATCH = 200
HOUR = 3600.0
SHORTEST, LONGEST = HOUR, 30 * 24 * HOUR
VERSION = NewVersion("t", "en", "utf-8", 200, (), b"", b"s" * 32, 100, 80, 0.0)


class Shape(NamedTuple):
    sites: int
    pages_per_site: int

    @property
    def urls(self) -> int:
        return self.sites * self.pages_per_site


class Comparison(NamedTuple):
    ratio: str
    small: Shape
    large: Shape
    delay: float


class Crawl:
    """A store whose pages were all visited once, and its time."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        self.shape = shape
        self.store = SqliteStore(folder / f"{shape.sites}x{shape.pages_per_site}.db", limits=StoreLimits())
        self._chance = random.Random(7)
        started = time.perf_counter()
        for start in range(0, shape.urls, 100_000):
            self._fill(range(start, min(start + 100_000, shape.urls)))
        self.build_seconds = time.perf_counter() - started
        # From a backlog of some hours, time moves a little faster than pages can be visited.
        self._now = 20 * HOUR
        self._step = 1.6 * BATCH / shape.urls * SHORTEST * log(LONGEST / SHORTEST)

    def reopen(self, limits: StoreLimits) -> None:
        """The same pages under other limits: politeness is part of what is measured, not of the filling."""
        self.store.close()
        self.store = SqliteStore(self.store.path, limits=limits)

    def round(self) -> tuple[float, float]:
        """CPU and wall seconds per page."""
        cpu, wall = time.process_time(), time.perf_counter()
        leases = self.store.lease(self._now, BATCH, 600.0)
        self.store.commit([_unchanged(lease, self._now) for lease in leases])
        spent = (time.process_time() - cpu) / BATCH, (time.perf_counter() - wall) / BATCH
        self._now += self._step
        if len(leases) != BATCH:
            raise SystemExit(f"only {len(leases)} of {self.shape.urls} pages were due")
        return spent

    def megabytes(self) -> float:
        return self.store.stats(self._now).bytes / 1e6

    def _fill(self, numbers: range) -> None:
        self.store.add([_found(number, self.shape.sites) for number in numbers], [], 0.0)
        while leases := self.store.lease(0.0, 20_000, LONGEST):
            self.store.commit([self._first(lease) for lease in leases])

    def _first(self, lease: Lease) -> VisitResult:
        interval = SHORTEST * exp(self._chance.random() * log(LONGEST / SHORTEST))
        next_visit = 1.0 + interval * self._chance.random()
        digest = lease.page.id.to_bytes(16, "big")
        return VisitResult(
            lease,
            Visit(0.0, Outcome.FIRST),
            PageState.LIVE,
            interval,
            next_visit,
            etag=f'"{lease.page.id:x}"',
            body_digest=digest,
            text_digest=digest,
            version=VERSION,
        )


def _found(number: int, sites: int) -> FoundUrl:
    """Sites are found side by side, as a crawl finds them: the pages of one have no neighbouring numbers."""
    site = f"www.site-{number % sites}.example"
    return FoundUrl(f"https://{site}/section-{number % 37}/an-article-of-some-length-{number}.html", site)


def _unchanged(lease: Lease, now: float) -> VisitResult:
    page = lease.page
    interval = page.interval or SHORTEST
    return VisitResult(lease, Visit(now, Outcome.UNCHANGED), PageState.LIVE, interval, now + interval, etag=page.etag)


class Repeats:
    """What each repeat of one store cost, in microseconds per page."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def add(self, rounds: Sequence[tuple[float, float]]) -> None:
        self.cpu.append(mean(cpu for cpu, _ in rounds) * 1e6)
        self.wall.append(mean(wall for _, wall in rounds) * 1e6)


def measure(crawls: Sequence[Crawl], repeats: int, rounds: int) -> list[Repeats]:
    spent = [Repeats() for _ in crawls]
    for repeat in range(-1, repeats):  # the first warms up
        taken: list[list[tuple[float, float]]] = [[] for _ in crawls]
        for _ in range(rounds):
            for crawl, times in zip(crawls, taken, strict=True):
                times.append(crawl.round())
        if repeat >= 0:
            for each, times in zip(spent, taken, strict=True):
                each.add(times)
    return spent


def compare(
    comparison: Comparison, crawls: dict[Shape, Crawl], options: argparse.Namespace
) -> tuple[list[dict[str, Any]], float]:
    chosen = [crawls[comparison.small], crawls[comparison.large]]
    for crawl in chosen:
        crawl.reopen(StoreLimits(run=options.run, delay=comparison.delay))
    small, large = measure(chosen, options.repeats, options.rounds)
    ratios = [there / here for here, there in zip(small.cpu, large.cpu, strict=True)]
    spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
    rows = [
        {
            "compared for": comparison.ratio,
            "urls": crawl.shape.urls,
            "sites": crawl.shape.sites,
            "delay": comparison.delay,
            "cpu_us": round(median(each.cpu), 1),
            "cpu_us_spread": f"{min(each.cpu):.1f}-{max(each.cpu):.1f}",
            "wall_us": round(median(each.wall), 1),
            "megabytes": round(crawl.megabytes(), 1),
            "build_s": round(crawl.build_seconds, 1),
            "ratio_spread": spread,
        }
        for crawl, each in zip(chosen, (small, large), strict=True)
    ]
    return rows, round(median(ratios), 3)


def comparisons(small: int, large: int, sites: int) -> list[Comparison]:
    big, thin = Shape(sites, large // sites), Shape(sites, max(1, small // sites))
    few = Shape(max(1, sites * small // large), large // sites)
    return [
        Comparison("cost_1m_vs_10k", thin, big, 0.0),
        Comparison("cost_1m_vs_10k_of_10_sites", few, big, 0.0),
        Comparison("cost_1m_vs_10k_delay_1s", thin, big, 1.0),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="lease + settle per page, small store against large")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--small", type=int, default=10_000, help="URLs of the small stores")
    parser.add_argument("--large", type=int, default=1_000_000, help="URLs of the large store")
    parser.add_argument("--sites", type=int, default=1_000, help="sites of the large store")
    parser.add_argument("--run", type=int, default=StoreLimits().run, help="pages of one site in a row")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=20, help="batches of 200 pages per repeat")
    options = parser.parse_args()
    planned = comparisons(options.small, options.large, options.sites)
    folder = Path(tempfile.mkdtemp(prefix="levada-frontier-"))
    try:
        shapes = dict.fromkeys(shape for each in planned for shape in (each.small, each.large))
        crawls = {shape: Crawl(folder, shape) for shape in shapes}
        results = [(each.ratio, *compare(each, crawls, options)) for each in planned]
        for crawl in crawls.values():
            crawl.store.close()
    finally:
        shutil.rmtree(folder)
    show(
        "frontier",
        [row for _, rows, _ in results for row in rows],
        {ratio: value for ratio, _, value in results},
        as_json=options.json,
    )


if __name__ == "__main__":
    main()
