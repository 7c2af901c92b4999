"""What would this policy have done in this world, with so many fetches?"""

from __future__ import annotations

from levada.errors import UsageError
from levada.freshness.rules import RULES
from levada.lab.freshness.following import follow, follow_tuned, follow_within
from levada.lab.freshness.knowing import know
from levada.lab.freshness.learning import learn
from levada.lab.freshness.world import Visits, World

__all__ = ["POLICIES", "simulate"]

POLICIES = (*RULES, "oracle", "learned")
# What brings a rule to another number of fetches. The others correct any such setting away: they spend the fetches
# on the page that they want soonest, due or not.
_KNOBS = {"cho": "price", "stormcrawler": "scale"}


def simulate(world: World, policy: str, *, fetches: int | None = None, seed: int = 0) -> Visits:
    """Without a number of fetches a rule makes as many as it asks for; the oracle and ours need one."""
    if policy not in POLICIES:
        raise UsageError(f"no policy is called {policy!r}; there are {', '.join(POLICIES)}")
    if policy in RULES:
        if fetches is None:
            return follow(world, RULES[policy]())
        if policy in _KNOBS:
            return follow_tuned(world, lambda setting: RULES[policy](**{_KNOBS[policy]: setting}), fetches)
        return follow_within(world, RULES[policy](), fetches)
    if fetches is None:
        raise UsageError(f"{policy} spends a budget: say how many fetches")
    return know(world, fetches) if policy == "oracle" else learn(world, fetches)
