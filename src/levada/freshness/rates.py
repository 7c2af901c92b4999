"""Change rate of a page: the likelihood of each rate, given its visits.

The evidence of a page is one number per rate: the logarithm of how well that rate explains its visits, up to a
constant. A visit after `t` seconds without a change has the likelihood `exp(-rate t)`, one with a change
`1 - exp(-rate t)`. Earlier visits are forgotten gradually, because pages change their habits.

A correct Last-Modified says more: no change for `age` seconds and one just before, `rate exp(-rate age)`. The
site's `trust` weights it.

That is the evidence of the plan: a young date brings the page forward, and the next visit shows whether it was right.
What is said about a page needs the cautious form of it, because a date may be that of the page and of no change.

All functions work on plain rows of floats in place, so that the laboratory can compile them.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

_FASTEST, _SLOWEST = 1 / 240.0, 1 / (120 * 86400.0)  # one change in four minutes, one in four months
_MANY = 15
# Zero, and rates at equal ratios: enough to distinguish pages whose rates differ by a factor of two.
RATES: tuple[float, ...] = (
    0.0,
    *(_SLOWEST * (_FASTEST / _SLOWEST) ** (step / (_MANY - 1)) for step in range(_MANY)),
)

_LEAST_CHANCE = 1e-8  # of an observation that a rate cannot explain: no rate is ever ruled out
WORST = -40.0  # the least evidence of a rate
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
    """Add one visit, `elapsed` seconds after the one before; `keep` is the share of the past evidence to keep.

    `age` is the seconds since the Last-Modified of the server, negative if there is none. `noise` is the
    probability that the page looks changed like this without a change.
    """
    dated = changed and 0.0 <= age <= elapsed
    for k in range(len(rates)):
        rate = rates[k]
        still = math.exp(-rate * elapsed)
        likely = still
        if changed:
            likely = 1.0 - still * (1.0 - noise)
        if dated:  # both as densities of the stated time
            likely = trust * rate * elapsed * math.exp(-rate * age) + (1.0 - trust) * likely
        evidence[k] = keep * evidence[k] + math.log(max(likely, _LEAST_CHANCE))
    _level(evidence)


def observe_first(evidence: MutableSequence[float], rates: Sequence[float], age: float, trust: float) -> None:
    """Add the Last-Modified of the first visit, `age` seconds ago.

    A false date is anything from a minute to ten years, evenly over the logarithm. A page that never changes was
    created at some time: it counts like the slowest page that changes.
    """
    for k in range(len(rates)):
        changes = max(rates[k], rates[1]) * age
        likely = changes * math.exp(-changes)
        evidence[k] = math.log(max(trust * likely + (1.0 - trust) / _MADE_UP, _LEAST_CHANCE))
    _level(evidence)


# So many of the true dates say only that nothing changed since, because the page was made or written anew then: of
# the first dates of pages, and of those that come with a change.
_MADE_THEN, _WRITTEN_ANEW = 0.3, 0.1


def observe_cautiously(
    evidence: MutableSequence[float],
    rates: Sequence[float],
    elapsed: float,
    keep: float,
    age: float,
    trust: float,
    noise: float,
) -> None:
    """Add one visit that found a change with a date, as `observe` does, without taking the date for more than it is."""
    for k in range(len(rates)):
        rate = rates[k]
        likely = 1.0 - math.exp(-rate * elapsed) * (1.0 - noise)
        # both as densities over the logarithm of the stated age
        since = math.exp(-rate * age) * (_WRITTEN_ANEW * likely + (1.0 - _WRITTEN_ANEW) * rate * age)
        likely = trust * since + (1.0 - trust) / _MADE_UP * likely
        evidence[k] = keep * evidence[k] + math.log(max(likely, _LEAST_CHANCE))
    _level(evidence)


def observe_first_cautiously(
    evidence: MutableSequence[float], rates: Sequence[float], age: float, trust: float
) -> None:
    """Add the Last-Modified of the first visit: it dates the last change, or the page itself."""
    for k in range(len(rates)):
        changes = rates[k] * age
        likely = math.exp(-changes) * (_MADE_THEN + (1.0 - _MADE_THEN) * changes)
        evidence[k] = math.log(max(trust * likely + (1.0 - trust) / _MADE_UP, _LEAST_CHANCE))
    _level(evidence)


def _level(evidence: MutableSequence[float]) -> None:
    """Shift the best rate to 0, and keep the worst at a level from which it can recover."""
    best = evidence[0]
    for k in range(len(evidence)):
        best = max(best, evidence[k])
    for k in range(len(evidence)):
        evidence[k] = max(evidence[k] - best, WORST)


def posterior(evidence: Sequence[float], prior: Sequence[float], probabilities: MutableSequence[float]) -> None:
    """Write the probability of each rate, from the evidence of a page and the prior of pages like it."""
    total = 0.0
    for k in range(len(prior)):
        probabilities[k] = prior[k] * math.exp(evidence[k])
        total += probabilities[k]
    for k in range(len(prior)):
        probabilities[k] /= total


def chance_unchanged(probabilities: Sequence[float], rates: Sequence[float], elapsed: float) -> float:
    """The probability that the page has not changed for `elapsed` seconds."""
    chance = 0.0
    for k in range(len(rates)):
        chance += probabilities[k] * math.exp(-rates[k] * elapsed)
    return chance
