"""Moves a collection once per point, is killed there, checks what is left and moves again; prints how each run ended.

`python -m tests.collection.storage.kill_move FOLDER DSN`. Run as a program of its own: it forks, which a test process
with threads must not.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from levada.collection.storage.move import move_folder, move_stores
from levada.core.folder import DataFolder
from levada.core.protocols import Faults
from levada.store.opening import shard_places
from tests.collection.storage.kill_backup import killed
from tests.collection.storage.told import everything, told_collection
from tests.faults import LOAD_POINTS, MOVE_FOLDER_POINTS, MOVE_POINTS, KillAt


def main(root: Path, dsn: str) -> dict[str, int]:
    told = told_collection(root / "told")
    before = everything(told)
    ends = {}
    for point in (*LOAD_POINTS, *MOVE_POINTS):
        news = DataFolder(shutil.copytree(told.path, root / f"to-{point}"))
        ends[f"to-server {point}"] = _killed(lambda faults: move_stores(news, (dsn,), faults=faults), point)  # noqa: B023
        assert everything(news) == before, point
        move_stores(news, (dsn,))
        assert everything(news) == before, point
        assert all(place.server for place in shard_places(news)), point
    for point in ("move.copied", *MOVE_POINTS):
        news = DataFolder(shutil.copytree(told.path, root / f"back-{point}"))
        move_stores(news, (dsn,))
        ends[f"to-files {point}"] = _killed(lambda faults: move_stores(news, (), faults=faults), point)  # noqa: B023
        assert everything(news) == before, point
        move_stores(news, ())
        assert everything(news) == before, point
        assert not any(place.server for place in shard_places(news)), point
    for point in MOVE_FOLDER_POINTS:
        news = DataFolder(shutil.copytree(told.path, root / f"folder-{point}" / "news"))
        there = news.path.with_name("there")
        ends[f"to-folder {point}"] = _killed(lambda faults: move_folder(news, there, faults=faults), point)  # noqa: B023
        if not there.exists():
            move_folder(news, there)
        assert everything(DataFolder(there)) == before, point
    return ends


def _killed(move: Callable[[Faults], object], point: str) -> int:
    return killed(lambda: move(KillAt(point)))


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
