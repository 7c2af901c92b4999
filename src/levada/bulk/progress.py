"""How fast is a load, and when will it be done?"""

from __future__ import annotations

from typing import NamedTuple

from levada.bulk.tasks import LoadState, Standing

__all__ = ["Progress", "progress_of"]


class Progress(NamedTuple):
    share: float  # of the tasks that are known by now
    rows_per_second: float  # since the load began, by all instances
    seconds_left: float | None  # of a load that runs


def progress_of(standing: Standing) -> Progress:
    """Tasks hold about as many rows each, so tasks say how far it is; rows say how fast."""
    done = standing.done.tasks
    known = done + standing.waiting + standing.leased
    ended = standing.now if standing.record.ended_at is None else standing.record.ended_at
    elapsed = max(ended - standing.record.started_at, 1e-6)
    share = done / known if known else 1.0
    running = standing.record.state is LoadState.RUNNING
    left = elapsed * (1.0 - share) / share if done and running else None
    return Progress(share, standing.done.rows / elapsed, left)
