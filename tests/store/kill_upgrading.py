"""Upgrades a folder of format 6 once per point, is killed there, and goes on; prints how each run ended.

`python -m tests.store.kill_upgrading FOLDER`. Run as a program of its own: it forks, which a test process with
threads must not.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from levada.core.folder import DataFolder
from levada.store.migrations import steps, upgrading
from tests.faults import UPGRADE_POINTS, KillAt
from tests.store.older_stores import SQLITE_COUNTING, older_folder

BATCH = 7


def killed_at(point: str, nth: int, folder: Path) -> int:
    child = os.fork()
    if child == 0:
        try:
            upgrading.upgrade_stores(DataFolder(folder), faults=KillAt(point, nth), batch=BATCH)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main(root: Path) -> dict[str, int]:
    steps.SQLITE_STEPS = SQLITE_COUNTING
    older = older_folder(root / "older")
    ends = {}
    for point in UPGRADE_POINTS:
        for nth in (1, 3) if point.startswith("backfill") else (1,):
            name = f"{point}-{nth}"
            shutil.copytree(older, root / name)
            ends[name] = killed_at(point, nth, root / name)
            upgrading.upgrade_stores(DataFolder(root / name), batch=BATCH)
    return ends


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
