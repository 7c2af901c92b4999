"""One of several processes that crawl the same store: visits pages until none is left, and prints which.

`python -m tests.store.several_on_server DSN SCHEMA SEED`. Page n of a site names pages of other sites: what is
found is the same however the pages are shared out.
"""

from __future__ import annotations

import json
import random
import sys

from levada.core.records import FoundUrl, Lease
from levada.store.base import StoreLimits
from levada.store.postgresql import PostgresqlStore
from levada.testing.store.visits import first

__all__ = ["EXPECTED", "LIMITS", "SEEDS"]

SITES, PAGES = 10, 12
LIMITS = StoreLimits(run=3, known_urls=40, busy_seconds=30.0)
SEEDS = [FoundUrl(f"http://s{site}/0", f"s{site}") for site in range(SITES)]
EXPECTED = {f"http://s{site}/{page}" for site in range(SITES) for page in range(PAGES)}
FOREVER = 1e9


def found_on(url: str) -> tuple[FoundUrl, ...]:
    site, page = (int(part.strip("s")) for part in url.removeprefix("http://").split("/"))
    named = [((site + step) % SITES, page + 1) for step in range(4)]
    return tuple(FoundUrl(f"http://s{site}/{page}", f"s{site}") for site, page in named if page < PAGES)


def visit(store: PostgresqlStore, chance: random.Random) -> list[tuple[int, int]]:
    done: list[tuple[int, int]] = []
    while store.stats(1.0).unvisited:
        leases = store.lease(1.0, chance.randrange(1, 12), FOREVER)
        chance.shuffle(leases)
        visits = [first(lease, 1.0, lease.page.url, found_on(lease.page.url), interval=FOREVER) for lease in leases]
        done += [_name(lease) for lease, kept in zip(leases, store.commit(visits), strict=True) if kept]
    return done


def _name(lease: Lease) -> tuple[int, int]:
    return lease.page.id, lease.token


if __name__ == "__main__":
    dsn, schema, seed = sys.argv[1:]
    store = PostgresqlStore(dsn, schema=schema, limits=LIMITS)
    print(json.dumps(visit(store, random.Random(int(seed)))))
    store.close()
