"""Which of two candidates has this sender sent less to, by the array?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from levada.compiling import kernel

if TYPE_CHECKING:
    from levada.grouping.keys import Workers

__all__ = ["less_loaded"]


@kernel
def less_loaded(one: Workers, other: Workers, sent: Workers) -> Workers:
    """Counts in `sent` on the way; its counts go on from call to call."""
    chosen = np.empty(len(one), np.int64)
    for place in range(len(one)):
        worker = other[place] if sent[one[place]] > sent[other[place]] else one[place]
        sent[worker] += 1
        chosen[place] = worker
    return chosen
