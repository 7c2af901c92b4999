"""What can go wrong in a load, beside wrong usage?

```
LevadaError
├── Away            a server cannot be reached: tried again for a while, `levada load resume` later
├── LostGround      the snapshot, or what was written, is gone: begun again under a new generation
├── LeaseLost       another instance has the task: it is left to it
└── Refused
    └── LoadEnded   cancelled, failed or replaced by others
```
`StoreFull` and whatever else is a `LevadaError` ends the load as failed, with its words as the reason.
"""

from __future__ import annotations

from levada.errors import LevadaError, Refused

__all__ = ["Away", "LeaseLost", "LoadEnded", "LostGround"]


class Away(LevadaError):
    """A source, a task book or a target cannot be reached."""


class LeaseLost(LevadaError):
    """Another instance has this task by now."""


class LostGround(LevadaError):
    """What was written, or the snapshot that was read, is no longer there: the load must begin again."""


class LoadEnded(Refused):
    """The load was cancelled, failed or replaced while we worked on it."""
