"""Runs the scenario once per write point and is killed there; prints how each run ended.

Run as a program of its own: it forks, which a test process with threads must not.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from levada.store.sqlite import SqliteStore
from tests.faults import WRITE_POINTS, KillAt
from tests.store.scenario import STORY_LIMITS, tell


def killed_at(point: str, folder: Path) -> int:
    child = os.fork()
    if child == 0:
        try:
            tell(SqliteStore(folder / f"{point}.db", limits=STORY_LIMITS, faults=KillAt(point)))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    print(json.dumps({point: killed_at(point, Path(sys.argv[1])) for point in WRITE_POINTS}))
