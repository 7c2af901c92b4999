"""Come back as a rule says: one that looks at each page alone, and knows no budget."""

from __future__ import annotations

from levada.freshness.beliefs import PageBeliefs
from levada.freshness.memory import packed, row_of
from levada.freshness.rule import Rule
from levada.records import Outcome, PageRecord, Plan, Said, Visit

__all__ = ["RuleRevisit"]


class RuleRevisit:
    """Any rule as a policy. It believes what others do, for the share of current pages, and acts on none of it."""

    def __init__(self, rule: Rule, beliefs: PageBeliefs) -> None:
        self.rule = rule
        self.beliefs = beliefs

    def plan(self, page: PageRecord, visit: Visit, modified: float | None = None) -> Plan:
        evidence, _ = self.beliefs.seen(page, visit, modified)
        row = row_of(page.memory, self.rule.width)
        outcome = int(visit.outcome)
        if row is None:  # it was never visited, or by another rule
            row, outcome = [0.0] * self.rule.width, int(Outcome.FIRST)
        elapsed = max(0.0, visit.at - page.history[-1].at) if page.history else 0.0
        interval = self.rule.step(row, self.rule.parameters, elapsed, outcome)
        return Plan(interval, packed(evidence, row))

    def expect(self, page: PageRecord, said: Said) -> float | None:
        return None

    def asks_whole(self, page: PageRecord) -> bool:
        return False

    def restrain(self, site: str, per_second: float) -> None:
        pass

    def afford(self, per_hour: float) -> None:
        pass

    def price(self) -> float:
        return 0.0
