"""Nodes of OpenSearch are killed while pages are indexed and searched. `make test-opensearch` has three of them.

With one node everything waits until it is back; with three nobody notices. Of two, one decides for both: without it
the other only answers searches, so here it is the other one that dies.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from levada.core.errors import IndexAway
from levada.core.protocols import Documents
from levada.core.records import Change
from levada.core.search_records import Query
from levada.follow.index import catch_up
from levada.search.opensearch.index import OpenSearchIndex
from levada.testing.index import change
from tests.needs import missing
from tests.servers.opensearch import Cluster, Server

NODES = int(os.environ.get("OPENSEARCH_NODES", "1"))
PAGES = 100 if NODES == 1 else 400 * NODES
BATCH = 20
SECONDS = 120.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    if not Server.installed():
        missing("opensearch is not installed: run tests/servers/install.sh as root, or install Java and Maven yourself")
    nodes = Cluster(tmp_path / "nodes", NODES)
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.stop()


class Log:
    """A change log of pages, each of which is changed once more, that says how far it was read."""

    def __init__(self) -> None:
        first = [change(n, "ferry one", seq=n, site=f"s{n % 7}.org") for n in range(1, PAGES + 1)]
        again = [change(n, "ferry two", seq=PAGES + n, site=f"s{n % 7}.org") for n in range(1, PAGES + 1)]
        self.all = [*first, *again]
        self.reached = {share: threading.Event() for share in (1, 2)}

    def changes(self, after: int, limit: int) -> Sequence[Change]:
        for share, reached in self.reached.items():
            if after >= share * len(self.all) // 3:
                reached.set()
        return self.all[after : after + limit]


class Worker(threading.Thread):
    """Does something again and again, however often the servers are away."""

    def __init__(self, index: OpenSearchIndex) -> None:
        super().__init__()
        self._index = index
        self.ending = threading.Event()
        self.done = 0
        self.away: list[str] = []
        self.trouble: BaseException | None = None

    def once(self, index: OpenSearchIndex) -> None:
        raise NotImplementedError

    def run(self) -> None:
        while not self.ending.is_set():
            try:
                self.once(self._index)
                self.done += 1
            except IndexAway as error:
                self.away.append(str(error))
                self.ending.wait(0.2)
            except BaseException as error:
                self.trouble = error
                return

    def end(self) -> None:
        self.ending.set()
        self.join(SECONDS)
        if self.trouble is not None:
            raise self.trouble


class Indexing(Worker):
    def __init__(self, index: OpenSearchIndex, log: Log) -> None:
        super().__init__(index)
        self._log = log

    def once(self, index: OpenSearchIndex) -> None:
        catch_up(cast(Documents, self._log), index, BATCH)
        if index.position() == len(self._log.all):
            self.ending.set()


class Searching(Worker):
    def once(self, index: OpenSearchIndex) -> None:
        index.search(Query("ferry"))
        self.ending.wait(0.05)  # a search now and then: the machine has to index as well


def test_a_killed_node_loses_no_page_and_doubles_none(cluster: Cluster, tmp_path: Path) -> None:
    options = {"hosts": cluster.addresses, "seconds": 10.0, "replicas": 2}

    def opened() -> OpenSearchIndex:
        return OpenSearchIndex(options, path=tmp_path, writer=True)

    log = Log()
    with closing(opened()) as written, closing(opened()) as read:
        indexing, searching = Indexing(written, log), Searching(read)
        indexing.start()
        searching.start()
        for share in (1, 2) if NODES > 1 else (1,):
            assert log.reached[share].wait(SECONDS), indexing.trouble
            _wait_until_green(written)
            victim = share % NODES if NODES != 2 else 1 - _manager(written)
            cluster.kill(victim)
            cluster.revive(victim)
        assert indexing.ending.wait(SECONDS), "not everything was indexed"
        indexing.end()
        searching.end()
        assert searching.done
        if NODES > 1:
            assert searching.away == [], "another node has the same pages"
        _wait_until_green(written)
        assert written.position() == len(log.all)
        assert read.search(Query("ferry")).total == read.search(Query("two")).total == PAGES
        assert read.search(Query("one")).total == 0
        found = [hit.url for hit in read.search(Query("-nothing", limit=PAGES)).hits]
        assert len(found) == len(set(found)) == PAGES


def _wait_until_green(index: OpenSearchIndex) -> None:
    """Until each page is on as many nodes as it can be."""
    wanted = {"wait_for_status": "green", "wait_for_nodes": str(NODES)}
    index.connection.client().cluster.health(params=wanted, request_timeout=SECONDS)


def _manager(index: OpenSearchIndex) -> int:
    """The number of the node that decides where the parts of indexes are."""
    (found,) = index.connection.client().cat.cluster_manager(format="json")
    return int(found["node"].rpartition("-")[2])
