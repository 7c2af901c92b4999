"""Which rules are there, by name?"""

from __future__ import annotations

from collections.abc import Callable

from levada.freshness.cho import cho
from levada.freshness.ema import ema
from levada.freshness.fixed import fixed
from levada.freshness.nutch import nutch, nutch_22
from levada.freshness.real_time import real_time
from levada.freshness.rule import Rule
from levada.freshness.stormcrawler import stormcrawler

__all__ = ["RULES"]

RULES: dict[str, Callable[..., Rule]] = {
    "ema": ema,
    "real-time": real_time,
    "fixed": fixed,
    "nutch": nutch,
    "nutch-22": nutch_22,
    "stormcrawler": stormcrawler,
    "cho": cho,
}
"""Each takes `first`, `floor` and `ceiling` in seconds, `scale`, and what is its own."""
