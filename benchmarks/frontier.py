"""What does it cost to pop a page and put it back, at 10,000 URLs and at 1,000,000?

Each round leases a batch of due pages and settles them unchanged, as a crawl that keeps its pages fresh does all
day. Every page has been visited before and has a document, and revisits fall due in a random order.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Any

from levada.adapters.limits import StoreLimits
from levada.adapters.sqlite import SqliteStore
from levada.records import Found, Lease, NewVersion, Outcome, PageState, Settled, Visit

BATCH = 200
FAR = 1e6
VERSION = NewVersion("t", "en", "utf-8", 200, (), b"", b"", b"s" * 32, 100, 80, 0.0)


def build(path: Path, urls: int, per_site: int, chance: random.Random) -> SqliteStore:
    """A store of pages that were all visited once and fall due in a random order from time 1 on."""
    store = SqliteStore(path, limits=StoreLimits(max_pages_per_site=per_site))
    for start in range(0, urls, 20_000):
        numbers = range(start, min(start + 20_000, urls))
        store.add([_found(n, per_site) for n in numbers], [], 0.0)
        while leases := store.lease(0.0, 5_000, FAR):
            store.settle([_settled(lease, 0.0, chance.random() * FAR, Outcome.FIRST, VERSION) for lease in leases])
    return store


def _found(n: int, per_site: int) -> Found:
    site = f"www.site-{n // per_site}.example"
    return Found(f"https://{site}/section-{n % 37}/an-article-of-some-length-{n}.html", site)


def _settled(lease: Lease, at: float, again: float, outcome: Outcome, version: NewVersion | None = None) -> Settled:
    digest = lease.page.id.to_bytes(16, "big") if version else None
    return Settled(
        lease,
        Visit(at, outcome),
        PageState.LIVE,
        again,
        at + again,
        etag=f'"{lease.page.id}"' if version else None,
        body_digest=digest,
        text_digest=digest,
        version=version,
    )


def measure(store: SqliteStore, times: Iterator[float], rounds: int, chance: random.Random) -> dict[str, float]:
    """CPU and wall seconds per page over rounds of one lease and one settle."""
    cpu, wall = [], []
    for now in islice(times, rounds):
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        leases = store.lease(now, BATCH, 600.0)
        store.settle([_settled(lease, now, chance.random() * FAR, Outcome.UNCHANGED) for lease in leases])
        if len(leases) != BATCH:
            raise SystemExit(f"only {len(leases)} pages were due")
        cpu.append((time.process_time() - cpu_start) / len(leases))
        wall.append((time.perf_counter() - wall_start) / len(leases))
    return {"cpu_mean": sum(cpu) / rounds, "cpu_median": median(cpu), "wall_median": median(wall)}


def run(urls: int, per_site: int, rounds: int) -> dict[str, Any]:
    chance = random.Random(7)
    folder = Path(tempfile.mkdtemp(prefix="levada-frontier-"))
    try:
        started = time.perf_counter()
        store = build(folder / "store.db", urls, per_site, chance)
        built = time.perf_counter() - started
        # Time moves as fast as pages fall due, from a backlog of one half.
        times = count(FAR / 2, 1.05 * BATCH * FAR / 2 / urls)
        measure(store, times, max(5, rounds // 3), chance)  # warm-up: caches filled, the log at its usual length
        figures = measure(store, times, rounds, chance)
        size = store.standing(FAR).bytes
        store.close()
    finally:
        shutil.rmtree(folder)
    return {
        "urls": urls,
        "sites": -(-urls // per_site),
        "build_seconds": round(built, 1),
        "database_mb": round(size / 1e6, 1),
        **{f"{name}_us": round(value * 1e6, 1) for name, value in figures.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--per-site", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    rows = [run(urls, options.per_site, options.rounds) for urls in (options.small, options.large)]
    ratio = round(rows[1]["cpu_mean_us"] / rows[0]["cpu_mean_us"], 3)
    result = {"name": "frontier", "rows": rows, "ratios": {"cost_1m_vs_10k": ratio}}
    if options.json:
        print(json.dumps(result))
        return
    for key in rows[0]:
        print(f"{key:>16}", *(f"{row[key]:>12,}" for row in rows))
    print(f"{'cost_1m_vs_10k':>16} {ratio:>25}   (CPU of lease + settle per page; at most 1.3)")


if __name__ == "__main__":
    main()
