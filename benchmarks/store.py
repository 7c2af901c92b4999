"""What does it cost to settle a page in PostgreSQL, and what in SQLite?

Batches of pages are settled: first visits that store a version and name new links, then visits that meet nothing
new. Both stores take turns batch by batch, so that neither has a quiet moment to itself, and both sync every commit
to the disk. The server runs on this machine: its own CPU is in `wall_us` only, `cpu_us` is what the crawl's process
spends. `postgresql_vs_sqlite` is the ratio of wall seconds, first visits and others together; the median of the
batches.

`--dsn` names a server of yours, in which a schema `levada_benchmark` is made and dropped; without it, a private one
is started.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol

import psycopg
from table import show

from levada.core.protocols import Frontier, Sites
from levada.core.records import (
    FoundUrl,
    Lease,
    NewVersion,
    Outcome,
    PageState,
    SiteRecord,
    Visit,
    VisitResult,
)
from levada.pages.compression import pack_content
from levada.store.base import StoreLimits
from levada.store.postgresql import PostgresqlStore
from levada.store.sqlite import SqliteStore

sys.path.insert(0, str(Path(__file__).parents[1]))

SCHEMA = "levada_benchmark"
INTERVAL = 1000.0
FOREVER = 1e18
WARM_UP = 3  # batches of each kind


class Store(Frontier, Sites, Protocol):
    def close(self) -> None: ...


class Cost(NamedTuple):
    wall: float
    cpu: float


class Crawl:
    """One store, and its time. What is found lies on sites that rest, so that a batch is of one kind."""

    def __init__(self, name: str, store: Store, options: argparse.Namespace) -> None:
        self.name = name
        self.store = store
        self._batch = options.batch
        self._sites = options.sites
        self._links = options.links
        self._chance = random.Random(11)
        self._now = 0.0
        self.first: list[Cost] = []
        self.again: list[Cost] = []
        pages = [(number, f"site-{number % options.sites}.example") for number in range(options.rounds * options.batch)]
        store.add(
            [FoundUrl(f"https://{site}/section/an-article-{number}.html", site) for number, site in pages], [], 0.0
        )
        for number in range(options.sites):
            store.save(SiteRecord(f"resting-{number}.example", rest_until=FOREVER))

    def visit_first(self) -> None:
        self.first.append(self._settle([self._stored(lease) for lease in self._leased()]))

    def visit_again(self) -> None:
        self._now += INTERVAL
        self.again.append(self._settle([_unchanged(lease, self._now) for lease in self._leased()]))

    def _leased(self) -> list[Lease]:
        leases = self.store.lease(self._now, self._batch, 600.0)
        if len(leases) != self._batch:
            raise SystemExit(f"only {len(leases)} pages could be leased")
        return leases

    def _settle(self, visits: Sequence[VisitResult]) -> Cost:
        """Per page; what it took to lease it is not counted."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.store.commit(visits)
        return Cost((time.perf_counter() - wall) / len(visits), (time.process_time() - cpu) / len(visits))

    def _stored(self, lease: Lease) -> VisitResult:
        digest = lease.page.id.to_bytes(16, "big")
        return VisitResult(
            lease,
            Visit(self._now, Outcome.FIRST, 0.0),
            PageState.LIVE,
            INTERVAL,
            self._now + INTERVAL,
            etag=f'"{lease.page.id:x}"',
            body_digest=digest,
            text_digest=digest,
            version=self._version(),
            found=tuple(self._found() for _ in range(self._links)),
        )

    def _version(self) -> NewVersion:
        text = self._chance.randbytes(3_000)  # as dense as what a page's text compresses to
        content = pack_content(text, text + self._chance.randbytes(6_000), 3)
        return NewVersion("A title", "en", "utf-8", 200, (("a", "b"),), content, b"s" * 32, 500, 300, 0.0)

    def _found(self) -> FoundUrl:
        site = f"resting-{self._chance.randrange(self._sites)}.example"
        return FoundUrl(f"https://{site}/section/an-article-{self._chance.randrange(10**6)}.html", site)


def _unchanged(lease: Lease, now: float) -> VisitResult:
    page = lease.page
    return VisitResult(lease, Visit(now, Outcome.UNCHANGED), PageState.LIVE, INTERVAL, now + INTERVAL, etag=page.etag)


@contextmanager
def private_server() -> Iterator[str]:
    from tests.servers.postgresql import new_cluster, own_folder

    folder = own_folder(Path(tempfile.gettempdir()))
    cluster = new_cluster(folder / "data")
    cluster.settings |= {"fsync": "on", "full_page_writes": "on", "shared_preload_libraries": ""}
    try:
        cluster.start()
        yield cluster.address
    finally:
        cluster.kill()
        shutil.rmtree(folder, ignore_errors=True)


def measure(dsn: str, options: argparse.Namespace) -> tuple[list[dict[str, Any]], float]:
    folder = Path(tempfile.mkdtemp(prefix="levada-store-"))
    limits = StoreLimits(max_pages_per_site=1_000_000)
    sqlite = Crawl("sqlite", SqliteStore(folder / "store.db", limits=limits), options)
    server = Crawl("postgresql", PostgresqlStore(dsn, schema=SCHEMA, limits=limits), options)
    try:
        for _ in range(options.rounds):
            sqlite.visit_first()
            server.visit_first()
        for _ in range(options.rounds):
            sqlite.visit_again()
            server.visit_again()
    finally:
        sqlite.store.close()
        server.store.close()
        shutil.rmtree(folder)
    rows = [_row(crawl, kind) for crawl in (sqlite, server) for kind in ("first", "again")]
    return rows, round(median(_ratios(sqlite, server)), 3)


def _row(crawl: Crawl, kind: str) -> dict[str, Any]:
    costs = getattr(crawl, kind)[WARM_UP:]
    return {
        "store": crawl.name,
        "visits": kind,
        "wall_us": round(median(each.wall for each in costs) * 1e6, 1),
        "cpu_us": round(median(each.cpu for each in costs) * 1e6, 1),
        "batches": len(costs),
    }


def _ratios(sqlite: Crawl, server: Crawl) -> list[float]:
    first = zip(sqlite.first[WARM_UP:], server.first[WARM_UP:], strict=True)
    again = zip(sqlite.again[WARM_UP:], server.again[WARM_UP:], strict=True)
    return [theirs.wall / ours.wall for ours, theirs in [*first, *again]]


def main() -> None:
    parser = argparse.ArgumentParser(description="cost per settled page, PostgreSQL against SQLite")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--dsn", default="", help="a server to use instead of a private one")
    parser.add_argument("--batch", type=int, default=50, help="visits settled at once")
    parser.add_argument("--sites", type=int, default=200)
    parser.add_argument("--links", type=int, default=20, help="links that a first visit finds")
    parser.add_argument("--rounds", type=int, default=60, help="batches of each kind")
    options = parser.parse_args()
    if options.dsn:
        with psycopg.connect(options.dsn, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
            rows, ratio = measure(options.dsn, options)
            connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
    else:
        with private_server() as dsn:
            rows, ratio = measure(dsn, options)
    show("store", rows, {"postgresql_vs_sqlite": ratio}, as_json=options.json)


if __name__ == "__main__":
    main()
