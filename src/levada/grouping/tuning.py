"""Which numbers does levelled grouping run on? Fixed once, on other seeds and skews than are reported."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Tuning"]


class Tuning(NamedTuple):
    """Nothing here depends on the stream: loads are relative to their mean, time is counted in records."""

    window: float = 500.0  # records per worker after which a load counts for 1/e
    turn: float = 2.0  # records per worker between two settlings of the levels, and 128 at least
    gain: float = 2.0  # how much a level rises per window that a worker is twice as loaded as it should be
    calm: float = 0.25  # how much of that where all of the stream is hot keys, whose steps are small
    surety: float = 3.0  # standard errors from which an excess counts in full
    touch: float = 0.05  # how much of the excess of this window is in the level at once
    press: float = 1000.0  # how many times as much of it a key sees that makes the levels
    sway: float = 0.25  # share of the stream from which a key makes the levels
    hot: float = 1.0  # share of one worker's load from which a key is hot
    ease: float = 0.3  # length of a hot key's steps, times what it is worth in workers
    run: float = 1.0  # records that a hot key sends in a row, per worker that it is worth
    reach: float = 6.0  # workers beyond the first three that a hot key looks at, per worker that it is worth
    heads: float = 16.0  # keys that are counted, per worker, and 64 more

    def records_per_turn(self, workers: int) -> int:
        return max(128, int(self.turn * workers))

    def records_per_window(self, workers: int) -> float:
        """At least as long as sixteen turns, so that one turn is a small part of it."""
        return max(self.window * workers, 16.0 * self.records_per_turn(workers))

    def most_heads(self, workers: int) -> int:
        return int(self.heads * workers) + 64
