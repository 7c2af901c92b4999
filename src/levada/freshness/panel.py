"""What do the pages say together? The prior for each of them, and the price that spends the budget.

Each page has a share in the sums of all pages and in those of its site: how its belief is spread over the rates,
and how many visits per second it is worth at each price. A page that is weighed anew takes its old share out and
puts its new one in, so that the sums follow at a constant cost per visit, whatever the number of pages. From the
first part of the sums comes the prior (empirical Bayes: the average of the beliefs), from the second the price at
which the pages together ask for as many visits as the budget allows.

All functions work on plain rows of floats in place, so that the laboratory can compile them.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

from levada.freshness.rates import posterior
from levada.freshness.worth import profile

__all__ = ["EAGER", "KEEP", "imagined", "price_for", "weigh", "withdraw", "write_prior"]

# Tuned on seeds from 101 of the laboratory's worlds; flat around these.
KEEP = 0.97  # of a page's evidence, at each visit
PAGES_BEFORE = 10.0  # imagined pages that speak for the web until real ones do
PAGES_HERE = 10.0  # pages of the web that speak for a site until its own do
EAGER = 1.25  # visits asked for per visit that can be made: something is always due, and no fetch is left unspent


def imagined(rates: Sequence[float]) -> list[float]:
    """What pages of the web are like, as far as anybody knows before the first visit."""
    return [0.3, *(0.7 / (len(rates) - 1) for _ in rates[1:])]


def write_prior(
    prior: MutableSequence[float],
    everywhere: Sequence[float],
    here: Sequence[float],
    imagined: Sequence[float],
) -> None:
    """What a page of a site is like before it was visited."""
    total = PAGES_BEFORE
    at_site = PAGES_HERE
    for k in range(len(prior)):
        total += everywhere[k]
        at_site += max(here[k], 0.0)
    for k in range(len(prior)):
        of_web = (PAGES_BEFORE * imagined[k] + max(everywhere[k], 0.0)) / total
        prior[k] = (PAGES_HERE * of_web + max(here[k], 0.0)) / at_site


def weigh(
    evidence: Sequence[float],
    prior: Sequence[float],
    intervals: Sequence[float],
    worths: Sequence[float],
    prices: Sequence[float],
    importance: float,
    unsaid: float,
    belief: MutableSequence[float],
    share: MutableSequence[float],
    everywhere: MutableSequence[float],
    here: MutableSequence[float],
) -> None:
    """Write the page's belief and demand, and replace its old share in both sums by the new one.

    A page that was visited only once asks for visits like any other, but has nothing to say on how pages change:
    it would only repeat what the prior was.
    """
    withdraw(share, everywhere, here)
    posterior(evidence, prior, belief)
    profile(belief, len(prior), intervals, worths, prices, importance, unsaid)
    speaks = 0.0
    for k in range(len(prior)):
        if evidence[k] < 0.0:
            speaks = 1.0
    for k in range(len(share)):
        share[k] = belief[k] if k >= len(prior) else speaks * belief[k]
        everywhere[k] += share[k]
        here[k] += share[k]


def withdraw(
    share: MutableSequence[float], everywhere: MutableSequence[float], here: MutableSequence[float]
) -> None:
    """The page is no longer there."""
    for k in range(len(share)):
        everywhere[k] -= share[k]
        here[k] -= share[k]
        share[k] = 0.0


def price_for(sums: Sequence[float], kinds: int, prices: Sequence[float], visits: float) -> float:
    """The price at which the pages are worth `visits` per second together: the more visits, the lower."""
    last = len(prices) - 1
    if visits >= sums[kinds]:
        return prices[0]
    if visits <= sums[kinds + last]:
        return prices[last]
    at = 1
    while sums[kinds + at] > visits:
        at += 1
    more, less = sums[kinds + at - 1], sums[kinds + at]
    part = (more - visits) / (more - less)
    return prices[at - 1] * math.exp(part * math.log(prices[at] / prices[at - 1]))
