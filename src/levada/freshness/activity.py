"""Activity: how much more pages change at present than their rates say.

Pages of a collection often change together: terms of service before a law takes effect, every page of a site with its
new design. No rate of a page foretells that. So each visit compares how likely a change was thought to be with what it
found, and the ratio of recent changes to expected ones corrects what is said of the pages that were not visited since.
Plans do not use it: a burst of changes is over when most visits could come.

Pages that change often are visited often, but most pages that are out of date are of those that are visited seldom.
So a visit counts as long as the page had waited for it: then each page counts the same.
"""

from __future__ import annotations

import math

# Tuned on four years of histories (levada.lab/data/SOURCE.md) before the one that is reported, at 20 and 40 visits a
# year; half or twice as much makes little difference.
_RECENT = 0.3  # visits per page over which the changes are counted
_EXPECTED_BEFORE = 5.0  # the prior: as many changes as expected
_LONGEST = 5.0  # a visit counts for at most so many average ones
_MOST = 4.0  # times as many changes as expected, or as few
_FEWEST_PAGES = 20


class Activity:
    """The changes that recent visits found, beside those that were expected."""

    def __init__(self) -> None:
        self._visits = self._elapsed = 0.0
        self._expected = self._changed = _EXPECTED_BEFORE

    def add(self, expected: float, changed: float, elapsed: float, pages: int) -> None:
        """Count a visit, `elapsed` seconds after the one before; `expected` is how likely a change was.

        `changed` is 1 if it found one, less if that may be noise. `pages` are visited in all.
        """
        keep = math.exp(-1.0 / (_RECENT * max(_FEWEST_PAGES, pages)))
        self._visits = keep * self._visits + 1.0
        self._elapsed = keep * self._elapsed + elapsed
        weight = min(elapsed * self._visits / self._elapsed, _LONGEST)
        self._expected = keep * self._expected + (1.0 - keep) * _EXPECTED_BEFORE + weight * expected
        self._changed = keep * self._changed + (1.0 - keep) * _EXPECTED_BEFORE + weight * changed

    @property
    def ratio(self) -> float:
        """By how much the rates are to be multiplied."""
        return min(max(self._changed / self._expected, 1.0 / _MOST), _MOST)
