"""Runs the scenario once per named point, is killed there, and checks what is left; prints how each run ended.

`python -m tests.store.kill_on_server DSN POINT...`. Run as a program of its own: it forks, which a test process
with threads must not.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing

from levada.store.postgresql import PostgresqlStore
from levada.testing.store.visits import links
from tests.faults import KillAt
from tests.invariants import check_invariants
from tests.schemas import Schemas
from tests.store.scenario import STORY_LIMITS, tell


def killed_at(point: str, dsn: str, schema: str) -> int:
    child = os.fork()
    if child == 0:
        try:
            tell(PostgresqlStore(dsn, schema=schema, limits=STORY_LIMITS, faults=KillAt(point)))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def check_that_it_goes_on(dsn: str, schema: str) -> None:
    with closing(PostgresqlStore(dsn, schema=schema, limits=STORY_LIMITS)) as store:
        check_invariants(store)
        tell(store)
        check_invariants(store)
        documents = [document.url for document in store.scan()]
        assert len(documents) == len(set(documents)) == store.stats(1e9).stored
        assert all(store.page(found.url) for found in links("a", 4))


def killed_and_gone_on(points: list[str], dsn: str) -> dict[str, int]:
    ends = {}
    with closing(Schemas(dsn)) as schemas:
        for point in points:
            schema = schemas.lend()
            ends[point] = killed_at(point, dsn, schema)
            check_that_it_goes_on(dsn, schema)
            schemas.take_back(schema)
    return ends


if __name__ == "__main__":
    print(json.dumps(killed_and_gone_on(sys.argv[2:], sys.argv[1])))
