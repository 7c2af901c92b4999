"""Kills a process that writes bodies at each point of a commit; prints how each ended, and what it left.

Run as a program of its own: it forks, which a test process with threads must not.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path

from levada.store.sqlite import SqliteStore
from tests.faults import KillAt
from tests.store.bodies.places import folder_bodies, keys_in, keys_named, whole
from tests.store.scenario import STORY_LIMITS, tell

POINTS = (
    *("put.before", "put.after", "settle.begin", "settle.begun", "settle.fence", "settle.version", "settle.links"),
    *("settle.before-commit", "settle.after-commit"),
)


def killed_at(point: str, nth: int, folder: Path) -> tuple[int, int, int]:
    """How the process ended, how many versions are left, and how many objects that nothing names."""
    folder.mkdir()
    child = os.fork()
    if child == 0:
        try:
            fault = KillAt(point, nth)
            tell(
                SqliteStore(
                    folder / "pages.db",
                    limits=STORY_LIMITS,
                    faults=fault,
                    bodies=folder_bodies(folder / "bodies", fault if point.startswith("put") else None),
                )
            )
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    bodies = folder_bodies(folder / "bodies")
    versions = whole(folder / "pages.db", bodies)
    with closing(SqliteStore(folder / "pages.db", limits=STORY_LIMITS, bodies=bodies)) as store:
        orphans = len(keys_in(bodies) - keys_named(store))
        store.forget_leases()
        tell(store)  # the next run goes on
    assert whole(folder / "pages.db", bodies) >= versions
    return os.waitstatus_to_exitcode(status), versions, orphans


if __name__ == "__main__":
    print(
        json.dumps(
            {
                f"{point} {nth}": killed_at(point, nth, Path(sys.argv[1]) / f"{point}-{nth}")
                for point in POINTS
                for nth in ((1, 3) if point.startswith("put") else (1,))
            }
        )
    )
