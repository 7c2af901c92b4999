"""How sure are we that a stored page is still current?

A page that was seen to change `c` times over `t` seconds of visits is believed to change at rate `(c + 1/2) / (t + T)`,
`T` being one prior interval; the chance that it has not changed for `a` seconds is `exp(-rate * a)`. `BeliefSample`
keeps that for an unbiased sample of the pages, so that the share believed current costs the same at ten million.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from zlib import crc32

from levada.records import Outcome, Visit

__all__ = ["BeliefSample", "believed_rate"]


def believed_rate(history: Sequence[Visit], prior_seconds: float = 86_400.0) -> float:
    """Changes per second, from visits that compared content, oldest first."""
    if not history:
        return 0.5 / prior_seconds
    changes = sum(visit.outcome is Outcome.CHANGED for visit in history)
    return (changes + 0.5) / (max(0.0, history[-1].at - history[0].at) + prior_seconds)


class BeliefSample:
    """The share of stored pages that are believed to be current, from at most `size` pages picked by their hash."""

    def __init__(self, size: int = 2_000) -> None:
        self._size = size
        self._one_in = 1
        self._pages: dict[str, tuple[float, float]] = {}

    def seen(self, url: str, history: Sequence[Visit]) -> None:
        if crc32(url.encode()) % self._one_in == 0 and history:
            self._pages[url] = (believed_rate(history), history[-1].at)
            if len(self._pages) > self._size:
                self._thin_out()

    def gone(self, url: str) -> None:
        self._pages.pop(url, None)

    def share(self, now: float) -> float | None:
        if not self._pages:
            return None
        current = sum(exp(-rate * max(0.0, now - at)) for rate, at in self._pages.values())
        return current / len(self._pages)

    def _thin_out(self) -> None:
        self._one_in *= 2
        self._pages = {url: belief for url, belief in self._pages.items() if crc32(url.encode()) % self._one_in == 0}
