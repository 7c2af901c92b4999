"""Revisit rules by name, their bounds, and the policies that follow one: directly, or as a plug-in that may fail.

A rule is plain arithmetic over a short row of floats per page, so that the same function runs in the crawler and,
compiled, in the laboratory over millions of visits. Every rule ends in `within`: no arithmetic and no jump of the
clock leads to a storm of visits, to a page that is never visited again, or to nan.

`ContainedPolicy` asks a plug-in with a deadline and keeps its answers within bounds; where it fails, the default
policy plans instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence, Sequence
from contextlib import suppress
from math import inf, isfinite
from typing import TypeVar

import msgspec

from levada.core.errors import UsageError
from levada.core.plugins import GROUPS, Containment, find
from levada.core.protocols import Estimates, RevisitPolicy
from levada.core.records import Outcome, PageRecord, Plan, Signals, Visit
from levada.freshness.estimates import PageEstimates, row_of

T = TypeVar("T")

LEAST, MOST = 1e-3, 1e10  # the bounds of every rule: a millisecond, three centuries


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
        return Plan(interval, evidence.packed(row))

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
