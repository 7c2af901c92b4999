"""Fault injection: the points that every write of a store passes, and the faults that a test can inject there."""

from __future__ import annotations

import os
import signal

_STEPS = {
    "add": ("links", "sites"),
    "lease": ("lapse", "leases", "turns"),
    "settle": ("fence", "page", "version", "links", "near-runs", "sites"),
    "release": ("leases", "sites"),
    "forget": ("lapse",),
    "save-site": ("site",),
    "bring-forward": ("pages", "sites"),
    "limit-waits": ("pages", "sites"),
}
_MOVING_STEPS = {
    "receive": ("links", "sites"),
    "delivered": ("outbox",),
    "fence": ("pages",),
    "take-in": ("pages", "sites"),
    "let-go": ("pages", "sites"),
    "open-up": ("pages",),
}


def _points(steps_of: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(
        f"{operation}.{step}"
        for operation, steps in steps_of.items()
        for step in ("begin", "begun", *steps, "before-commit", "after-commit")
    )


WRITE_POINTS = _points(_STEPS)
"""Every point that a write passes, in order. `begin` is before BEGIN, `begun` after it."""
MOVING_POINTS = _points(_MOVING_STEPS)
"""The same points for what only shards do: delivering links and moving pages."""
TREND_POINTS = _points({"count": ("words", "frequencies", "news", "pages", "position")})
"""Every point that the commit of a round of term counts passes, in order."""
NOTIFICATION_POINTS = (
    *_points({"add": (), "edit": (), "take": ("position",), "compose": ("message",)}),
    *("send.before", "send.after"),
    *_points({"sent": ("message",), "failed": ("message",)}),
)
"""Every point that a notification passes on its way, in order."""

_FORGETTING_STEPS = {
    "bury": ("key", "marks"),
    "erase": ("pages", "sites", "departed"),
    "traces": ("pages",),
    "last-traces": ("departed", "outbox", "examples", "sites"),
}
_BETWEEN_STEPS = (
    *("begun", "buried", "erased", "deleted", "traced", "traces", "bodies", "sessions", "files"),
    *("counts", "index", "compacted"),
)
FORGET_POINTS = (
    *_points(_FORGETTING_STEPS),
    *(f"forgetting.{step}" for step in _BETWEEN_STEPS),
    *(f"compact.{step}" for step in ("begin", "vacuumed", "end")),
)
"""Every point that a forget passes: the writes of the store, between the steps, and the compaction."""

COPY_STEPS = ("begin", "step", "check", "before-rename", "after-rename")
UPGRADE_POINTS = tuple(f"keep.{step}" for step in COPY_STEPS) + _points(
    {"migrate": ("statements", "format"), "backfill": ("batch", "position"), "finish": ("format",)}
)
"""Every point that the upgrade of a SQLite store passes, in order: the backup first, then the migration."""

_RENAMING = ("before-rename", "after-rename")
BACKUP_POINTS = tuple(f"backup.{step}" for step in ("begin", "snapshot", "member", "manifest", "verified", *_RENAMING))
"""Every point that a backup passes, in order."""
PLACE_POINTS = ("place.before-rename", "place.aside", "place.after-rename")
RESTORE_POINTS = ("restore.begin", "restore.member", "restore.checked", *PLACE_POINTS)
"""Every point that a restore passes, in order, where a folder is moved aside."""
MOVE_FOLDER_POINTS = ("move.copied", "move.checked", "place.before-rename", "place.after-rename", "move.retired")
"""Every point that a move to another folder passes, in order."""
LOAD_POINTS = ("load.tables", "load.table", "load.before-commit", "load.after-commit")
MOVE_POINTS = ("move.before-placement", "move.placed", "move.put-aside")
"""Every point that a move to servers passes, in order, after those of filling a schema; and a move to files, after
`move.copied`."""


class FaultAt:
    """Raises `error` once, when `point` is reached for the `nth` time."""

    def __init__(self, point: str, error: Exception, nth: int = 1) -> None:
        self.point = point
        self.error = error
        self._left = nth

    def reach(self, point: str) -> None:
        if point == self.point:
            self._left -= 1
            if self._left == 0:
                raise self.error


class KillAt:
    """Kills this process, as `kill -9` does, when `point` is reached for the `nth` time."""

    def __init__(self, point: str, nth: int = 1) -> None:
        self.point = point
        self._left = nth

    def reach(self, point: str) -> None:
        if point == self.point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class PointLog:
    """Records every point that is reached."""

    def __init__(self) -> None:
        self.points: list[str] = []

    def reach(self, point: str) -> None:
        self.points.append(point)
