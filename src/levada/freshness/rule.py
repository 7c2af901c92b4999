"""What is a rule of revisiting? A step from what a visit met to the seconds until the next one.

A rule is plain arithmetic over a short row of floats that it keeps per page, so that one and the same function
runs in the crawler as it stands and, compiled, in the laboratory over millions of visits.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence

import msgspec

__all__ = ["Rule", "Step"]

Step = Callable[[MutableSequence[float], Sequence[float], float, int], float]
"""`step(memory, parameters, elapsed, outcome)`, called at each visit that compared content: seconds since the one
before, and 0 for the first visit, 1 for unchanged, 2 for changed. It rewrites `memory` (zeros before the first
visit) in place and returns the seconds until the next visit. Nothing but floats, loops and `math`: it is compiled
by the laboratory."""


class Rule(msgspec.Struct, frozen=True):
    """A named rule with its parameters; `width` floats of memory per page."""

    name: str
    step: Step
    width: int
    parameters: tuple[float, ...] = ()
