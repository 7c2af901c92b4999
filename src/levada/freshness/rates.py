"""How fast does this page change? What each visit says for and against each thinkable rate.

A page's evidence is one number per rate: the logarithm of how well that rate explains what its visits met, up to a
constant. A visit after `t` seconds that met no change says `exp(-rate t)`, one that met one `1 - exp(-rate t)`.
Earlier visits are forgotten little by little, because pages change their habits.

If the server also tells when the page was last modified, and tells it truly, the visit says more: no change for
`age` seconds, and one just before, `rate exp(-rate age)`. How far it is believed is the site's `trust`.

All functions work on plain rows of floats in place, so that the laboratory can compile them.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

__all__ = ["RATES", "chance_unchanged", "observe", "observe_first", "posterior"]

_FASTEST, _SLOWEST = 1 / 240.0, 1 / (120 * 86400.0)  # one change in four minutes, one in four months
_MANY = 15
# Zero, and rates at equal ratios: enough to tell a page that changes twice as often from another.
RATES: tuple[float, ...] = (
    0.0,
    *(_SLOWEST * (_FASTEST / _SLOWEST) ** (step / (_MANY - 1)) for step in range(_MANY)),
)

_LEAST_CHANCE = 1e-8  # that a page is met in a state that cannot be: nothing is ever ruled out
_WORST = -40.0
_MADE_UP = math.log(10 * 365.0 * 1440.0)


def observe(
    evidence: MutableSequence[float],
    rates: Sequence[float],
    elapsed: float,
    changed: bool,
    keep: float,
    age: float,
    trust: float,
    noise: float,
) -> None:
    """Take in one visit, `elapsed` seconds after the one before; `keep` is the share of the past that is kept.

    `age` is how long ago the server says that the page was last modified, negative if it does not say. `noise` is
    the chance that the page looks changed like this without having changed.
    """
    dated = changed and 0.0 <= age <= elapsed
    for k in range(len(rates)):
        rate = rates[k]
        still = math.exp(-rate * elapsed)
        said = still
        if changed:
            said = 1.0 - still * (1.0 - noise)
        if dated:  # both as densities of the moment told
            said = trust * rate * elapsed * math.exp(-rate * age) + (1.0 - trust) * said
        evidence[k] = keep * evidence[k] + math.log(max(said, _LEAST_CHANCE))
    _level(evidence)


def observe_first(evidence: MutableSequence[float], rates: Sequence[float], age: float, trust: float) -> None:
    """Take in what the server told at the first visit: the page was last modified `age` seconds ago.

    Who makes up dates may tell any, from a minute to ten years, each decade as likely. A page that never changes
    was made at some time: it counts like the slowest of those that do.
    """
    for k in range(len(rates)):
        changes = max(rates[k], rates[1]) * age
        told = changes * math.exp(-changes)
        evidence[k] = math.log(max(trust * told + (1.0 - trust) / _MADE_UP, _LEAST_CHANCE))
    _level(evidence)


def _level(evidence: MutableSequence[float]) -> None:
    """The best explanation at 0, the worst at a level from which it can come back."""
    best = evidence[0]
    for k in range(len(evidence)):
        best = max(best, evidence[k])
    for k in range(len(evidence)):
        evidence[k] = max(evidence[k] - best, _WORST)


def posterior(evidence: Sequence[float], prior: Sequence[float], belief: MutableSequence[float]) -> None:
    """Write into `belief` how likely each rate is, from a page's own evidence and what pages like it are like."""
    total = 0.0
    for k in range(len(prior)):
        belief[k] = prior[k] * math.exp(evidence[k])
        total += belief[k]
    for k in range(len(prior)):
        belief[k] /= total


def chance_unchanged(belief: Sequence[float], rates: Sequence[float], elapsed: float) -> float:
    """How likely it is that the page has not changed for `elapsed` seconds."""
    chance = 0.0
    for k in range(len(rates)):
        chance += belief[k] * math.exp(-rates[k] * elapsed)
    return chance
