"""Pages and visits for tests of the policies."""

from __future__ import annotations

import math
from random import Random

from levada.freshness import LearnedRevisit, PageEstimates, Scale
from levada.testing.policy import a_page, visited

__all__ = ["CEILING", "DAY", "FLOOR", "HOUR", "a_page", "policy", "visited"]

HOUR, DAY = 3600.0, 86_400.0
FLOOR, CEILING = 300.0, 30 * DAY


def policy(size: int = 2_000, **budget: float) -> LearnedRevisit:
    return LearnedRevisit(PageEstimates(Scale.between(FLOOR, CEILING), size=size), **budget)


def changes_within(chance: Random, rate: float, seconds: float) -> bool:
    return chance.random() < -math.expm1(-rate * seconds)
