"""Tells of changes by mail, is killed at each point in turn and goes on after it; prints how each run ended.

Run as a program of its own: it forks, which a test process with threads must not.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from levada.collection.notifications import Notifications, notification_runner
from levada.collection.view import CollectionView
from levada.core.errors import UsageError
from levada.core.protocols import Faults, Subscriptions
from levada.store.faults import NoFaults
from levada.store.subscriptions import SqliteSubscriptions
from tests.faults import NOTIFICATION_POINTS, KillAt


class FaultyView(CollectionView):
    """Writes to the file of subscriptions meet faults."""

    def __init__(self, path: Path, faults: Faults) -> None:
        super().__init__(path)
        self._book = SqliteSubscriptions(self.folder.hooks, faults=faults)

    def subscriptions(self, create: bool = False) -> Subscriptions:
        return self._book


def tell(data: Path, target: str, faults: Faults) -> None:
    """Set up a mail, pause and resume it, and send all that is due; the second message is refused once."""
    view = FaultyView(data, faults)
    notifications = Notifications(view)
    with suppress(UsageError):  # a run before this one was killed after it had added it
        notifications.add(target, name="me", from_beginning=True, most=2)
    notifications.pause("me")
    notifications.resume("me")
    for _ in range(3):
        asyncio.run(notification_runner(view, faults=faults).flush())


def ended(act: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(point: str, whole: Path, place: str) -> tuple[int, int]:
    """How the run that was killed ended, and the one after it."""
    data = shutil.copytree(whole, whole.with_name(f"at-{point}"))
    target = f"mailto://{place}/?to={point}@example.org"
    return ended(lambda: tell(data, target, KillAt(point))), ended(lambda: tell(data, target, NoFaults()))


if __name__ == "__main__":
    folder, place = Path(sys.argv[1]), sys.argv[2]
    print(json.dumps({point: killed_at(point, folder, place) for point in NOTIFICATION_POINTS}))
