"""What can be seen of a live stage: its queue, its workers, and what these tell of themselves."""

from __future__ import annotations

import msgspec

__all__ = ["CrewLook", "QueueLook", "WorkLook"]


class QueueLook(msgspec.Struct, frozen=True):
    """What any broker tells of a queue. Jobs that were handed out and are not yet done do not wait."""

    waiting: float
    consumers: float = 0


class CrewLook(msgspec.Struct, frozen=True):
    """Workers as whoever runs them counts."""

    on: int  # told to run, those that are still starting too
    stopping: int = 0  # told to stop, and still busy with a last job
    starting: int = 0


class WorkLook(msgspec.Struct, frozen=True):
    """Jobs as the workers themselves tell, all of a stage together; counts run from the beginning."""

    busy: int
    taken: int
    done: int
    workers: int = 0  # that tell
