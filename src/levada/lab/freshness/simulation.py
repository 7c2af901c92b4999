"""What would this policy have done in this world, with so many fetches?"""

from __future__ import annotations

from levada.errors import UsageError
from levada.freshness.rules import RULES
from levada.lab.freshness.following import follow, follow_within
from levada.lab.freshness.knowing import know
from levada.lab.freshness.learning import learn
from levada.lab.freshness.world import Visits, World

__all__ = ["POLICIES", "simulate"]

POLICIES = (*RULES, "oracle", "learned")


def simulate(world: World, policy: str, *, fetches: int | None = None, seed: int = 0) -> Visits:
    """Without a number of fetches a rule makes as many as it asks for; the oracle and ours need one."""
    if policy not in POLICIES:
        raise UsageError(f"no policy is called {policy!r}; there are {', '.join(POLICIES)}")
    if policy in RULES:
        rule = RULES[policy]()
        return follow(world, rule) if fetches is None else follow_within(world, rule, fetches)
    if fetches is None:
        raise UsageError(f"{policy} spends a budget: say how many fetches")
    return know(world, fetches) if policy == "oracle" else learn(world, fetches)
