"""WHEN do we come back to this page?

Pure: what was seen in, seconds until the next visit out.
"""

from levada.freshness.belief import BeliefSample
from levada.freshness.ema import EmaRevisit
from levada.freshness.fixed import FixedRevisit

__all__ = ["BeliefSample", "EmaRevisit", "FixedRevisit"]
