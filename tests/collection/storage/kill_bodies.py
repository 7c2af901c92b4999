"""Kills a move of bodies at each of its points, and runs it again; prints how each ended.

Run as a program of its own: it forks, which a test process with threads must not.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from levada.collection.storage.bodies import ROWS, move_bodies
from levada.core.folder import DataFolder
from levada.core.protocols import Faults
from tests.collection.storage.told import everything, told_collection
from tests.faults import KillAt

__all__ = ["MOVES"]

MOVES = {
    "out": ("", "other", ("move-bodies.put", "move-bodies.replaced")),
    "across": ("bodies", "other", ("move-bodies.copied", "move-bodies.placed")),
    "in": ("bodies", ROWS, ("move-bodies.replaced", "move-bodies.placed")),
}


def address(folder: Path, name: str) -> str:
    return name if name in ("", ROWS) else f"file://{folder}/{name}"


def killed(folder: Path, start: str, target: str, point: str) -> int:
    """How the killed move ended. What can be read is the same before it, after it, and after the next one."""
    folder.mkdir(parents=True)
    news = told_collection(folder / "news", bodies=address(folder, start))
    before = everything(news)
    child = os.fork()
    if child == 0:
        try:
            move(news, address(folder, target), KillAt(point))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert everything(news) == before
    move(news, address(folder, target), None)
    assert everything(news) == before
    for name in {start} - {""}:
        shutil.rmtree(folder / name)  # nothing is needed of the old copy
    assert everything(news) == before
    return os.waitstatus_to_exitcode(status)


def move(news: DataFolder, target: str, faults: Faults | None) -> None:
    move_bodies(news, target, faults=faults)


if __name__ == "__main__":
    print(
        json.dumps(
            {
                f"{name} {point}": killed(Path(sys.argv[1]) / name / point, start, target, point)
                for name, (start, target, points) in MOVES.items()
                for point in points
            }
        )
    )
