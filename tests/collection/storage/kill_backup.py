"""Backs up and restores once per point, is killed there, and does it again; prints how each run ended.

`python -m tests.collection.storage.kill_backup FOLDER`. Run as a program of its own: it forks, which a test process
with threads must not.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from levada.collection.storage.backup import back_up
from levada.collection.storage.restore import restore
from levada.core.folder import DataFolder
from tests.collection.storage.told import told_collection
from tests.faults import BACKUP_POINTS, RESTORE_POINTS, KillAt


def killed(run: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        try:
            run()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main(root: Path) -> dict[str, int]:
    told_collection(root / "told")
    ends = {}
    for point in BACKUP_POINTS:
        here = root / point
        shutil.copytree(root / "told", here / "news")
        news, target = DataFolder(here / "news"), here / "news.backup"
        ends[point] = killed(lambda: back_up(news, target, faults=KillAt(point)))  # noqa: B023 -- called at once
        back_up(news, target, force=True)
        restore(target, here / "copy")
        restore(target, here / "again")
    back_up(DataFolder(root / "told"), root / "told.backup")
    for point in RESTORE_POINTS:
        here = root / point
        shutil.copytree(root / "told", here / "news")
        ends[point] = killed(
            lambda: restore(root / "told.backup", here / "news", force=True, faults=KillAt(point))  # noqa: B023
        )
        restore(root / "told.backup", here / "news", force=True)
    return ends


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
