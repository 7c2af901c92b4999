"""Worlds small enough to compute by hand, and visits that need no policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.lab.freshness.worlds import LabWorld, Visits, build_world

__all__ = ["in_turn", "visits_of", "world_of"]


def world_of(
    *pages: Sequence[float],
    horizon: float = 100.0,
    begins: Sequence[float] | None = None,
    ends: Sequence[float] | None = None,
) -> LabWorld:
    """One list of change times per page."""
    page = np.repeat(np.arange(len(pages)), [len(times) for times in pages])
    at = np.array([time for times in pages for time in times], float)
    return build_world(
        "small",
        horizon,
        (page, at),
        np.zeros(len(pages), np.int64),
        begins=None if begins is None else np.array(begins, float),
        ends=None if ends is None else np.array(ends, float),
    )


def visits_of(*visits: tuple[int, float]) -> Visits:
    """(page, time), put in order of time."""
    order = sorted(visits, key=lambda visit: visit[1])
    page = np.array([page for page, _ in order], np.int64)
    return Visits(page, np.array([at for _, at in order], float))


def in_turn(world: LabWorld, rounds: int) -> Visits:
    """Every page at each round, and at its begin."""
    step = world.horizon / rounds
    visits = [(page, float(begin)) for page, begin in enumerate(world.begins)]
    for page, begin in enumerate(world.begins):
        visits += [(page, turn * step) for turn in range(rounds) if turn * step > begin]
    return visits_of(*visits)
