"""One process visits pages and finds links while movers are killed one after the other; prints what came of it.

Run as a program of its own: it forks, which a test process with threads must not.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from levada.core.records import FoundUrl
from levada.sharding.page_keys import page_placement
from levada.store.sharded import ShardedStore
from levada.store.sharded.plan import PlanFile
from levada.store.sharded.resharding import begin_move, finish_move, move_pages
from levada.testing.store.visits import changed, first, unchanged
from tests.sharded import open_places, places
from tests.store.resharding_scenario import LIMITS, close_all, open_collection

PLANS = ((4, "site"), (3, "url"), (2, "site"), (5, "url"))
SITES = 12
MOST_PAGES = 600


def visit_until_told(folder: Path) -> None:
    """Everything that was settled and found is written down, so that it can be looked for."""
    store, file = open_collection(folder, 2)
    chance = random.Random(1)
    with open(folder / "visits.txt", "a") as visits, open(folder / "found.txt", "a") as found:
        step = 0
        while not (folder / "stop").exists():
            step += 1
            _one_round(store, step * 10.0, chance, visits.write, found.write)
            visits.flush()
            found.flush()
    close_all(store, file)


def _one_round(
    store: ShardedStore, now: float, chance: random.Random, visited: Callable[[str], int], met: Callable[[str], int]
) -> None:
    ends = []
    for lease in store.lease(now, 20, 1_000.0):
        links = tuple(_link(chance) for _ in range(3))
        if not lease.page.version:
            ends.append(first(lease, now, lease.page.url, links, interval=15.0))
        elif chance.random() < 0.5:
            ends.append(changed(lease, now, f"{lease.page.url} {now}", interval=15.0))
        else:
            ends.append(unchanged(lease, now, interval=15.0))
    for end, is_current in zip(ends, store.commit(ends), strict=True):
        assert is_current, "a lease was lost"
        visited(f"{end.lease.page.url}\n")
        for found in end.found:
            met(f"{found.url}\n")


def _link(chance: random.Random) -> FoundUrl:
    number = chance.randrange(MOST_PAGES)
    site = f"s{number % SITES}.org"
    return FoundUrl(f"http://{site}/{number % 7}/{number}", site)


def move(folder: Path, shards: int, key: str) -> None:
    file = PlanFile(folder / "placement.json")
    plan = file.read().plan
    wanted = plan.following or page_placement(key, shards)
    record = begin_move(file, wanted, places(folder, shards))
    opened = open_places(folder, record.shards, LIMITS)
    move_pages(file, opened, wait=lambda: time.sleep(0.005))
    finish_move(file)
    for shard in opened:
        shard.close()
    file.close()


def forked(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return child


def main(folder: Path, kills: int) -> None:
    store, file = open_collection(folder, 2)
    store.add([FoundUrl(f"http://s{n}.org/", f"s{n}.org") for n in range(SITES)], [], 0.0)
    close_all(store, file)
    visitor = forked(partial(visit_until_told, folder))
    chance = random.Random(2)
    ends: Counter[int] = Counter()
    for _ in range(kills):
        # Once all pages are where they should be, the next mover wants them elsewhere: each has something to do.
        mover = forked(partial(move, folder, *PLANS[ends[0] % len(PLANS)]))
        time.sleep(chance.uniform(0.01, 0.15))
        os.kill(mover, signal.SIGKILL)
        ends[os.waitstatus_to_exitcode(os.waitpid(mover, 0)[1])] += 1
    for plan in (PLANS[0], (3, "site")):  # the first may only finish what was begun
        last = forked(partial(move, folder, *plan))
        ends[os.waitstatus_to_exitcode(os.waitpid(last, 0)[1])] += 1
    (folder / "stop").touch()
    code = os.waitstatus_to_exitcode(os.waitpid(visitor, 0)[1])
    print(json.dumps({"visitor": code, "movers": dict(ends)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
