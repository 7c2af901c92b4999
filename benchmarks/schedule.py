"""What does it cost to choose the next pages, and to decide when each comes back, however many there are?

For each number of URLs a store is filled with pages that were visited once, with what our policy remembers of each.
Then: a crawler's start (the panel of the policy is read from the store), leases of the next thousand pages that are
due, and a plan for each of them. Milliseconds and microseconds are of CPU; memory is what the process holds beside
the database's own cache.

`start_large_vs_small` and `lease_large_vs_small` compare the largest store with the smallest. Ten million URLs
(`--urls 100000 10000000`) take a quarter of an hour to fill and some gigabytes of disk.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from frontier import Crawl, Shape
from msgspec.structs import replace
from table import show

from levada.collection.components import learn_from_sample, make_policy
from levada.core.records import Lease, Outcome, Visit, VisitResult
from levada.core.settings import Settings
from levada.freshness.estimates import Evidence
from levada.freshness.rates import RATES
from levada.store.sqlite import SqliteStore

THOUSAND = 1_000
_EVIDENCE = [-0.1 * k for k in range(len(RATES))]
MEMORY = Evidence(_EVIDENCE, _EVIDENCE).packed()


class Remembered(Crawl):
    """As a crawl leaves its pages: with the memory of the policy."""

    def _first(self, lease: Lease) -> VisitResult:
        return replace(super()._first(lease), memory=MEMORY)


def measure(store: SqliteStore, urls: int, rounds: int) -> dict[str, Any]:
    policy = make_policy(Settings())
    started = time.process_time()
    learn_from_sample(policy, store)
    start = time.process_time() - started
    now = 40 * 24 * 3600.0  # all are due
    leased, planned = [], []
    for _ in range(rounds):
        began = time.process_time()
        leases = store.lease(now, THOUSAND, 600.0)
        between = time.process_time()
        plans = [policy.plan(lease.page, Visit(now, Outcome.UNCHANGED)) for lease in leases]
        ended = time.process_time()
        if len(leases) != THOUSAND:
            raise SystemExit(f"only {len(leases)} pages were due")
        leased.append(between - began)
        planned.append((ended - between) / len(plans))
    return {
        "urls": urls,
        "start_s": start,
        "lease_1000_ms": median(leased) * 1e3,
        "plan_us": median(planned) * 1e6,
        "memory_bytes_per_url": len(MEMORY),
        "panel_pages": policy.estimates.pages // policy.estimates.one_in,
        "database_gb": store.stats(now).bytes / 1e9,
        "most_resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--sites", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", type=Path, help="where to put the stores (default: the temporary folder)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for urls in sorted(options.urls):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            crawl = Remembered(Path(folder), Shape(options.sites, max(1, urls // options.sites)))
            rows.append(measure(crawl.store, crawl.shape.urls, options.rounds))
            crawl.store.close()
    ratios = {
        "start_large_vs_small": rows[-1]["start_s"] / rows[0]["start_s"],
        "lease_large_vs_small": rows[-1]["lease_1000_ms"] / rows[0]["lease_1000_ms"],
    }
    show("schedule", rows, ratios, as_json=options.json)


if __name__ == "__main__":
    main()
