"""What is a world? Pages that change at known times, so that every decision can be judged by the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Booleans", "Floats", "Integers", "Visits", "World", "build_world"]

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """`pages` pages from 0 to `horizon` seconds; what happens after a page's end counts for nothing."""

    name: str
    horizon: float
    offsets: Integers  # the changes of page i are times[offsets[i]:offsets[i + 1]]
    times: Floats  # strictly increasing within a page, after it begins and not after it ends
    begins: Floats  # when a page is first there: every policy's first visit
    ends: Floats  # when it is gone; the horizon if never
    sites: Integers
    rates: Floats  # [page, segment]: true mean changes per second in each of equal segments of the horizon

    @property
    def pages(self) -> int:
        return len(self.begins)

    def changes_of(self, page: int) -> Floats:
        return self.times[self.offsets[page] : self.offsets[page + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """Every fetch that a policy made, in order of time; first visits are among them."""

    page: Integers
    at: Floats

    def __len__(self) -> int:
        return len(self.at)


def build_world(
    name: str,
    horizon: float,
    changes: tuple[Integers, Floats],
    sites: Integers,
    *,
    begins: Floats | None = None,
    ends: Floats | None = None,
    rates: Floats | None = None,
) -> World:
    """From (page, time) pairs in any order; what lies outside a page's life, and a second change at the same
    moment, is dropped. Without `rates` they are what happened: changes per second of life."""
    n = len(sites)
    begins = np.zeros(n) if begins is None else begins
    ends = np.full(n, horizon) if ends is None else np.minimum(ends, horizon)
    page, at = changes
    alive = (at > begins[page]) & (at <= ends[page])
    page, at = page[alive], at[alive]
    order = np.lexsort((at, page))
    page, at = page[order], at[order]
    if len(at):
        again = (page[1:] == page[:-1]) & (at[1:] == at[:-1])
        kept = np.concatenate(([True], ~again))
        page, at = page[kept], at[kept]
    counts = np.bincount(page, minlength=n)
    if rates is None:
        rates = (counts / np.maximum(ends - begins, 1.0)).reshape(n, 1)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return World(name, horizon, offsets, at, begins, ends, sites.astype(np.int64), rates)
