"""What does it cost to remember the texts of all pages, at 100,000 pages and at some millions?

The pages of a SQLite store are found at once, and stored in the order of a crawl: batches of pages of some sites
each, without contents. `bytes` is what the keys of the texts take per page, in the row and in the index: the file with
them less the same without. Then batches of new pages are looked up, half of which have the text of a stored one, by a
process that has just opened the store and has its usual cache (32 MiB). `runs_us` is the cost of reading the
near-duplicate runs of a site, `run_bytes` how long those are at most. `mib` is the memory of the whole process that
looks up, `file_mib` the store. `growth` is the look-up at the largest number of pages over that at the smallest.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

from table import show

from levada.core.records import PageText
from levada.pages.urls import NearDuplicateRuns
from levada.store.base import StoreLimits
from levada.store.faults import NoFaults
from levada.store.rules import page_number, text_key
from levada.store.sqlite import SqliteStore
from levada.store.sqlite.database import SqliteDatabase

BATCH = 50  # visits that are committed together
SITES_OF_A_BATCH = 5
PER_SITE = 1000
_SITE = "INSERT INTO sites (id, site, pages) VALUES (?, ?, ?)"
_PAGE = """INSERT INTO pages (id, site_id, url, kind, how, depth, hops, priority, found_at)
    VALUES (?, ?, ?, 0, 0, 1, 0, 0, 0)"""
_RUNS = "INSERT INTO near_runs VALUES (?, ?)"
_STORED = """UPDATE pages SET version = 1, seq = ?2, body_digest = ?3, text_digest = ?4, sketch = ?5, text_key = ?6
    WHERE id = ?1"""


def site_name(site: int) -> str:
    return f"site-{site}.example"


def digest(site: int, page: int) -> bytes:
    return random.Random(site * PER_SITE + page).randbytes(16) + b"\0titl"


def full_runs(chance: random.Random) -> bytes:
    runs = NearDuplicateRuns()
    for number in range(100):
        runs.observe(f"http://a/{'x' * number}", chance.randbytes(128))
    return runs.packed()


def fill(path: Path, pages: int, chance: random.Random, *, with_keys: bool) -> int:
    """A store of so many pages; returns its bytes."""
    sites = max(1, pages // PER_SITE)
    with closing(SqliteStore(path)):
        pass
    with closing(SqliteDatabase(path, StoreLimits(), NoFaults())) as database:
        for site in range(1, sites + 1):
            with database.write("find") as write:
                write.execute(_SITE, (site, site_name(site), PER_SITE))
                start = f"https://{site_name(site)}/section/an-article-"
                rows = [(page_number(site, page), site, f"{start}{page}.html") for page in range(1, PER_SITE + 1)]
                write.executemany(_PAGE, rows)
        several = BATCH // SITES_OF_A_BATCH
        turns = [(site, start) for start in range(1, PER_SITE + 1, several) for site in range(1, sites + 1)]
        chance.shuffle(turns)
        for first in range(0, len(turns), 20 * SITES_OF_A_BATCH):  # of twenty batches: commits are not measured
            rows = []
            for site, start in turns[first : first + 20 * SITES_OF_A_BATCH]:
                for page in range(start, start + several):
                    known = digest(site, page)
                    key = text_key(site_name(site), known) if with_keys else None
                    seq = site * PER_SITE + page
                    rows.append((page_number(site, page), seq, known[:16], known, known[:16] * 8, key))
            with database.write("store") as write:
                write.executemany(_STORED, rows)
        size = used(database)
        with database.write("runs") as write:
            write.executemany(_RUNS, [(site, full_runs(chance)) for site in range(1, min(sites, 2000) + 1)])
    return size


def used(database: SqliteDatabase) -> int:
    ((size,),) = database.rows("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
    return int(size)


def look_up(path: Path, pages: int, rounds: int) -> tuple[float, float, float]:
    """Microseconds for each page, and for each site's runs; and the memory of this process, in MiB."""
    chance = random.Random(8)
    sites = max(1, pages // PER_SITE)
    texts, runs = [], []
    with closing(SqliteStore(path)) as store:
        for _ in range(rounds):
            asked = []
            for site in chance.sample(range(1, sites + 1), min(SITES_OF_A_BATCH, sites)):
                for _ in range(BATCH // SITES_OF_A_BATCH):
                    stored = digest(site, chance.randrange(1, PER_SITE + 1))
                    asked.append(PageText(site_name(site), stored if chance.random() < 0.5 else chance.randbytes(16)))
            began = time.perf_counter()
            found = store.originals(asked)
            texts.append((time.perf_counter() - began) / len(asked))
            if not 0.2 < sum(url is not None for url in found) / len(found) < 0.8:
                raise SystemExit("about half of the texts should be found")
            names = sorted({text.site for text in asked})
            began = time.perf_counter()
            store.near_runs(names)
            runs.append((time.perf_counter() - began) / len(names))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1e6 * median(texts), 1e6 * median(runs), peak / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pages", type=int, nargs="+", default=[100_000, 2_000_000], help="how many; several in turn")
    parser.add_argument("--rounds", type=int, default=2000)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for pages in options.pages:
        folder = Path(tempfile.mkdtemp(prefix="levada-duplicates-"))
        try:
            without = fill(folder / "without.db", pages, random.Random(7), with_keys=False)
            (folder / "without.db").unlink()
            size = fill(folder / "store.db", pages, random.Random(7), with_keys=True)
            with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
                text, run, memory = fresh.submit(look_up, folder / "store.db", pages, options.rounds).result()
        finally:
            shutil.rmtree(folder)
        facts = {"pages": pages, "bytes": round((size - without) / pages, 1), "look_up_us": round(text, 1)}
        sizes = {"run_bytes": len(full_runs(random.Random(8))), "mib": round(memory), "file_mib": size >> 20}
        rows.append({**facts, "runs_us": round(run, 1), **sizes})
    growth = rows[-1]["look_up_us"] / rows[0]["look_up_us"]
    show("duplicates", rows, {"growth": round(growth, 2)}, as_json=options.json)


if __name__ == "__main__":
    main()
