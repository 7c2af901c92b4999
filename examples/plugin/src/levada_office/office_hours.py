"""A revisit policy for pages that change while people work: no visit is planned outside office hours (UTC)."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from levada.core.protocols import Estimates
from levada.core.records import PageRecord, Plan, Signals, Visit
from levada.freshness import PageEstimates, RuleRevisit, revisit_rule

__all__ = ["OfficeHours"]

_DAY, _HOUR = 86_400.0, 3_600.0


class OfficeHours:
    """The paper's rule (`ema`) says when; a visit that would fall outside the hours waits until they begin."""

    levada_protocol = 1

    def __init__(
        self,
        options: Mapping[str, Any] | None = None,
        *,
        estimates: PageEstimates,
        first: float,
        floor: float,
        ceiling: float,
    ) -> None:
        chosen = {"opens": 8.0, "closes": 18.0, **(options or {})}
        self._opens, self._closes = _HOUR * float(chosen["opens"]), _HOUR * float(chosen["closes"])
        if not 0.0 <= self._opens < self._closes <= _DAY:
            raise ValueError("opens and closes are hours of a day, and opens comes first")
        self._rule = RuleRevisit(revisit_rule("ema", first=first, floor=floor, ceiling=ceiling), estimates)

    @property
    def estimates(self) -> Estimates:
        return self._rule.estimates

    def plan(self, page: PageRecord, visit: Visit, modified: float | None = None) -> Plan:
        plan = self._rule.plan(page, visit, modified)
        return Plan(plan.interval + self._wait(visit.at + plan.interval), plan.memory)

    def _wait(self, at: float) -> float:
        """Seconds from this time until office hours; 0 within them."""
        if not isfinite(at):
            return 0.0
        hour = at % _DAY
        return 0.0 if self._opens <= hour < self._closes else (self._opens - hour) % _DAY

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
