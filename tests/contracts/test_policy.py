"""The contracts of revisiting, run on every rule and policy."""

from __future__ import annotations

import pytest

from levada.core.plugins import load
from levada.core.protocols import RevisitPolicy
from levada.freshness import RULES, PageEstimates, Rule, RuleRevisit, Scale, revisit_rule
from levada.testing import RevisitPolicyContract, RevisitRuleContract

HOUR, DAY = 3600.0, 86_400.0


def estimates() -> PageEstimates:
    return PageEstimates(Scale.between(300.0, 30 * DAY), size=2_000)


class TestRules(RevisitRuleContract):
    @pytest.fixture(autouse=True, params=RULES)
    def _named(self, request: pytest.FixtureRequest) -> None:
        self.name: str = request.param

    def make(self) -> Rule:
        return revisit_rule(self.name)


class TestRuleAsPolicy(RevisitPolicyContract):
    @pytest.fixture(autouse=True, params=RULES)
    def _named(self, request: pytest.FixtureRequest) -> None:
        self.name: str = request.param

    def make(self) -> RevisitPolicy:
        return RuleRevisit(revisit_rule(self.name, first=HOUR, ceiling=30 * DAY), estimates())


class TestLearned(RevisitPolicyContract):
    @pytest.fixture(autouse=True, params=[0.0, 60.0], ids=["without a budget", "60 fetches an hour"])
    def _budget(self, request: pytest.FixtureRequest) -> None:
        self.per_hour: float = request.param

    def make(self) -> RevisitPolicy:
        return load("levada.policies", "learned", estimates=estimates(), per_hour=self.per_hour)  # type: ignore[no-any-return]
