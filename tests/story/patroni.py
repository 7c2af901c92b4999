"""Failovers under load, by `make test-patroni`: a primary that is killed, switched over, or cut off.

Two workers visit pages without end, and a reader asks without end, by an address that names all three servers. Each
goes on by itself. What a worker was told is stored is stored once, whichever server was the primary then.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from levada.core.errors import StoreError
from levada.core.records import FoundUrl
from levada.store.base import StoreLimits
from levada.store.postgresql import PostgresqlStore
from levada.testing.store.visits import first, links
from tests.invariants import check_invariants
from tests.servers.patroni import FAILOVER_SECONDS, Cluster, patroni

ROOT = Path(__file__).parents[2]
READING = StoreLimits(statement_seconds=2.5)
CRAWLING = StoreLimits(statement_seconds=5.0, away_seconds=120.0)
SITES = 20
GRACE = 10.0  # seconds after the failover itself


def work(dsn: str, schema: str, seed: int) -> None:
    """Visit pages until the standard input ends; print each batch that was stored."""
    chance = random.Random(seed)
    ending = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        ending.set()

    threading.Thread(target=listen, daemon=True).start()
    with closing(PostgresqlStore(dsn, schema=schema, limits=CRAWLING)) as store:
        while not ending.is_set():
            leases = store.lease(1.0, 10, 600.0)
            visits = []
            for lease in leases:
                names = [(chance.randrange(SITES), chance.randrange(1 << 40)) for _ in range(3)]
                found = tuple(FoundUrl(f"http://s{site}/{page}", f"s{site}") for site, page in names)
                visits.append(first(lease, 1.0, lease.page.url, found, interval=1e9))
            kept = store.commit(visits)
            told = [lease.page.url for lease, is_kept in zip(leases, kept, strict=True) if is_kept]
            print(json.dumps([time.time(), told]), flush=True)


class Reader(threading.Thread):
    """Asks without end, and notes when it was answered, and how long an answer took."""

    def __init__(self, dsn: str, schema: str) -> None:
        super().__init__(daemon=True)
        self._where = (dsn, schema)
        self.ended = False
        self.answered: list[float] = []
        self.longest = 0.0

    def run(self) -> None:
        dsn, schema = self._where
        with closing(PostgresqlStore.open_reader(dsn, schema=schema, limits=READING)) as store:
            while not self.ended:
                began = time.time()
                try:
                    store.page("http://s0/0")
                except StoreError:
                    time.sleep(0.05)
                else:
                    self.answered.append(time.time())
                self.longest = max(self.longest, time.time() - began)
                time.sleep(0.02)


def kill(cluster: Cluster) -> Callable[[], None]:
    primary = cluster.primary()
    primary.end()
    return primary.start


def switch_over(cluster: Cluster) -> Callable[[], None]:
    cluster.switch_over()
    return lambda: None


def cut_off(cluster: Cluster) -> Callable[[], None]:
    primary = cluster.primary()
    primary.send(signal.SIGSTOP)
    return lambda: primary.send(signal.SIGCONT)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with patroni(tmp_path_factory.mktemp("patroni")) as made:
        yield made


def longest_gap(times: list[float], until: float) -> float:
    return max(after - before for before, after in zip(times, [*times[1:], until], strict=True))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fail", [kill, switch_over, cut_off])
def test_crawl_and_serve_go_on_by_themselves(cluster: Cluster, fail: Callable[[Cluster], Callable[[], None]]) -> None:
    schema = f"under load {fail.__name__}"
    cluster.wait_until_synchronous()
    with closing(PostgresqlStore(cluster.address, schema=schema)) as store:
        store.add([each for site in range(SITES) for each in links(f"s{site}", 50)], [], 0.0)
    command = [sys.executable, "-m", "tests.story.patroni", cluster.address, schema]
    workers = [
        subprocess.Popen([*command, str(seed)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for seed in range(2)
    ]
    reader = Reader(cluster.address, schema)
    reader.start()
    said: list[list[tuple[float, list[str]]]] = [[], []]

    def hear(number: int) -> None:
        stdout = workers[number].stdout
        assert stdout is not None
        with stdout:
            said[number].extend((at, urls) for at, urls in map(json.loads, stdout))

    hearing = [threading.Thread(target=hear, args=(number,)) for number in range(2)]
    for each in hearing:
        each.start()
    while not all(len(each) > 3 for each in said):  # starting is no matter here
        assert [worker.poll() for worker in workers] == [None, None]
        time.sleep(0.1)
    mend = fail(cluster)
    failed_at = time.time()
    time.sleep(FAILOVER_SECONDS + GRACE + 4.0)
    mend()
    time.sleep(4.0)
    reader.ended = True
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.close()
    for each in hearing:
        each.join(60.0)
    assert [worker.wait(60.0) for worker in workers] == [0, 0]
    reader.join(60.0)
    ended = time.time()
    gaps = [longest_gap([at for at, urls in each if urls], ended) for each in said]
    read_gap = longest_gap(reader.answered, ended)
    visited = [url for each in said for _, urls in each for url in urls]
    print(
        f"{fail.__name__}: {len(visited)} visits; none for {max(gaps):.1f} s, no answer for {read_gap:.1f} s, "
        f"the longest wait for one {reader.longest:.1f} s; {ended - failed_at:.0f} s in all"
    )
    assert max(gaps) <= FAILOVER_SECONDS + GRACE
    assert read_gap <= FAILOVER_SECONDS + GRACE
    with closing(PostgresqlStore(cluster.primary().address, schema=schema, limits=CRAWLING)) as store:
        stored = {change.url for change in store.changes(0, 1_000_000)}
        assert len(visited) == len(set(visited)), "no visit was told twice"
        assert set(visited) == stored, "what was told is what is stored"
        assert all(len(store.versions(url)) == 1 for url in visited)
        check_invariants(store)


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
