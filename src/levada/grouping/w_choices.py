"""Hot keys may go to every worker, all others to two (W-Choices).

Source: Nasir et al., "When Two Choices Are not Enough" (ICDE 2016).
"""

from __future__ import annotations

from levada.grouping.d_choices import DChoicesGrouping

__all__ = ["WChoicesGrouping"]


class WChoicesGrouping(DChoicesGrouping):
    """D-Choices with as many choices as there are workers."""

    solves = False
