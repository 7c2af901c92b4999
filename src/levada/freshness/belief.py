"""How sure are we that a stored page is still current?

A page that was seen to change `c` times over `t` seconds of visits is believed to change at rate `(c + 1/2) /
(t + 1 / (2 r))`, where `r` is the rate of all pages together: what is known of the others speaks for a page
until it speaks for itself. The chance that it has not changed for `a` seconds is `exp(-rate * a)`.
`BeliefSample` keeps that for an unbiased sample of the pages, so that the share believed current costs the same
at ten million.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from zlib import crc32

from levada.records import Outcome, Visit

__all__ = ["BeliefSample"]

_PRIOR_SECONDS = 86_400.0  # of one half change, until anything was seen


class BeliefSample:
    """The share of stored pages that are believed to be current, from at most `size` pages picked by their hash."""

    def __init__(self, size: int = 2_000) -> None:
        self._size = size
        self._one_in = 1
        self._pages: dict[str, tuple[int, float, float]] = {}  # changes seen, seconds watched, last visit

    def seen(self, url: str, history: Sequence[Visit]) -> None:
        """Visits that compared content, oldest first."""
        if not history or crc32(url.encode()) % self._one_in:
            return
        changes = sum(visit.outcome is Outcome.CHANGED for visit in history)
        self._pages[url] = (changes, max(0.0, history[-1].at - history[0].at), history[-1].at)
        if len(self._pages) > self._size:
            self._thin_out()

    def gone(self, url: str) -> None:
        self._pages.pop(url, None)

    def share(self, now: float) -> float | None:
        if not self._pages:
            return None
        pooled = (sum(changes for changes, _, _ in self._pages.values()) + 0.5) / (
            sum(watched for _, watched, _ in self._pages.values()) + _PRIOR_SECONDS
        )
        current = 0.0
        for changes, watched, at in self._pages.values():
            rate = (changes + 0.5) / (watched + 0.5 / pooled)
            current += exp(-rate * max(0.0, now - at))
        return current / len(self._pages)

    def _thin_out(self) -> None:
        self._one_in *= 2
        self._pages = {
            url: belief for url, belief in self._pages.items() if crc32(url.encode()) % self._one_in == 0
        }
