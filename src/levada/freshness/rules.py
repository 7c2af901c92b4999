"""Revisit rules by name, and the policies that follow one: directly, or as a plug-in that may fail.

`ContainedPolicy` asks a plug-in with a deadline and keeps its answers within bounds; where it fails, the default
policy plans instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from math import isfinite
from typing import Any, TypeVar

from levada.core.errors import UsageError
from levada.core.plugins import GROUPS, Containment, find
from levada.core.protocols import Estimates, RevisitPolicy
from levada.core.records import Outcome, PageRecord, Plan, Signals, Visit
from levada.freshness.estimates import PageEstimates, packed, row_of
from levada.freshness.rule import Rule, within

T = TypeVar("T")

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
        self.estimates: Estimates = default.estimates if shared else _ContainedEstimates(self._ask, policy, default)

    def plan(self, page: PageRecord, visit: Visit, modified: float | None = None) -> Plan:
        return self._ask(
            lambda: self._checked(self._policy.plan(page, visit, modified)),
            lambda: self._default.plan(page, visit, modified),
        )

    def _checked(self, plan: Any) -> Plan:
        if not isinstance(plan, Plan) or not isinstance(plan.memory, bytes) or not isfinite(plan.interval):
            raise ValueError(f"no plan with a finite interval: {plan!r:.100}")
        return Plan(within(plan.interval, *self._bounds), plan.memory)

    def visit_after_hint(self, page: PageRecord, said: Signals) -> float | None:
        return self._ask(
            lambda: _number_or_none(self._policy.visit_after_hint(page, said)),
            lambda: self._default.visit_after_hint(page, said),
        )

    def wants_full_fetch(self, page: PageRecord) -> bool:
        return self._ask(
            lambda: bool(self._policy.wants_full_fetch(page)), lambda: self._default.wants_full_fetch(page)
        )

    def limit_site(self, site: str, per_second: float) -> None:
        self._default.limit_site(site, per_second)
        self._ask(lambda: self._policy.limit_site(site, per_second), lambda: None)

    def set_budget(self, per_hour: float) -> None:
        self._default.set_budget(per_hour)
        self._ask(lambda: self._policy.set_budget(per_hour), lambda: None)

    def price(self) -> float:
        return self._ask(lambda: _number_or_none(self._policy.price()) or 0.0, self._default.price)

    def _ask(self, decision: Callable[[], T], default: Callable[[], T]) -> T:
        return self._containment.decide(decision, default)


class _ContainedEstimates:
    def __init__(
        self,
        ask: Callable[[Callable[[], Any], Callable[[], Any]], Any],
        policy: RevisitPolicy,
        default: RevisitPolicy,
    ) -> None:
        self._ask, self._policy, self._default = ask, policy, default

    def learn(self, pages: Iterable[PageRecord], one_in: int) -> None:
        known = list(pages)  # a store's rows are for the thread that asked for them
        self._default.estimates.learn(known, one_in)
        self._ask(lambda: self._policy.estimates.learn(known, one_in), lambda: None)

    def forget(self, page: PageRecord) -> None:
        self._default.estimates.forget(page)
        self._ask(lambda: self._policy.estimates.forget(page), lambda: None)

    def share(self, now: float) -> float | None:
        own: float | None = self._ask(
            lambda: _number_or_none(self._policy.estimates.share(now)), lambda: self._default.estimates.share(now)
        )
        return None if own is None else min(max(own, 0.0), 1.0)


def _number_or_none(found: float | None) -> float | None:
    if found is not None and not isfinite(found):
        raise ValueError(f"not a finite number: {found!r}")
    return found
