"""Revisit rules by name, their bounds, and the policies that follow one: directly, or as a plug-in that may fail.

A rule is plain arithmetic over a short row of floats per page, so that the same function runs in the crawler and,
compiled, in the laboratory over millions of visits. Every rule ends in `within`: no arithmetic and no jump of the
clock leads to a storm of visits, to a page that is never visited again, or to nan.

`ContainedPolicy` asks a plug-in with a deadline and keeps its answers within bounds; where it fails, the default
policy plans instead.

EMA. The paper's text describes an exponential moving average over outcomes with a smoothing of 0.2; its trace of
one URL shows what was run. With `I` the stored interval and `k` the changes among the ten outcomes before a visit:

    unchanged:  I *= 1.2 + 0.08 k
    changed:    I /= 1.3 + 0.08 k

The first interval is 60 minutes. The paper states no floor and no ceiling; a crawler needs both, so they are
options here, off by default. A change brings the next visit nearer, but not every later one: `k` speeds up the
growth too, so a page that changed and was then unchanged for seven visits waits longer than one that never
changed.

Of Real-Time, the paper gives `t_v = t_p + dt + t_i` and little more: the next visit is the last one, plus the
estimated time between changes, plus a weighted estimate of how late the last visits were. The rest is our reading,
one of the closest to the paper's hourly table among a hundred combinations, in worlds fitted to what the table says
about EMA. There it misses pages, visits and changes per hour by 37% of their means (EMA its own by 25%); the plain
reading, the observed time divided by the changes, misses them by two thirds.

    dt    the weighted mean of half the time since the last visit, over visits that met a change, which is assumed
          half-way; until the first change, the time since the last visit
    t_i   the weighted mean of the time since the last visit: negative with a change (the visit was late, so come
          sooner) and positive without (it was early)

As in the table, visits crowd on the pages that changed, a few minutes apart, and most of them meet no change. It
does not show the table's fall of the changes met, from 288 to 92 per hour.

Nutch. Source: `AdaptiveFetchSchedule` of 1.x and the defaults of its `nutch-default.xml`. Where code and
configuration differ (rates of .2, .2 and .2 against .4, .2 and .3), the configuration is what runs. One
difference: at its ceiling, Nutch can plan visits in the past again and again (NUTCH-1564); here the pull is at
most its share of the interval.

StormCrawler. Source: its `AdaptiveScheduler`, with the documented defaults, in seconds and not in whole minutes.

Cho and Garcia-Molina. Source: Estimating frequency of change (ACM TOIT 3(3), 2003), the corrected estimator: if `q`
of `n` visits at equal intervals met no change, the page changes `-log((q + 0.5) / (n + 0.5))` times per interval. The
allocation of `levada.freshness.value` at a fixed price turns the estimate into visits. Two things are Levada's: visits
are not at equal intervals, so the mean interval is used; and until the first change, the estimate is that of half a
change, because an estimate of 0 would end the visits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence, Sequence
from contextlib import suppress
from math import inf, isfinite, log
from typing import TypeVar

import msgspec

from levada.core.errors import UsageError
from levada.core.plugins import GROUPS, Containment, find
from levada.core.protocols import Estimates, RevisitPolicy
from levada.core.records import Outcome, PageRecord, Plan, Signals, Visit
from levada.freshness.estimates import PageEstimates, packed, row_of
from levada.freshness.value import visit_rate

T = TypeVar("T")

LEAST, MOST = 1e-3, 1e10  # the bounds of every rule: a millisecond, three centuries
_HOUR, _DAY = 3_600.0, 86_400.0
_REMEMBERED = 10


def within(seconds: float, floor: float, ceiling: float) -> float:
    """`seconds`, not below the floor and not above the ceiling; the floor for nan."""
    low = max(floor, LEAST)
    if not seconds > low:
        return low
    return min(seconds, ceiling, MOST)


def passed(elapsed: float) -> float:
    """The seconds since the last visit, at least `LEAST` even if the clock went back."""
    if not elapsed > LEAST:
        return LEAST
    return min(elapsed, MOST)


def check_bounds(first: float, floor: float, ceiling: float, scale: float) -> None:
    if not (0 <= floor <= first <= ceiling and LEAST <= first <= MOST):
        raise ValueError(f"needs floor <= first <= ceiling, not {floor:g} s, {first:g} s, {ceiling:g} s")
    if not (isfinite(scale) and scale > 0):
        raise ValueError(f"needs a scale above 0, not {scale:g}")


Step = Callable[[MutableSequence[float], Sequence[float], float, int], float]
"""`step(memory, parameters, elapsed, outcome)`, called at each visit that compared content.

`elapsed` is the seconds since the visit before; `outcome` is 0 for the first visit, 1 for unchanged, 2 for
changed. A step rewrites `memory` (zeros before the first visit) in place and returns the seconds until the next
visit. It uses only floats, loops and `math`, because the laboratory compiles it."""


class Rule(msgspec.Struct, frozen=True):
    """A named rule with its parameters; `width` floats of memory per page."""

    name: str
    step: Step
    width: int
    parameters: tuple[float, ...] = ()


def fixed(first: float = 3600.0, floor: float = 0.0, ceiling: float = inf, scale: float = 1.0) -> Rule:
    """A fixed interval for all pages, as a crawler without a policy has; the baseline for the others.

    `first` is the interval: half of it costs twice the visits. `floor` and `ceiling` exist because every rule has
    them.
    """
    check_bounds(first, floor, ceiling, scale)
    return Rule("fixed", _fixed_step, 0, (first, scale))


def _fixed_step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    return within(parameters[0] * parameters[1], 0.0, inf)


def ema(first: float = 3600.0, floor: float = 0.0, ceiling: float = inf, scale: float = 1.0) -> Rule:
    """Visits every changing page so often that about 47% of its visits meet a change; it has no budget parameter.

    `first` is the interval after the first visit; the further it is from what a page needs, the more visits it
    takes to get there, four to six for a factor of three. `floor` limits what a page can cost, `ceiling` how long
    an unchanged page is left alone. Because the rule follows its hits, `scale` changes only its beginning.
    """
    check_bounds(first, floor, ceiling, scale)
    return Rule("ema", _ema_step, 2, (first, floor, ceiling, scale))


def _ema_step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the interval; the last ten outcomes as bits, the newest lowest."""
    first, floor, ceiling, scale = parameters[0], parameters[1], parameters[2], parameters[3]
    if outcome == 0 or memory[0] <= 0.0:
        memory[0], memory[1] = first, 0.0
    else:
        bits = int(memory[1])
        changes = 0
        for place in range(_REMEMBERED):
            changes += (bits >> place) & 1
        if outcome == 2:
            memory[0] /= 1.3 + 0.08 * changes
        else:
            memory[0] *= 1.2 + 0.08 * changes
        memory[0] = within(memory[0], floor, ceiling)
        memory[1] = float((2 * bits + outcome - 1) % 2**_REMEMBERED)
    return within(memory[0] * scale, 0.0, inf)


def real_time(
    first: float = 3600.0,
    floor: float = 60.0,
    ceiling: float = inf,
    *,
    newest: float = 0.35,
    scale: float = 1.0,
) -> Rule:
    """Returns soon to a page that changed soon, and spends most visits there.

    `newest` is the weight of the newest visit in both means: the larger, the nearer the next visit after a change,
    and the sooner the page is left alone again. The sum can fall below 0, so the rule needs the floor.
    """
    check_bounds(first, floor, ceiling, scale)
    if not 0 < newest <= 1:
        raise ValueError(f"needs a weight of the newest visit above 0 and up to 1, not {newest:g}")
    return Rule("real-time", _real_time_step, 2, (first, floor, ceiling, newest, scale))


def _real_time_step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the time between changes, 0 until the first; how early the last visits were."""
    first, floor, ceiling = parameters[0], parameters[1], parameters[2]
    newest, scale = parameters[3], parameters[4]
    if outcome == 0:
        memory[0], memory[1] = 0.0, 0.0
        return within(first * scale, 0.0, inf)
    since = passed(elapsed)
    early = since if outcome == 1 else -since
    memory[1] += newest * (early - memory[1])
    if outcome == 2:
        memory[0] += (newest if memory[0] > 0.0 else 1.0) * (since / 2 - memory[0])
    between = memory[0] if memory[0] > 0.0 else since
    return within(within(between + memory[1], floor, ceiling) * scale, 0.0, inf)


def nutch(
    first: float = 30 * _DAY,
    floor: float = 60.0,
    ceiling: float = 365 * _DAY,
    *,
    slower: float = 0.4,
    faster: float = 0.2,
    pull: float = 0.3,
    scale: float = 1.0,
) -> Rule:
    """The interval grows by the share `slower` without a change and shrinks by the share `faster` with one.

    Their balance decides the share of visits that meet a change: with .4 and .2 three of five, with .2 and .2 a
    little under half. A first interval of 30 days suits a crawl of the whole web, and learns nothing within a week.
    With `pull` above 0, the interval is at least the time since the last observed change, and the next visit comes
    earlier by that share of this time; 0 turns both off.
    """
    check_bounds(first, floor, ceiling, scale)
    if not (slower > 0 and 0 < faster < 1 and 0 <= pull < 1):
        raise ValueError(f"needs slower > 0, faster and pull below 1, not {slower:g}, {faster:g}, {pull:g}")
    return Rule("nutch", _nutch_step, 2, (first, floor, ceiling, slower, faster, pull, scale))


def nutch_22(first: float = 3600.0, floor: float = 60.0, ceiling: float = 365 * _DAY, *, scale: float = 1.0) -> Rule:
    """Nutch with .2 and .2, without the pull, and with a first interval of an hour: a configuration for news."""
    parameters = nutch(first, floor, ceiling, slower=0.2, faster=0.2, pull=0.0, scale=scale).parameters
    return Rule("nutch-22", _nutch_step, 2, parameters)


def _nutch_step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the interval; the seconds from the last observed change to this visit."""
    first, floor, ceiling = parameters[0], parameters[1], parameters[2]
    slower, faster, pull, scale = parameters[3], parameters[4], parameters[5], parameters[6]
    interval, quiet = memory[0], 0.0
    if outcome == 0 or interval <= 0.0:
        interval = first
    elif outcome == 2:
        interval *= 1.0 - faster
    else:
        interval *= 1.0 + slower
        quiet = within(memory[1] + passed(elapsed), 0.0, inf)
    if pull > 0.0:
        interval = max(interval, quiet)
    memory[0] = within(interval, floor, ceiling)
    memory[1] = quiet
    sooner = pull * min(quiet, memory[0])
    return within(within(memory[0] - sooner, floor, ceiling) * scale, 0.0, inf)


def stormcrawler(
    first: float = _DAY,
    floor: float = _HOUR,
    ceiling: float = 14 * _DAY,
    *,
    slower: float = 0.5,
    faster: float = 0.5,
    scale: float = 1.0,
) -> Rule:
    """The interval grows by the share `slower` without a change.

    With a change it loses the share `faster` of its distance to `floor`, which it approaches and never reaches.
    Large rates find the pace of a page in a few visits and then swing around it. The floor of an hour suits a large
    web; news needs less.
    """
    check_bounds(first, floor, ceiling, scale)
    if not (0 < slower <= 1 and 0 < faster <= 1):
        raise ValueError(f"needs rates above 0 and up to 1, not {slower:g} and {faster:g}")
    return Rule("stormcrawler", _stormcrawler_step, 1, (first, floor, ceiling, slower, faster, scale))


def _stormcrawler_step(
    memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int
) -> float:
    """Memory: the interval."""
    first, floor, ceiling = parameters[0], parameters[1], parameters[2]
    slower, faster, scale = parameters[3], parameters[4], parameters[5]
    if outcome == 0 or memory[0] <= 0.0:
        memory[0] = first
    elif outcome == 2:
        memory[0] = within((1.0 - faster) * memory[0] + faster * floor, floor, ceiling)
    else:
        memory[0] = within((1.0 + slower) * memory[0], floor, ceiling)
    return within(memory[0] * scale, 0.0, inf)


def cho(
    first: float = 3600.0, floor: float = 0.0, ceiling: float = inf, *, price: float = 1800.0, scale: float = 1.0
) -> Rule:
    """Visits by an estimate of the change rate that never forgets.

    The longer a page keeps its pace, the better the estimate, and the slower it notices another pace. `price` (see
    `visit_rate`) adjusts the budget: at 1800, a page that changes once an hour is visited once an hour, slower pages
    several times per change, faster ones less than once. Four times the price gives about half the visits.
    """
    check_bounds(first, floor, ceiling, scale)
    if not 1e-20 <= price <= 1e20:
        raise ValueError(f"needs a price from 1e-20 to 1e20, not {price:g}")
    return Rule("cho", _cho_step, 3, (first, floor, ceiling, price, scale))


def _cho_step(memory: MutableSequence[float], parameters: Sequence[float], elapsed: float, outcome: int) -> float:
    """Memory: the visits after the first, those without a change, the seconds that they cover."""
    first, floor, ceiling = parameters[0], parameters[1], parameters[2]
    price, scale = parameters[3], parameters[4]
    if outcome == 0:
        memory[0], memory[1], memory[2] = 0.0, 0.0, 0.0
        return within(first * scale, 0.0, inf)
    memory[0] += 1.0
    memory[1] += 2.0 - outcome
    memory[2] += passed(elapsed)
    visits, unchanged, watched = memory[0], min(memory[1], memory[0] - 0.5), memory[2]
    rate = -log((unchanged + 0.5) / (visits + 0.5)) * visits / watched
    return within(within(1.0 / visit_rate(rate, 1.0, price), floor, ceiling) * scale, 0.0, inf)


RULES = tuple(name for name in GROUPS["levada.policies"].builtins if name != "learned")
"""The rules that are built in."""


def revisit_rule(name: str, **parameters: float) -> Rule:
    """Each takes `first`, `floor` and `ceiling` in seconds, `scale`, and what is its own."""
    make, made = find("levada.policies", name, "--policy"), None
    with suppress(TypeError):  # a policy needs more than a rule
        made = make(**parameters)
    if not isinstance(made, Rule):
        raise UsageError(f'--policy: "{name}" is a policy and no rule, so it has no intervals of its own')
    return made


class RuleRevisit:
    """A rule as a policy. It keeps estimates only for the estimated share current."""

    def __init__(self, rule: Rule, estimates: PageEstimates) -> None:
        self.rule = rule
        self.estimates = estimates

    def plan(self, page: PageRecord, visit: Visit, modified: float | None = None) -> Plan:
        evidence, _ = self.estimates.seen(page, visit, modified)
        row = row_of(page.memory, self.rule.width)
        outcome = int(visit.outcome)
        if row is None:  # never visited, or under another rule
            row, outcome = [0.0] * self.rule.width, int(Outcome.FIRST)
        elapsed = max(0.0, visit.at - page.history[-1].at) if page.history else 0.0
        interval = self.rule.step(row, self.rule.parameters, elapsed, outcome)
        return Plan(interval, packed(evidence, row))

    def visit_after_hint(self, page: PageRecord, said: Signals) -> float | None:
        return None

    def wants_full_fetch(self, page: PageRecord) -> bool:
        return False

    def limit_site(self, site: str, per_second: float) -> None:
        pass

    def set_budget(self, per_hour: float) -> None:
        pass

    def price(self) -> float:
        return 0.0


class ContainedPolicy:
    """A plug-in's policy: what it does not answer in time and soundly, the `default` policy answers."""

    def __init__(self, name: str, policy: RevisitPolicy, default: RevisitPolicy, floor: float, ceiling: float) -> None:
        self._policy, self._default = policy, default
        self._bounds = floor, ceiling
        self._containment = Containment("levada.policies", name)
        shared = policy.estimates is default.estimates
        self.estimates: Estimates = default.estimates if shared else _ContainedEstimates(self)

    def plan(self, page: PageRecord, visit: Visit, modified: float | None = None) -> Plan:
        return self._ask(lambda policy: policy.plan(page, visit, modified), self._checked)

    def _checked(self, plan: Plan) -> Plan:
        if not isinstance(plan, Plan) or not isinstance(plan.memory, bytes) or not isfinite(plan.interval):
            raise ValueError(f"no plan with a finite interval: {plan!r:.100}")
        return Plan(within(plan.interval, *self._bounds), plan.memory)

    def visit_after_hint(self, page: PageRecord, said: Signals) -> float | None:
        return self._ask(lambda policy: policy.visit_after_hint(page, said), _number_or_none)

    def wants_full_fetch(self, page: PageRecord) -> bool:
        return self._ask(lambda policy: policy.wants_full_fetch(page), bool)

    def limit_site(self, site: str, per_second: float) -> None:
        self._tell(lambda policy: policy.limit_site(site, per_second))

    def set_budget(self, per_hour: float) -> None:
        self._tell(lambda policy: policy.set_budget(per_hour))

    def price(self) -> float:
        return self._ask(lambda policy: policy.price(), lambda price: _number_or_none(price) or 0.0)

    def _ask(self, question: Callable[[RevisitPolicy], T], checked: Callable[[T], T]) -> T:
        """The plug-in's answer, if it comes in time and `checked` does not refuse it; else the default policy's."""
        return self._containment.decide(lambda: checked(question(self._policy)), lambda: question(self._default))

    def _tell(self, news: Callable[[RevisitPolicy], None]) -> None:
        """Tell both policies."""
        news(self._default)
        self._containment.decide(lambda: news(self._policy), lambda: None)


class _ContainedEstimates:
    def __init__(self, contained: ContainedPolicy) -> None:
        self._ask, self._tell = contained._ask, contained._tell

    def learn(self, pages: Iterable[PageRecord], one_in: int) -> None:
        known = list(pages)  # a store's rows are for the thread that asked for them
        self._tell(lambda policy: policy.estimates.learn(known, one_in))

    def forget(self, page: PageRecord) -> None:
        self._tell(lambda policy: policy.estimates.forget(page))

    def share(self, now: float) -> float | None:
        own = self._ask(lambda policy: policy.estimates.share(now), _number_or_none)
        return None if own is None else min(max(own, 0.0), 1.0)


def _number_or_none(found: float | None) -> float | None:
    if found is not None and not isfinite(found):
        raise ValueError(f"not a finite number: {found!r}")
    return found
